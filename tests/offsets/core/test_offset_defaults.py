"""What a request or a row that says nothing means, as in Kafka's schemas (offsets.md 3.1, 5)."""

from __future__ import annotations

from kcoord.protocol.errors import Error
from offsets.core.commit import Commit, Lines
from offsets.core.plan_types import Committed, Found, Line, Position
from offsets.core.transactions import TransactionEnd
from offsets.core.types import (
    NO_OFFSET,
    ChangeKind,
    FetchedOffset,
    OffsetCommitReply,
    OffsetFetch,
    OffsetFetchReply,
    OffsetRecord,
    Provenance,
)


def test_commits_without_more_have_no_epoch_and_no_retention_of_their_own() -> None:
    commit = Commit("g", "", None, -1, Lines((), [], [], []))
    assert (commit.retention_time_ms, commit.lines.metadata, commit.principal) == (-1, None, "")
    record = OffsetRecord("orders", 0, 5)
    assert (record.leader_epoch, record.metadata, record.expire_timestamp) == (-1, "", None)


def test_fetches_without_more_are_of_nobody_and_of_what_may_be_unstable() -> None:
    fetch = OffsetFetch("g")
    assert (fetch.member_id, fetch.member_epoch, fetch.topics, fetch.require_stable) == (None, -1, None, False)
    nothing = FetchedOffset("orders", 0)
    assert (nothing.committed_offset, nothing.leader_epoch, nothing.metadata) == (-1, -1, "")
    assert (NO_OFFSET, nothing.error) == (-1, Error.NONE)


def test_answers_and_origins_without_more_are_empty() -> None:
    assert (OffsetCommitReply(Error.NONE).detail, OffsetFetchReply(Error.NONE).detail) == ("", "")
    assert TransactionEnd() == TransactionEnd(ended=0, committed=0)
    origin = Provenance(next(iter(ChangeKind)))
    assert (origin.principal, origin.member_id, origin.generation_id, origin.client_id) == ("", "", -1, "")


def test_partitions_of_a_plan_without_more_exist_and_have_no_note() -> None:
    offset = Committed(5)
    assert (offset.leader_epoch, offset.metadata, offset.commit_timestamp, offset.record_offset) == (-1, "", 0, 0)
    position = Position("orders", 0)
    assert (position.exists, position.committed, position.log) == (True, None, None)
    assert (Found(5).note, Line("orders", 0, None, None, None).note) == ("", "")
