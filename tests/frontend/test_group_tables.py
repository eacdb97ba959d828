"""The tables of a group's page: filtered, sorted and paged by the URL, small however large the group is."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from frontend.pages.group import reads as queries
from frontend.pages.group.reads import Limits
from frontend.pages.group.tables import PAGE_ROWS, Table
from kcoord.database.pool import Database
from tests.frontend.seed import Seed, member_id, working_group
from tests.frontend.viewers import ALL

WORKERS, PARTITIONS = 120, 600


def fleet(seed: Seed) -> list[str]:
    """Members with five partitions each; the later the partition, the further behind; each seventh has no owner."""
    members = [member_id("fleet", number) for number in range(WORKERS)]
    pk = seed.group("fleet")
    seed.members(pk, members, client_id="fleet")
    seed.assign(pk, {("telemetry", p): members[p % WORKERS] for p in range(PARTITIONS) if p % 7})
    seed.commit(pk, {("telemetry", p): 5 for p in range(PARTITIONS)})
    seed.topic("telemetry", PARTITIONS, [5 + p for p in range(PARTITIONS)])
    return members


def rows(person: Client, address: str) -> list[str]:
    """The text of each row of the page's only table."""
    page = person.get(address).content.decode()
    body = page[page.index("<tbody>") : page.index("</tbody>")] if "<tbody>" in page else ""
    found = re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in found]


def test_members_are_found_by_host_and_sorted_by_lag(person: Client, seed: Seed) -> None:
    members = fleet(seed)
    first = rows(person, "/groups/fleet?tab=members&sort=lag")
    assert len(first) == PAGE_ROWS
    lags = [int(re.search(r"([\d,]+) ≥", row)[1].replace(",", "")) for row in first]  # type: ignore[index]
    assert lags == sorted(lags, reverse=True)
    assert lags[0] == max(sum(p for p in range(number, PARTITIONS, WORKERS) if p % 7) for number in range(WORKERS)), (
        "the lag of what it owns"
    )
    (found,) = rows(person, "/groups/fleet?tab=members&q=10.0.0.77")
    assert found.startswith("fleet @10.0.0.77")
    assert members[76][:14] in found
    assert len(rows(person, "/groups/fleet?tab=members&page=3")) == WORKERS - 2 * PAGE_ROWS
    assert "1–50 of 120" in person.get("/groups/fleet?tab=members").content.decode()
    assert "No member matches" in person.get("/groups/fleet?tab=members&q=nobody").content.decode()


@pytest.mark.parametrize("sort", ["client", "partitions", "heartbeat", "session"])
def test_every_order_shows_every_member_once(person: Client, seed: Seed, sort: str) -> None:
    fleet(seed)
    seen = [row for n in (1, 2, 3) for row in rows(person, f"/groups/fleet?tab=members&sort={sort}&page={n}")]
    assert len({row.split(" ")[1] for row in seen}) == len(seen) == WORKERS


def test_partitions_by_condition_owner_and_lag(person: Client, seed: Seed) -> None:
    members = fleet(seed)
    free = rows(person, "/groups/fleet?tab=offsets&only=unowned")
    assert [row.split(" ")[2] for row in free] == [str(p) for p in range(0, 7 * PAGE_ROWS, 7)]
    furthest = rows(person, "/groups/fleet?tab=offsets&sort=lag")
    assert furthest[0].split(" ")[2] == str(PARTITIONS - 1)
    mine = rows(person, f"/groups/fleet?tab=offsets&member={members[1]}")
    assert [int(row.split(" ")[2]) for row in mine] == [p for p in range(1, PARTITIONS, WORKERS) if p % 7]
    assert "fleet @10.0.0.2" in mine[0]
    assert "No partition is like that" in person.get("/groups/fleet?tab=offsets&only=never").content.decode()
    last = rows(person, "/groups/fleet?tab=offsets&page=12")
    assert len(last) == PAGE_ROWS
    assert last[-1].split(" ")[2] == str(PARTITIONS - 1)


def test_a_partition_leads_to_the_reset_of_its_offset(operator: Client, seed: Seed) -> None:
    fleet(seed)
    page = operator.get("/groups/fleet?tab=offsets&sort=lag").content.decode()
    link = re.search(r'<a class="kick" href="([^"]+)" aria-label="Reset telemetry 599">', page)
    assert link is not None
    form = operator.get(unescape(link[1])).content.decode()
    assert re.search(r'name="scope" value="chosen" checked', form)
    assert re.search(r'value="to-offset" required checked', form)
    assert re.search(r'name="n:telemetry" value="599"', form)


def test_a_partition_leads_nowhere_without_the_right(person: Client, seed: Seed) -> None:
    fleet(seed)
    disabled = person.get("/groups/fleet?tab=offsets").content.decode()
    assert re.search(r'<button[^>]* disabled aria-label="Reset telemetry', disabled)
    assert 'aria-label="Reset telemetry 599">Reset…</a>' not in disabled
    assert "your account needs alter-offsets on group fleet" in disabled


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("tab=everything", "is not one of overview, members, offsets"),
        ("tab=members&sort=luck", "sort: &#x27;luck&#x27; is not one of"),
        ("tab=members&page=0", "page: from 1 to 200"),
        ("tab=offsets&page=201", "page: from 1 to 200"),
        ("tab=offsets&only=luck", "only: &#x27;luck&#x27; is not one of"),
    ],
)
def test_a_tab_that_does_not_exist(person: Client, seed: Seed, query: str, says: str) -> None:
    seed.group("g")
    answer = person.get(f"/groups/g?{query}")
    assert answer.status_code == 400
    assert says in answer.content.decode()


def test_each_tab_is_linked_and_keeps_the_search(person: Client, seed: Seed) -> None:
    working_group(seed)
    page = person.get("/groups/billing?tab=members&topic=ord").content.decode()
    nav = page[page.index('<nav class="tabs"') :]
    nav = nav[: nav.index("</nav>")]
    assert re.findall(r'href="([^"]+)"( aria-current)?', nav)[:3] == [
        ("/groups/billing?topic=ord", ""),
        ("/groups/billing?tab=members&amp;topic=ord", " aria-current"),
        ("/groups/billing?tab=offsets&amp;topic=ord", ""),
    ]


async def test_time_lag_without_older_samples_is_a_lower_bound(seed: Seed, db: Database) -> None:
    fleet(seed)
    found = await queries.group_page(db, ALL, "fleet", Limits(offset_table=Table(sort="lag")))
    assert found is not None
    row = found.offsets[0]
    assert found.offset_table.time_lag(row.topic, row.partition).at_least_ms is not None
    assert found.offset_table.matching == PARTITIONS


def test_a_row_says_what_the_client_of_the_member_calls_itself(person: Client, seed: Seed) -> None:
    members = fleet(seed)
    seed.connection.execute(
        "insert into groups_clientsoftware (client_id, client_host, name, version, seen_at)"
        " values ('fleet', '10.0.0.2', 'apache-kafka-java', '4.3.1', 1), ('other', '10.0.0.1', 'librdkafka', '2', 1)"
    )
    first, second = rows(person, "/groups/fleet?tab=members")[:2]
    assert members[0][:14] in first
    assert "librdkafka" not in first
    assert members[1][:14] in second
    assert "apache-kafka-java 4.3.1" in second


def test_without_watermarks_the_lag_of_members_is_not_known(person: Client, seed: Seed) -> None:
    working_group(seed)
    found = rows(person, "/groups/billing?tab=members")
    assert all(re.search(r"payments [\d, –]+ – reads 0/min \d+ s ago", row) for row in found), found


def test_the_explanation_and_the_next_timer_write_the_same_instant(person: Client, seed: Seed) -> None:
    pk = seed.group("g", "PreparingRebalance", join_deadline_in=299_500)
    seed.members(pk, ["m1", "m2"], joined=[True, False], session_timeout_ms=3_600_000)
    page = person.get("/groups/g").content.decode()
    waits = re.search(r"The wait ends</span> (<time.*?</time>)", page)
    timer = re.search(r"Next timer</dt><dd><span>(<time.*?</time>)", page)
    assert waits
    assert timer
    assert waits[1] == timer[1]
    assert "in 4 min" in waits[1]
