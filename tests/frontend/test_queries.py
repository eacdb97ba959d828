"""Read models on a real database: pages by key, filters, and limits that hold whatever the tables hold."""

from __future__ import annotations

import pytest

from frontend.pages.group import present as presenters
from frontend.pages.group import reads as queries
from frontend.pages.group.reads import Limits
from frontend.ui.reads import Wanted, events_of
from kcoord.database.pool import Connection, Database
from tests.frontend.seed import Seed, member_id, now_ms, working_group
from tests.frontend.viewers import ALL


async def test_group_page(seed: Seed, db: Database) -> None:
    members = working_group(seed)
    seed.topic("orders", 13, [11_000] * 12)
    page = await queries.group_page(db, ALL, "billing", Limits())
    assert page is not None
    assert [member.member_id for member in page.members] == members
    assert [(topic.topic, topic.partitions, topic.size, topic.owned) for topic in page.topics] == [
        ("orders", 13, 13, 12),
        ("payments", None, 6, 6),
    ]
    assert {owner.member_id for owner in page.owners} == set(members)
    assert (page.totals.partitions, page.totals.committed, page.totals.measured) == (18, 16, 12)
    assert page.totals.lag == sum(max(11_000 - (10_400 + 37 * p), 0) for p in range(12))
    assert sum(row.lag or 0 for row in page.offsets) == page.totals.lag
    assert page.offsets[-1].committed_offset is None
    assert page.earliest_timer is not None
    assert page.earliest_timer.member_id == members[-1]
    assert [event.kind for event in page.events][:2] == ["assignment_stored", "rebalance_completed"]
    assert abs(page.now - now_ms()) < 60_000


async def test_an_offset_below_the_start_of_the_log_lags_from_the_start(seed: Seed, db: Database) -> None:
    pk = seed.group("g", "Empty")
    seed.commit(pk, {("t", 0): 10})
    seed.topic("t", 1, [500])
    seed.connection.execute("update groups_watermark set log_start_offset = 400")
    page = await queries.group_page(db, ALL, "g", Limits())
    assert page is not None
    assert page.totals.lag == page.offsets[0].lag == 100


async def test_there_is_no_page_of_a_group_that_is_not_there(db: Database, seed: Seed) -> None:
    assert await queries.group_page(db, ALL, "nobody", Limits()) is None


class Counting(Database):
    """Counts statements and the rows they return."""

    statements = 0
    fetched = 0

    async def rows(self, connection: Connection, statement: str, parameters: object = None) -> list[object]:  # type: ignore[override]
        found = await super().rows(connection, statement, parameters)  # type: ignore[arg-type]
        self.statements += 1
        self.fetched += len(found)
        return found  # type: ignore[return-value]


def huge_group(seed: Seed) -> None:
    """1,000 members, 5,000 partitions, 300 events."""
    members = [member_id("fleet", number) for number in range(1_000)]
    pk = seed.group("fleet")
    seed.members(pk, members)
    owners = {("telemetry", p): members[p % 1_000] for p in range(4_000)}
    owners |= {(f"shard-{t:02}", p): members[(p + t) % 1_000] for t in range(20) for p in range(50)}
    seed.assign(pk, owners)
    seed.commit(pk, dict.fromkeys(owners, 5))
    for number in range(300):
        seed.event("fleet", "member_joined", 1, members[number])


async def test_the_page_of_a_huge_group_reads_a_bounded_number_of_rows(seed: Seed, db: Database) -> None:
    working_group(seed)
    huge_group(seed)
    counting = Counting(db.conninfo, db._config)
    await counting.open()
    assert await queries.group_page(counting, ALL, "billing", Limits()) is not None
    statements, counting.fetched = counting.statements, 0
    page = await queries.group_page(counting, ALL, "fleet", Limits())
    await counting.close()
    assert page is not None
    assert counting.statements == 2 * statements, "as many statements as for a small group"
    limits = Limits()
    per_member = 8  # a member of this group owns partitions of so many topics at most
    bound = limits.members * (1 + per_member) + limits.topics + 1 + limits.cells + limits.offsets + limits.events + 1
    assert counting.fetched <= bound
    assert page.counts.members == 1_000
    assert page.totals.partitions == 5_000
    assert page.more_topics
    assert page.more_events


async def test_the_page_of_a_group_of_many_topics_reads_the_first_and_finds_the_others(
    seed: Seed, db: Database
) -> None:
    names = [f"topic-{number:04}" for number in range(2_000)]
    owner = member_id("wide", 0)
    pk = seed.group("wide")
    seed.members(pk, [owner])
    seed.assign(pk, {(name, 0): owner for name in names})
    seed.commit(pk, {(name, 0): 5 for name in names[:500]})
    counting = Counting(db.conninfo, db._config)
    await counting.open()
    page = await queries.group_page(counting, ALL, "wide", Limits())
    await counting.close()
    assert page is not None
    limits = Limits()
    assert counting.fetched <= 1 + 4 * (limits.topics + 1) + limits.member_topics + limits.offsets
    assert (page.totals.topics, page.totals.partitions, page.totals.committed) == (2_000, 2_000, 500)
    assert [topic.topic for topic in page.topics] == names[: limits.topics]
    assert page.more_topics
    assert [owned.topic for owned in page.owned] == names[: limits.member_topics]
    (line,) = presenters.group(page, 50, {}, (), None)["members"]
    assert line.more_owned == 2_000 - limits.member_topics

    found = await queries.group_page(db, ALL, "wide", Limits(q="PIC-199"))
    assert found is not None
    assert [topic.topic for topic in found.topics] == names[1_990:]
    assert {offset.topic for offset in found.offsets} == {lag.topic for lag in found.lag.topics} == set(names[1_990:])
    assert found.totals == page.totals, "totals are of all topics, whatever is searched"
    nothing = await queries.group_page(db, ALL, "wide", Limits(q="no such topic"))
    assert nothing is not None
    assert (nothing.topics, list(nothing.lag.topics), nothing.totals) == ((), [], page.totals)


@pytest.mark.whole("writes many rows to see that what is read is bounded")
async def test_everything_of_a_huge_group_can_be_asked_for(seed: Seed, db: Database) -> None:
    huge_group(seed)
    page = await queries.group_page(db, ALL, "fleet", Limits(10_000, 1_000, 10_000, 10_000, 10_000))
    assert page is not None
    assert len(page.members) == 1_000
    assert len(page.owners) == len(page.offsets) == 5_000
    assert len(page.events) == 300


async def test_history_goes_on_where_the_page_before_ended_and_outlives_the_group(seed: Seed, db: Database) -> None:
    for number in range(7):
        seed.event("gone", "group_created", number)
    first = await events_of(db, ALL, "gone", Wanted(), limit=3)
    assert first.type is None
    assert first.more
    second = await events_of(db, ALL, "gone", Wanted(first.events[-1].id), limit=10)
    assert [event.generation_id for event in (*first.events, *second.events)] == [6, 5, 4, 3, 2, 1, 0]
    assert not second.more
