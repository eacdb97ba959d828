"""The map of partitions: what its cells say, and what the URL isolates."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.frontend.seed import Seed, member_id, now_ms, reconciling_group

CELL = re.compile(r'<span class="(cell [^"]*)" data-owner="[^"]*" title="(\d+): ([^"]*)"')


def group(seed: Seed, owners: int = 3, partitions: int = 24) -> list[str]:
    """A group in which the last partition has no owner, the first is unread, and lag grows with the number."""
    members = [member_id("fleet", number) for number in range(owners)]
    pk = seed.group("fleet", since_ms_ago=3_600_000)
    seed.members(pk, members, client_id="fleet")
    seed.topic("telemetry", partitions, [10 + partition**4 for partition in range(partitions)])
    seed.assign(pk, {("telemetry", p): members[p % owners] for p in range(partitions - 1)})
    seed.commit(pk, {("telemetry", p): 10 for p in range(1, partitions)}, ms_ago=1_800_000)
    return members


def cells(person: Client, query: str = "") -> dict[int, tuple[set[str], str]]:
    """Classes and title of each cell."""
    page = person.get(f"/groups/fleet{query}").content.decode()
    return {int(number): (set(classes.split()), title) for classes, number, title in CELL.findall(page)}


def lit(person: Client, query: str) -> set[int]:
    """The partitions that are isolated."""
    found = cells(person, query)
    assert found
    return {number for number, (classes, _) in found.items() if "dim" not in classes}


def test_each_isolation(person: Client, seed: Seed) -> None:
    members = group(seed)
    assert lit(person, "") == set(range(24))
    assert lit(person, f"?owner={members[1]}") == {p for p in range(23) if p % 3 == 1}
    assert lit(person, "?mark=unowned") == {23}
    assert lit(person, "?mark=behind") == set(range(1, 24))
    assert lit(person, "?partition=7") == {7}
    assert lit(person, f"?owner={members[1]}&mark=behind&partition=8") == set()
    page = person.get(f"/groups/fleet?owner={members[1]}&mark=behind").content.decode()
    assert 'Shown: <span class="figure">1, 4, 7, 10, 13, 16, 19, 22</span>' in page, "also as text"
    assert re.search(r'aria-current="true"[^>]*><span class="swatch o1"', page), "the legend says what is chosen"


def test_partitions_that_change_hands_are_isolated(person: Client, seed: Seed) -> None:
    reconciling_group(seed)
    page = person.get("/groups/ledger?mark=moving").content.decode()
    assert {int(number) for classes, number, _ in CELL.findall(page) if "dim" not in classes} == {4, 5}


def test_stalled_partitions_are_those_of_the_verdict(person: Client, seed: Seed) -> None:
    group(seed)
    seed.connection.execute(
        "insert into offsets_watermarksample (topic_id, partition, at, until, log_start_offset, log_end_offset)"
        " select topic_id, partition, %(at)s, %(at)s, 0, log_end_offset from groups_watermark",
        {"at": now_ms() - 3_000_000},
    )
    found = cells(person)
    stalled = {number for number, (classes, _) in found.items() if "stalled" in classes}
    assert "Stalled" in person.get("/groups/fleet").content.decode()
    assert len(stalled) > 5, "all of them, though a stored verdict names five"
    assert stalled == lit(person, "?mark=stalled")
    assert found[max(stalled)][1].endswith("no progress")


def test_a_partition_that_is_asked_for_is_told_in_words(person: Client, seed: Seed) -> None:
    members = group(seed)
    page = person.get("/groups/fleet?partition=3").content.decode()
    assert f"telemetry 3: fleet@10.0.0.1 ({members[0][6:14]}…), 81 behind" in page
    assert f'/groups/fleet/members/{members[0]}">Its owner' in page
    assert "No topic drawn here has a partition 24." in person.get("/groups/fleet?partition=24").content.decode()


@pytest.mark.parametrize("query", ["?mark=odd", "?partition=x", "?partition=99999999999", "?cells=colour"])
def test_an_isolation_that_does_not_exist_is_refused(person: Client, seed: Seed, query: str) -> None:
    group(seed)
    assert person.get(f"/groups/fleet{query}").status_code == 400


def test_more_owners_than_colours_show_lag_and_name_owners_on_demand(person: Client, seed: Seed) -> None:
    members = group(seed, owners=13)
    page = person.get("/groups/fleet").content.decode()
    assert "up to 10,000" in page
    found = cells(person)
    assert [found[number][0] & {"l0", "l1", "l2", "l3", "l4", "unread"} for number in (0, 1, 10, 22)] == [
        {"unread"}, {"l1"}, {"l2"}, {"l3"},
    ]  # fmt: skip
    assert not any(re.fullmatch(r"o\d+", name) for classes, _ in found.values() for name in classes)
    assert "fleet@10.0.0.3" in found[2][1]
    assert lit(person, f"?owner={members[12]}") == {12}, "a member can be isolated all the same"


def test_what_is_counted_of_a_map_that_does_not_fit_is_said(person: Client, seed: Seed) -> None:
    """3,000 partitions, of which those at the ends have no owner; only the first are drawn."""
    worker = member_id("wide", 0)
    pk = seed.group("wide", leader=worker)
    seed.members(pk, [worker])
    seed.topic("telemetry", 3_000)
    seed.assign(pk, {("telemetry", partition): worker for partition in range(1, 2_999)})
    seed.commit(pk, {("telemetry", partition): 1 for partition in range(3_000)})
    page = person.get("/groups/wide").content.decode()
    assert "3,000 partitions, 2 without an owner" in page
    assert "No owner among those drawn: 0</p>" in page


def test_lag_can_be_shown_instead_of_owners(person: Client, seed: Seed) -> None:
    group(seed)
    assert "o0" in cells(person)[0][0]
    found = cells(person, "?cells=lag")
    assert "o0" not in found[0][0]
    assert "l1" in found[1][0]
