"""How fast members read, by what they committed in the last minutes."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from frontend.ui import members as rates
from frontend.ui.members import LEAST_MS, MINUTE_MS, WINDOW_MS, Progress, member_rates, per_minute
from frontend.ui.page import member_url
from kcoord.database.pool import Database
from tests.frontend.seed import Seed, now_ms
from tests.frontend.test_exports import table
from tests.frontend.viewers import viewer


def committed(seed: Seed, pk: int, member: str, topic: str, partition: int, *lines: tuple[int, int]) -> None:
    """Commits of a member (how long ago in ms, the offset), the newest last."""
    for ago, offset in lines:
        seed.journal("g", "commit", topic, partition, offset, ms_ago=ago, member_id=member, generation=3)
    ago, offset = lines[-1]
    seed.commit(pk, {(topic, partition): offset}, ms_ago=ago)
    seed.connection.execute(
        "update offsets_committedoffset set member_id = %s where group_id = %s and topic = %s and partition = %s",
        [member, pk, topic, partition],
    )


@pytest.fixture
def group(seed: Seed) -> int:
    """A group of members a to e, of which a owns two partitions."""
    pk = seed.group("g", generation=3)
    seed.members(pk, ["a", "b", "c", "d", "e"], client_id="w")
    seed.assign(pk, {("t", 0): "a", ("u", 0): "a", ("t", 1): "b", ("t", 2): "c", ("t", 3): "d"})
    committed(seed, pk, "a", "t", 0, (WINDOW_MS + 60_000, 0), (240_000, 1_000), (120_000, 1_500), (1_000, 3_000))
    committed(seed, pk, "a", "u", 0, (120_000, 100), (2_000, 2_100))
    # It took the partition over; what its former owner committed is not its own.
    seed.journal("g", "commit", "t", 1, 5, ms_ago=200_000, member_id="gone", generation=2)
    committed(seed, pk, "b", "t", 1, (60_000, 50_000), (3_000, 50_600))
    committed(seed, pk, "c", "t", 2, (LEAST_MS // 3, 10), (1_000, 20))
    committed(seed, pk, "d", "t", 3, (WINDOW_MS + 60_000, 7))
    return pk


async def found(db: Database, group: int, *members: str, most: int = 100, rules: str = "*") -> dict[str, int]:
    parameters = {"pk": group, "group_id": "g", **viewer(f"describe:topic:{rules}").parameters()}
    async with db.snapshot() as connection:
        return await member_rates(db, connection, parameters, members, now_ms(), most)


def test_a_rate_is_that_of_the_time_since_the_first_commit() -> None:
    assert per_minute(Progress("m", 4_000, 0), 4 * MINUTE_MS) == 1_000
    assert per_minute(Progress("m", 4_000, 0), LEAST_MS - 1) is None
    assert per_minute(Progress("m", None, None), 5) == 0


async def test_members_are_rated_by_their_own_commits(db: Database, group: int) -> None:
    asked = await found(db, group, "a", "b", "c", "d", "e")
    assert asked["a"] == pytest.approx(4_000 / 4, rel=0.02)
    assert asked["b"] == pytest.approx(600, rel=0.05)
    assert asked["d"] == 0
    assert set(asked) == {"a", "b", "d"}, "c has just begun, e owns nothing"
    assert set(await found(db, group, "a")) == {"a"}


async def test_who_owns_too_much_is_not_rated(db: Database, group: int) -> None:
    assert set(await found(db, group, "a", "b", most=1)) == {"b"}


async def test_only_topics_that_can_be_seen_count(db: Database, group: int) -> None:
    assert (await found(db, group, "a", rules="u"))["a"] == pytest.approx(1_000, rel=0.02)


async def test_a_bounded_part_of_the_journal_is_searched(
    db: Database, seed: Seed, group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "MOST_LINES", 1)
    assert (await found(db, group, "b"))["b"] == 0


def test_the_pages_say_how_fast_members_read(person: Client, seed: Seed, group: int) -> None:
    def rate(text: str) -> int:
        return int(text.replace(",", ""))

    page = person.get("/groups/g?tab=members").content.decode()
    assert [rate(text) for text in re.findall(r">reads ([\d,]+)/min<", page)] == [
        pytest.approx(1_000, rel=0.05),
        pytest.approx(600, rel=0.1),
        0,
    ]
    own_page = person.get(member_url("g", "a")).content.decode().replace("<wbr>", "")
    (own,) = re.findall(r"Reads</dt><dd><span class=\"figure\">([\d,]+)<", own_page)
    assert rate(own) == pytest.approx(1_000, rel=0.05)
    files = {row["member_id"]: row["records_per_minute"] for row in table(person, "/groups/g/members.csv")}
    assert (files["d"], files["c"], files["e"]) == ("0", "", "")
