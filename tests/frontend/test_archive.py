"""The pages of the archive: runs, their logs, findings, and who may start and cancel."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django_celery_beat.models import CrontabSchedule, PeriodicTask

from frontend.pages.archive.reports import day_plots
from frontend.pages.archive.view import FINDINGS, PAGE_SIZE, evidence, run_line
from frontend.ui.states import RUN_KINDS as KINDS
from frontend.ui.states import RUN_STATES as STATES
from kcoord.spark_packages import SparkPackages, SparkState
from offsets.models import ReconcileFinding, SparkRun
from offsets.runs.findings import FindingView
from offsets.runs.service import SparkRuns
from tests.frontend.seed import Seed
from tests.frontend.viewers import allow
from tests.support.spark_runs import put_day, put_finding, put_run


def plain(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page[page.index("<main") :]).split())


def text_of(client: Client, address: str, status: int = 200) -> str:
    """What a page says."""
    answer = client.get(address)
    assert answer.status_code == status, answer.content.decode()
    return plain(answer.content.decode())


def test_every_kind_and_state_has_its_words() -> None:
    assert set(KINDS) == set(SparkRun.Kind.values)
    assert set(STATES) == set(SparkRun.State.values)
    assert set(FINDINGS) == set(ReconcileFinding.Kind.values)


def test_evidence_in_words() -> None:
    said = {"journal_ids": [4, 5], "members": ["a", "b"], "instants": [0], "generation": 3, "empty": []}
    found = FindingView(1, "rewind", "g", "t", 0, 1, 2, said)
    assert evidence(found, {}) == "journal 4, 5 · generation 3 · at 1970-01-01 00:00:00.000 UTC · members a, b"
    line = {"id": 4, "at": 0, "committed_offset": 12_000, "metadata": "m" * 50, "leader_epoch": None}
    other = FindingView(1, "other_metadata", "g", "t", 0, 1, 2, {"metadata": ["one", ""], "line": line})
    assert evidence(other, {}) == (
        f"last line of 1970-01-01 00:00:00.000 UTC: offset 12,000, metadata “{'m' * 40}…” · "
        "metadata “one” in the journal, “” committed"
    )
    assert evidence(found, {"b": "billing@10.0.0.9"}).endswith("members a, billing@10.0.0.9 (b)")


def test_without_archive_the_page_says_what_to_set(operator: Client) -> None:
    page = text_of(operator, "/archive")
    assert "KCOORD_ARCHIVE_PATH" in page
    assert "No runs yet" in page
    assert "Run…" not in page


def test_runs_with_what_they_did(person: Client, seed: Seed, archived: None) -> None:
    done = put_run(seed.connection, "archive", rows=12_345, files=3, bytes=4_096, result={"manifest": 7, "days": [1]})
    put_day(seed.connection, done, 20_000)
    put_run(seed.connection, "reconcile", findings=3, rows=99)
    put_run(seed.connection, "report", "failed", error="no room on the disk", ago_ms=0)
    page = text_of(person, "/archive")
    assert "/var/archive" in page
    assert "Archive Succeeded" in page
    assert "30 s 12,345 1" in page
    assert "Failed no room on the disk" in page
    assert "Findings 3" in page
    assert "Failed" not in text_of(person, "/archive?kind=archive").partition("Findings By")[2]
    assert "There is no run of import" in text_of(person, "/archive?kind=import")
    one = text_of(person, f"/archive/runs/{done}")
    assert "Rows 12,345" in one
    assert "Manifest 7" in one
    assert "To see the log of a run" in one


def test_a_run_that_goes_on_shows_how_far_it_is(person: Client, seed: Seed, archived: None) -> None:
    run_id = put_run(seed.connection, "archive", "running", ago_ms=0, slices_done=3, slices_total=8, stage="read")
    for address in ("/archive", f"/archive/runs/{run_id}"):
        page = person.get(address).content.decode()
        assert '<progress max="8" value="3"' in page
        assert "3 of 8 slices" in plain(page)
    put_run(seed.connection, "report", "requested", ago_ms=0)
    assert "Starting" in text_of(person, "/archive")


def test_a_dead_run_is_shown_as_lost(person: Client, seed: Seed) -> None:
    run_id = put_run(seed.connection, "archive", "running", ago_ms=100_000)
    assert "Lost" in text_of(person, f"/archive/runs/{run_id}")
    assert "Lost" in text_of(person, "/archive")


def test_many_runs_come_in_pages(person: Client, seed: Seed) -> None:
    for number in range(PAGE_SIZE + 5):
        put_run(seed.connection, ago_ms=number * 1_000)
    page = person.get("/archive").content.decode()
    assert page.count('scope="row"') == PAGE_SIZE
    older = re.search(r'rel="next" href="([^"]+)"', page)
    assert older is not None
    assert person.get(older[1].replace("&amp;", "&")).content.decode().count('scope="row"') == 5
    assert "start again" in text_of(person, "/archive?after=nonsense", 400)


def job(client: Client, name: str) -> str:
    html = client.get("/archive").content.decode()
    return plain("<main" + html.partition(f'aria-labelledby="job-{name}"')[2].partition("</section>")[0])


@pytest.fixture
def weekly(seed: Seed) -> Iterator[CrontabSchedule]:
    """A schedule; what migrations scheduled is as it was afterwards, for other tests."""
    schedule = CrontabSchedule.objects.create(minute="30", hour="2", day_of_week="1", timezone="Europe/Berlin")
    yield schedule
    schedule.periodictask_set.all().delete()
    schedule.delete()
    PeriodicTask.objects.filter(task="offsets.archive").update(enabled=True)


def test_each_job_says_how_it_went_last_and_when_it_runs(
    operator: Client, seed: Seed, archived: None, weekly: CrontabSchedule
) -> None:
    assert "Last success never Schedule Every day at 03:00 UTC" in job(operator, "archive")
    assert "Schedule Only by hand" in job(operator, "report")
    put_run(seed.connection, "archive", rows=12_345)
    put_run(seed.connection, "archive", "failed", error="no room on the disk", ago_ms=0)
    put_run(seed.connection, "reconcile", findings=3, rows=99)
    put_run(seed.connection, "reconcile", "running", ago_ms=0, slices_done=3, slices_total=8)
    archive = job(operator, "archive")
    assert "Last run Failed now no room on the disk Last success 29 s ago 12,345 rows in 30 s" in archive
    reconcile = job(operator, "reconcile")
    assert "Running" in reconcile
    assert "3 of 8 slices" in reconcile
    assert "Findings 3" in reconcile
    assert "Run…" not in reconcile
    PeriodicTask.objects.filter(task="offsets.archive").update(enabled=False)
    PeriodicTask.objects.create(name="reports", task="offsets.report", crontab=weekly)
    assert "Schedule Only by hand" in job(operator, "archive")
    assert "Schedule 30 2 * * 1 Europe/Berlin" in job(operator, "report")


def test_starting_and_cancelling_take_permissions(person: Client, seed: Seed, archived: None) -> None:
    run_id = put_run(seed.connection, "archive", "requested", ago_ms=0)
    for address in ("/archive/start?kind=reconcile", f"/archive/runs/{run_id}/cancel"):
        assert person.get(address).status_code == 403
        assert person.post(address).status_code == 403
    for address, button in (("/archive", "Run…"), (f"/archive/runs/{run_id}", "Cancel…")):
        html = person.get(address).content.decode()
        assert re.search(rf"<button[^>]* disabled[^>]*>{button}</button>", html), "shown, but disabled"
        assert "your account needs admin on the cluster" in plain(html)
        assert "/archive/start" not in html
        assert "/cancel" not in html
    assert "your account needs admin on the cluster" in plain(html)
    mara = get_user_model().objects.get(username="mara")
    allow(mara, "admin:cluster:*")
    assert "/archive/start?kind=reconcile" in person.get("/archive").content.decode()
    assert "separate process" in text_of(person, "/archive/start?kind=reconcile")
    answer = person.post(f"/archive/runs/{run_id}/cancel")
    assert answer.status_code == 302
    assert "Cancelled" in text_of(person, f"/archive/runs/{run_id}")
    refused = person.post(f"/archive/runs/{run_id}/cancel")
    assert refused.status_code == 409
    assert "has already ended" in plain(refused.content.decode())
    page = person.get(f"/archive/runs/{run_id}/cancel").content.decode()
    assert "nothing to cancel" in page
    assert "Cancel the run" not in page


def test_a_run_is_started_from_its_page(
    operator: Client, seed: Seed, archived: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def start(self: SparkRuns, kind: str, *, principal: str) -> object:
        asked.append((kind, principal))
        return await self.run(put_run(seed.connection, kind, "requested", ago_ms=0))

    monkeypatch.setattr(SparkRuns, "start", start)
    answer = operator.post("/archive/start?kind=reconcile")
    assert answer.status_code == 302
    assert asked == [("reconcile", "root")]
    assert "Reconcile has been started." in text_of(operator, answer.headers["Location"])
    assert "Its process is starting" in text_of(operator, answer.headers["Location"])


def test_without_archive_a_start_is_refused_on_the_page(operator: Client, seed: Seed) -> None:
    page = operator.get("/archive/start?kind=archive").content.decode()
    assert re.search(r"<button[^>]* disabled[^>]*>Start</button>", page)
    assert "It cannot be started: no archive is configured." in plain(page)
    refused = operator.post("/archive/start?kind=archive")
    assert refused.status_code == 409
    assert "KCOORD_ARCHIVE_PATH" in plain(refused.content.decode())


@pytest.mark.parametrize("state", [SparkState.INSTALLING, SparkState.INTERRUPTED, SparkState.MISSING])
def test_the_pages_say_that_the_spark_packages_are_not_there(
    operator: Client, seed: Seed, archived: None, monkeypatch: pytest.MonkeyPatch, state: SparkState
) -> None:
    found = SparkPackages(state, 7)
    for module in ("frontend.pages.archive.view", "offsets.runs.service"):
        monkeypatch.setattr(f"{module}.spark_packages", lambda: found)
    listed, page = (operator.get(path).content.decode() for path in ("/archive", "/archive/start?kind=archive"))
    for html in (listed, page):
        assert ("being installed, 7 s" if found.may_start else "make spark") in plain(html)
    assert ("/archive/start?kind=archive" in listed) == found.may_start
    assert bool(re.search(r"<button[^>]* disabled[^>]*>Start</button>", page)) != found.may_start
    if not found.may_start:
        refused = operator.post("/archive/start?kind=archive")
        assert refused.status_code == 409
        assert "make spark" in plain(refused.content.decode())


def test_a_form_from_elsewhere_starts_nothing(seed: Seed) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(get_user_model().objects.create_superuser("root", password="correct horse battery"))
    assert client.post("/archive/start?kind=archive").status_code == 403


def test_a_report_is_drawn_by_day(person: Client, seed: Seed) -> None:
    days = [
        {"date": "2026-01-01", "groups": 1, "commits": 5, "consumed": 100, "rewinds": 0},
        {"date": "2026-01-04", "groups": 2, "commits": 7, "consumed": 1_900, "rewinds": 1},
    ]
    drawn = {one.name: one for one in day_plots({"days": days})}
    assert [one.plot.steps for one in drawn.values()] == [4, 4, 4]
    assert "|0|" in drawn["commits"].plot.lines[0].values, "days without commits are drawn as 0"
    assert (drawn["commits"].total, drawn["consumed"].plot.y_ticks[-1].label) == (12, "2,000")
    assert day_plots(None) == day_plots({"days": []}) == day_plots({"days": [5]}) == []
    run_id = put_run(seed.connection, "report", rows=12, result={"days": days, "tables": {}})
    page = text_of(person, f"/archive/runs/{run_id}")
    assert "Records consumed a day 2,000 in total" in page
    assert "from 2026-01-01 to 2026-01-04" in page


def test_findings_by_kind_and_group(person: Client, seed: Seed) -> None:
    assert "Not reconciled yet" in text_of(person, "/archive/findings")
    run_id = put_run(seed.connection, "reconcile", findings=0)
    assert "No findings" in text_of(person, "/archive/findings")
    put_finding(seed.connection, run_id, 1, "rewind", "billing", "orders", expected=1_000, found=7)
    put_finding(seed.connection, run_id, 2, "missing_in_view", "a/b", "bills", found=None)
    page = text_of(person, "/archive/findings")
    assert "2 findings" in page
    assert "billing Rewind orders 0 1,000 7 journal 1" in page
    assert "Missing offset bills 0 10 none journal 2" in page
    assert "bills 0" not in text_of(person, "/archive/findings?kind=rewind")
    assert "bills 0" in text_of(person, "/archive/findings?group=a/b")
    assert "Reconcile found nothing of this kind" in text_of(person, "/archive/findings?kind=two_members")
    assert "No such run" in text_of(person, f"/archive/findings?run={uuid.uuid4()}", 404)
    html = person.get("/archive/findings").content.decode()
    assert 'href="/groups/a%2Fb"' in html


def test_a_run_with_more_findings_than_are_stored_says_so(person: Client, seed: Seed) -> None:
    run_id = put_run(seed.connection, "reconcile", findings=500)
    put_finding(seed.connection, run_id, 1)
    assert "500 findings, the first 1 of them here" in text_of(person, "/archive/findings")
    forgotten = put_run(seed.connection, "reconcile", findings=3, ago_ms=900_000)
    assert "No longer kept" in text_of(person, f"/archive/findings?run={forgotten}")


def test_the_page_of_a_group_names_its_findings(person: Client, seed: Seed) -> None:
    seed.group("billing", "Empty")
    older = put_run(seed.connection, "reconcile", ago_ms=200_000)
    put_finding(seed.connection, older, 1, group="billing")
    assert "Reconcile found 1 finding in this group" in text_of(person, "/groups/billing")
    newer = put_run(seed.connection, "reconcile")
    assert "Reconcile found" not in text_of(person, "/groups/billing"), "the newest run found nothing"
    put_finding(seed.connection, newer, 1, group="other")
    assert "Reconcile found" not in text_of(person, "/groups/billing")


def test_pages_of_runs_that_are_not_there(operator: Client) -> None:
    run_id = uuid.uuid4()
    missing = text_of(operator, f"/archive/runs/{run_id}", 404)
    assert "No such run" in missing
    assert 'class="button" href="/archive">Archive<' in operator.get(f"/archive/runs/{run_id}").content.decode()
    assert "No such run" in text_of(operator, f"/archive/runs/{run_id}/cancel", 404)
    assert operator.post(f"/archive/runs/{run_id}/cancel").status_code == 404
    assert operator.get("/archive/runs/nonsense").status_code == 404


def test_a_run_of_an_unknown_state_is_shown(seed: Seed) -> None:
    from dataclasses import replace

    from kcoord.process import bridge

    put_run(seed.connection)
    (run,) = bridge.call(lambda runtime: runtime.get(SparkRuns).runs()).items
    line = run_line(replace(run, state="new", kind="new"), 0, "/")
    assert (line.kind, line.state.label) == ("new", "new")
    bridge.close()
