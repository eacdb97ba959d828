"""The pages of reports: groups and partitions of a run, and what the newest report says of a group."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest
from django.test import Client
from pytest_django.fixtures import SettingsWrapper

from frontend.pages.archive import reports as archive_exports
from frontend.pages.archive.reports import BUSIEST, DAYS_SHOWN, PAGE_SIZE, SORTS, causes, day_plots, totals
from frontend.ui.wording import per_second
from offsets.runs.reports import MOST_MEMBERS
from offsets.spark.report import reading
from tests.frontend.seed import Seed
from tests.frontend.test_archive import text_of
from tests.frontend.test_exports import table
from tests.support.spark_reports import busy_report, days_before, group_row, put_report
from tests.support.spark_runs import now_ms, put_run

DAY_MS = 86_400_000


@pytest.fixture
def folder(settings: SettingsWrapper, tmp_path: Path) -> Path:
    """The folder of the archive that is configured."""
    path = tmp_path / "archive"
    settings.KCOORD = settings.KCOORD.override({"archive.path": str(path), "data.dir": str(tmp_path)})
    return path


def rows(client: Client, address: str) -> list[str]:
    """The head of each row of a page's table."""
    page = client.get(address).content.decode()
    heads = re.findall(r'<th scope="row"[^>]*>(.*?)</th>', page, re.DOTALL)
    return [re.sub(r"<[^>]+>", "", head).strip() for head in heads]


def test_rates_and_causes_in_words() -> None:
    assert [per_second(n) for n in (0, 1, 86_400, 86_400 * 12, 86_400 * 1_234)] == [
        "0",
        "< 0.01",
        "1.00",
        "12.0",
        "1,234",
    ]
    assert causes({"member_joined": 1, "session_expired": 1_200, "a": 1}) == (
        "1,200× session expired, 1× a, 1× member joined"
    )


def test_every_sort_is_one_that_files_can_be_read_by() -> None:
    assert set(SORTS) == set(reading.SORTS)


def test_rebalances_are_drawn_from_where_events_begin() -> None:
    days = [
        {"date": f"1970-01-0{n}", "commits": 1, "consumed": 0, "rewinds": 0, "rebalances": n if n > 2 else None}
        for n in range(1, 6)
    ]
    drawn = {one.name: one for one in day_plots({"days": days, "rebalances_since": 2 * DAY_MS + 5})}
    assert [drawn[name].plot.lines[0].values for name in ("commits", "rebalances")] == ["1|1|1|1|1", "||3|4|5"]
    assert (drawn["rebalances"].total, drawn["rebalances"].note) == (12, "counted since 1970-01-03")
    assert drawn["commits"].note == ""
    later = {one.name: one for one in day_plots({"days": days, "rebalances_since": 90 * DAY_MS})}
    assert later["rebalances"].plot.empty, "events begin after the last day"
    many = [{"date": str(day), "commits": 1} for day in days_before(400)]
    (drawn_of_many, *_) = day_plots({"days": many})
    assert (drawn_of_many.first, drawn_of_many.plot.steps) == (str(days_before(366)[0]), 366)
    assert [day["rebalances"] for day in totals({"days": days})] == [None, None, 3, 4, 5]


def test_the_page_of_a_run_has_days_groups_and_partitions(person: Client, seed: Seed, folder: Path) -> None:
    run_id = busy_report(seed.connection, folder, "billing", days=40, groups=30)
    address = f"/archive/runs/{run_id}"
    page = text_of(person, address)
    assert "Rebalances a day" in page
    assert "counted since" in page
    found = rows(person, address)
    assert len(found) == DAYS_SHOWN + 2 * BUSIEST
    assert found[0] == days_before(1)[0].isoformat()
    assert found[DAYS_SHOWN] == "billing", "the group that consumed most comes first"
    assert "Show all 40 days" in page
    assert len(rows(person, f"{address}?show=days")) == 40 + 2 * BUSIEST
    assert "All 30" in page
    assert f"/groups/billing/report?run={run_id}" in person.get(address).content.decode()


def test_groups_come_in_pages_sorted_and_searched(person: Client, seed: Seed, folder: Path) -> None:
    now = now_ms()
    names = [f"group-{number:03}" for number in range(PAGE_SIZE + 5)]
    groups = [group_row(name, consumed=number, rewinds=-number) for number, name in enumerate(names)]
    groups.append(group_row("<never>", consumed=10**6, last_commit_at=None, first_commit_at=None, commits=0))
    groups.append(group_row("asleep", consumed=0, last_commit_at=now - 8 * DAY_MS))
    address = f"/archive/runs/{put_report(seed.connection, folder, {'groups': groups})}/groups"
    assert "57 groups" in text_of(person, address)
    found = rows(person, address)
    assert len(found) == PAGE_SIZE
    assert found[:2] == ["&lt;never&gt;", names[-1]]
    assert len(rows(person, f"{address}?page=2")) == 7
    assert "?page=2" in person.get(address).content.decode()
    assert 'rel="next"' not in person.get(f"{address}?page=2").content.decode()
    assert rows(person, f"{address}?page=3") == []
    assert rows(person, f"{address}?sort=name")[:2] == ["&lt;never&gt;", "asleep"]
    assert rows(person, f"{address}?sort=idle")[0] == "asleep"
    assert rows(person, f"{address}?idle=1") == ["asleep"]
    assert rows(person, f"{address}?q=group-00&sort=name") == names[:10]
    assert "Idle for 7 days" in text_of(person, f"{address}?q=nothing")
    assert "No group of the report matches" in text_of(person, f"{address}?q=nothing")
    for wrong in ("page=0", "page=x", "page=9999999", "sort=up", "idle=2"):
        assert person.get(f"{address}?{wrong}").status_code == 400, wrong


def test_partitions_come_in_pages(person: Client, seed: Seed, folder: Path) -> None:
    partitions = [
        {"topic": "orders", "partition": n, "consumed": 1_000 - n, "commits": 1, "groups": 1} for n in range(60)
    ]
    run_id = put_report(seed.connection, folder, {"busiest_partitions": partitions})
    address = f"/archive/runs/{run_id}/partitions"
    assert "60 partitions" in text_of(person, address)
    assert "orders 0 1,000 1 1" in text_of(person, address)
    assert len(rows(person, address)) == PAGE_SIZE
    assert "orders 50 950" in text_of(person, f"{address}?page=2")


def test_a_group_has_its_report(person: Client, seed: Seed, folder: Path) -> None:
    seed.group("billing", "Empty")
    assert "/groups/billing/report" in person.get("/groups/billing?tab=offsets").content.decode()
    assert "No report yet" in text_of(person, "/groups/billing/report")
    busy_report(seed.connection, folder, "billing", days=40)
    page = text_of(person, "/groups/billing/report")
    assert "Records consumed 9,876,543,210" in page
    assert "14× member joined, 7× session expired" in page
    for title in ("Commits a day", "Rewinds a day", "Rebalances a day", "Members seen first a day"):
        assert title in page
    assert "Show all 40 days" in page
    found = rows(person, "/groups/billing/report")
    assert len(found) == DAYS_SHOWN + MOST_MEMBERS
    assert "40 more, seen earlier" in page
    today, first = days_before(40)[-1], days_before(40)[0]
    whole = text_of(person, "/groups/billing/report?show=days")
    assert re.search(rf"{today} 622 360,000 4\.17 1 12 0 2 3 0 ", whole), whole
    assert re.search(rf"{first} 400 90,000 1\.04 0 12 – 1 0 0 ", whole), "events do not reach back to the first day"


def test_a_group_of_which_a_report_has_nothing(person: Client, seed: Seed, folder: Path) -> None:
    run_id = busy_report(seed.connection, folder, "billing")
    seed.group("fresh", "Empty")
    assert "Nothing about this group" in text_of(person, "/groups/fresh/report")
    assert "There is no such group" in text_of(person, "/groups/none/report", 404)
    gone = text_of(person, "/groups/billing/report")
    assert "the group was deleted" in gone
    busy_report(seed.connection, folder, "newer")
    assert "There is no such group" in text_of(person, "/groups/billing/report", 404), "the newest report has it not"
    assert "Records consumed 9,876,543,210" in text_of(person, f"/groups/billing/report?run={run_id}")
    assert "No such report" in text_of(person, f"/groups/billing/report?run={uuid.uuid4()}", 404)
    other = put_run(seed.connection, "archive")
    assert "No such report" in text_of(person, f"/groups/billing/report?run={other}", 404)
    assert "No such report" in text_of(person, f"/archive/runs/{other}/groups", 404)
    assert "No such report" in text_of(person, f"/archive/runs/{other}/partitions", 404)


@pytest.mark.parametrize("content", [None, b"", b"\0" * 4096], ids=["gone", "empty", "zeros"])
def test_a_report_whose_files_cannot_be_read_says_so(
    person: Client, seed: Seed, folder: Path, content: bytes | None
) -> None:
    run_id = busy_report(seed.connection, folder, "billing")
    damaged = folder / f"reports/run={run_id}/groups/00000.parquet"
    if content is None:
        damaged.unlink()
    else:
        damaged.write_bytes(content)
    page = text_of(person, f"/archive/runs/{run_id}")
    assert "Groups and partitions cannot be shown: the files of the report cannot be read" in page
    assert "Commits a day" in page
    for path in ("/groups/billing/report", f"/archive/runs/{run_id}/groups"):
        told = text_of(person, path, 503)
        assert "The report cannot be read" in told
        assert "the files of the report cannot be read" in told


def test_reports_are_for_people_who_signed_in(client: Client, seed: Seed, folder: Path) -> None:
    run_id = busy_report(seed.connection, folder, "billing")
    for address in (f"/archive/runs/{run_id}/groups", f"/archive/runs/{run_id}/partitions", "/groups/billing/report"):
        answer = client.get(address)
        assert answer.status_code == 302
        assert "/sign-in" in answer.headers["Location"]


def test_groups_and_partitions_of_a_report_are_saved_whole(
    person: Client, seed: Seed, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = busy_report(seed.connection, folder, "billing", days=2, groups=30)
    monkeypatch.setattr(archive_exports, "REPORT_ROWS", 7)
    groups = table(person, f"/archive/runs/{run_id}/groups.csv?sort=name")
    assert len(groups) > 7
    assert [row["group_id"] for row in groups] == sorted(row["group_id"] for row in groups)
    assert "billing" in {row["group_id"] for row in groups}
    assert [row["group_id"] for row in table(person, f"/archive/runs/{run_id}/groups.csv?q=billing")] == ["billing"]
    partitions = table(person, f"/archive/runs/{run_id}/partitions.csv")
    assert partitions[0]["topic"]
    page = person.get(f"/archive/runs/{run_id}/groups?sort=name").content.decode()
    assert f'href="/archive/runs/{run_id}/groups.csv?sort=name"' in page
    assert f"/archive/runs/{run_id}/partitions.csv" in person.get(f"/archive/runs/{run_id}").content.decode()
    for name in ("groups", "partitions"):
        assert person.get(f"/archive/runs/{uuid.uuid4()}/{name}.csv").status_code == 404
