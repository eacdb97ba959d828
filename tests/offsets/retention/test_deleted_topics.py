"""Offsets of a deleted topic go with it, of all groups; those of a later topic of the same name stay."""

from __future__ import annotations

import psycopg
import pytest

from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.commits.retention import deleted_topics
from offsets.commits.retention.deleted_topics import SETTLE_MS, DeletedTopicSweep, SweepFailed
from tests.support.offsets import commit, events, journal, make_topics, put_pending, rows, stored
from tests.support.rest_groups import group, member

NOTED = "select topic, swept from offsets_deletedtopic order by id"


@pytest.fixture
def config() -> Config:
    """Three offsets are a batch; statements give up soon."""
    return Config({"offsets.retention.batch": 3, "database.statement.timeout.ms": 300})


@pytest.fixture
def sweep(runtime: Runtime) -> DeletedTopicSweep:
    """The sweep of this process."""
    return runtime.get(DeletedTopicSweep)


@pytest.fixture
def topics(runtime: Runtime) -> TopicService:
    """The catalogue."""
    return runtime.get(TopicService)


@pytest.fixture(autouse=True)
async def made(runtime: Runtime) -> None:
    """Two topics."""
    await make_topics(runtime, orders=10, bills=1)


async def no_follow_up(runtime: Runtime, topic: str) -> None:
    """The process died right after the deletion."""


@pytest.fixture
def left_to_celery(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletions are noted and nothing more."""
    from groups import topics as topic_deletion

    monkeypatch.setattr(topic_deletion, "_hooks", [(deleted_topics.note, no_follow_up)])


async def test_committed_and_pending_offsets_of_all_groups_go_before_the_deletion_is_answered(
    runtime: Runtime, topics: TopicService, service: GroupService
) -> None:
    await service.put(group("reader", GroupState.STABLE, member("m", 0)))
    await commit(runtime, "reader", "orders", 0, member_id="m", generation_id=1)
    await commit(runtime, "g", "orders", *range(7))
    await commit(runtime, "g", "bills", 0)
    await put_pending(runtime, "g", "orders", 9)
    await topics.delete("orders", principal="ops")
    assert await stored(runtime) == [("g", "bills", 0, 5)]
    assert await rows(runtime, "select * from offsets_pendingoffset") == []
    lines = await journal(runtime, "topic_delete")
    assert lines == [("g", "orders", p, None, "ops") for p in (*range(7), 9)] + [("reader", "orders", 0, None, "ops")]
    told = await events(runtime, "g", "offsets_deleted")
    assert [event["partitions"] for event in told] == [3, 3, 2]
    assert {event["reason"] for event in told} == {"the topic was deleted"}
    reader = (await service.describe("reader")).group
    assert reader is not None
    assert (reader.state, len(reader.members)) == (GroupState.STABLE, 1), "groups are left alone"


@pytest.mark.usefixtures("left_to_celery")
async def test_commits_on_a_new_topic_of_the_name_survive_a_late_sweep(
    runtime: Runtime, topics: TopicService, sweep: DeletedTopicSweep
) -> None:
    await commit(runtime, "g", "orders", 0, 1, 2)
    await put_pending(runtime, "g", "orders", 3)
    await topics.delete("orders")
    await topics.create("orders", 10)
    await commit(runtime, "g", "orders", 1, offset=0)
    await commit(runtime, "late", "orders", 0, offset=0)
    await put_pending(runtime, "g", "orders", 2)
    assert await sweep.sweep() == 3
    assert await stored(runtime) == [("g", "orders", 1, 0), ("late", "orders", 0, 0)]
    assert await rows(runtime, "select partition from offsets_pendingoffset") == [(2,)]


@pytest.mark.usefixtures("left_to_celery")
async def test_the_journal_does_not_remove_what_was_committed_on_the_new_topic(
    runtime: Runtime, topics: TopicService, sweep: DeletedTopicSweep
) -> None:
    """An offset pending on the old topic goes, the committed one of the same partition stays."""
    await commit(runtime, "g", "orders", 0, 1)
    await put_pending(runtime, "g", "orders", 1)
    await topics.delete("orders")
    await topics.create("orders", 10)
    await commit(runtime, "g", "orders", 1, offset=0)
    assert await sweep.sweep() == 2
    assert await rows(runtime, "select partition from offsets_pendingoffset") == []
    assert await stored(runtime) == [("g", "orders", 1, 0)]
    assert await journal(runtime, "topic_delete") == [("g", "orders", 0, None, "")]


@pytest.mark.usefixtures("left_to_celery")
async def test_a_pending_offset_of_the_new_topic_survives_beside_an_old_committed_one(
    runtime: Runtime, topics: TopicService, sweep: DeletedTopicSweep
) -> None:
    await commit(runtime, "g", "orders", 2)
    await topics.delete("orders")
    await topics.create("orders", 10)
    await put_pending(runtime, "g", "orders", 2)
    assert await sweep.sweep() == 1
    assert await stored(runtime) == []
    assert await rows(runtime, "select partition from offsets_pendingoffset") == [(2,)]


async def test_what_a_commit_in_flight_left_behind_is_found_by_a_second_sweep(
    runtime: Runtime, topics: TopicService, sweep: DeletedTopicSweep, clock: VirtualClock, database: str
) -> None:
    await commit(runtime, "g", "orders", 0)
    await topics.delete("orders")
    assert await rows(runtime, NOTED) == [("orders", True)]
    with psycopg.connect(database, autocommit=True) as connection:  # it had looked at the topic before
        connection.execute(
            "insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,"
            " commit_timestamp, member_id, generation_id, record_offset)"
            " select id, 'orders', 0, 6, -1, '', 0, '', -1, nextval('offset_commit_log_id_seq') from groups_group"
        )
    assert await sweep.sweep() == 0, "it is not yet settled"
    clock.advance(SETTLE_MS)
    assert await sweep.sweep() == 1
    assert await stored(runtime) == []
    assert await rows(runtime, NOTED) == []
    assert await sweep.sweep() == 0


async def test_a_group_that_somebody_holds_is_left_to_celery_and_holds_up_no_other(
    runtime: Runtime, topics: TopicService, sweep: DeletedTopicSweep, database: str
) -> None:
    for group_id in "abc":
        await commit(runtime, group_id, "orders", 0)
    holder = await psycopg.AsyncConnection.connect(database)
    await holder.execute("select 1 from groups_group where group_id = 'a' for update")
    await topics.delete("orders")
    assert await stored(runtime) == [("a", "orders", 0, 5)]
    assert await rows(runtime, NOTED) == [("orders", False)]
    with pytest.raises(SweepFailed, match=r"1 groups still.*: a$"):
        await sweep.sweep()
    await holder.rollback()
    await holder.close()
    assert await sweep.sweep() == 1
    assert await rows(runtime, NOTED) == [("orders", True)]


@pytest.mark.usefixtures("left_to_celery")
async def test_a_deletion_that_is_rolled_back_leaves_no_note(runtime: Runtime, topics: TopicService) -> None:
    with pytest.raises(ProtocolError) as refused:
        await topics.delete("nope")
    assert refused.value.error is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert await rows(runtime, NOTED) == []


@pytest.mark.usefixtures("left_to_celery")
async def test_a_name_that_was_used_three_times(
    runtime: Runtime, topics: TopicService, sweep: DeletedTopicSweep
) -> None:
    for partition in range(3):
        await commit(runtime, "g", "orders", partition)
        await topics.delete("orders")
        await topics.create("orders", 10)
    await commit(runtime, "g", "orders", 5)
    assert await sweep.sweep() == 3
    assert await stored(runtime) == [("g", "orders", 5, 5)]
    assert await rows(runtime, NOTED) == [("orders", True)] * 3


@pytest.mark.usefixtures("left_to_celery")
async def test_the_first_record_offset_of_a_fresh_database_belongs_to_the_new_topic(
    runtime: Runtime, topics: TopicService, sweep: DeletedTopicSweep
) -> None:
    await topics.delete("orders")
    await topics.create("orders", 10)
    await commit(runtime, "g", "orders", 0)
    assert await rows(runtime, "select record_offset from offsets_committedoffset") == [(1,)]
    assert await sweep.sweep() == 0
    assert await stored(runtime) == [("g", "orders", 0, 5)]
