"""The JSON of commits, fetches and transactions, field by field, named as in Kafka's message schemas in snake_case.

Source: http-api.md 2, "commit, fetch" and "transactional commit".
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from kcoord.door.http.types import (
    CommitInstanceId,
    Expiry,
    Int32,
    Int64,
    MemberId,
    ProducerEpoch,
    ProducerId,
    ResultName,
    TopicId,
    TopicName,
    TransactionalId,
)

Items = Meta(max_length=10_000)


class Request(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """Base of what clients send: an unknown field is an error. Defaults: see `kcoord.door.http.body`."""


class Response(Struct, frozen=True):
    """Base of what clients get."""


class CommitPartition(Request, frozen=True, gc=False):
    """One partition. `committed_offset` is the next offset to read; `committed_leader_epoch` -1: none."""

    partition: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = -1
    committed_metadata: str | None = ""


class CommitTopic(Request, frozen=True):
    """A topic, by `name` or by `topic_id`."""

    partitions: Annotated[list[CommitPartition], Items]
    name: TopicName | UnsetType = UNSET
    topic_id: TopicId | UnsetType = UNSET


class CommitRequest(Request, frozen=True):
    """OffsetCommit. Without a member: generation -1, which a group without members accepts."""

    topics: Annotated[list[CommitTopic], Items]
    generation_id_or_member_epoch: Int32 = -1
    member_id: MemberId = ""
    group_instance_id: CommitInstanceId | None = None
    retention_time_ms: Int64 = -1


class LostCommits(Response, frozen=True):
    """After a fail-over of Postgres: what was acknowledged between these instants was missing, and only what servers
    that still run had acknowledged was stored again. Commit again what you have done since.
    """

    since: Expiry
    until: Expiry


class CommittedPartition(Response, frozen=True):
    """The result for one partition."""

    partition: Int32
    error_code: Int32
    error: ResultName


class CommittedTopic(Response, frozen=True):
    """A topic as requested; its unknown fields are null."""

    name: str | None
    topic_id: str | None
    partitions: list[CommittedPartition]


class CommitResponse(Response, frozen=True):
    """A result for each partition, in the order of the request.

    `committed_offsets_lost`: absent if none are known to be lost, or the member was told with an earlier commit.
    """

    topics: list[CommittedTopic]
    session_expires_at: Expiry | None
    error_code: Int32 = 0
    committed_offsets_lost: LostCommits | UnsetType = UNSET


class FetchTopic(Request, frozen=True):
    """A topic, by `name` or by `topic_id`, and the requested partitions."""

    partitions: Annotated[list[Int32], Items]
    name: TopicName | UnsetType = UNSET
    topic_id: TopicId | UnsetType = UNSET


class FetchRequest(Request, frozen=True):
    """OffsetFetch. `topics` null: everything committed."""

    topics: Annotated[list[FetchTopic], Items] | None = None
    member_id: MemberId | None = None
    member_epoch: Int32 = -1
    require_stable: bool = False


class FetchedPartition(Response, frozen=True):
    """A committed offset; -1 with error 0 if nothing was committed. `commit_timestamp` in ms since the epoch."""

    partition: Int32
    committed_offset: int
    committed_leader_epoch: Int32
    metadata: str
    commit_timestamp: int | None
    error_code: Int32
    error: ResultName


class FetchedTopic(Response, frozen=True):
    """A topic of a fetch; its unknown fields are null."""

    name: str | None
    topic_id: str | None
    partitions: list[FetchedPartition]


class FetchResponse(Response, frozen=True):
    """Committed offsets, in the order of the request.

    `committed_offsets_lost`: as in a commit; a fetch repeats it until the member has committed.
    """

    topics: list[FetchedTopic]
    error_code: Int32 = 0
    committed_offsets_lost: LostCommits | UnsetType = UNSET


class FetchGroup(Request, frozen=True):
    """One group of a fetch for several groups."""

    group_id: str
    topics: Annotated[list[FetchTopic], Items] | None = None
    member_id: MemberId | None = None
    member_epoch: Int32 = -1


class ManyFetchRequest(Request, frozen=True):
    """OffsetFetch for several groups."""

    groups: Annotated[list[FetchGroup], Meta(max_length=1_000)]
    require_stable: bool = False


class FetchedGroup(Response, frozen=True):
    """The result for one group."""

    group_id: str
    topics: list[FetchedTopic]
    error_code: Int32
    error: ResultName
    detail: str | None


class ManyFetchResponse(Response, frozen=True):
    """A result for each group, in the order of the request."""

    groups: list[FetchedGroup]
    error_code: Int32 = 0


class TxnCommitRequest(Request, frozen=True):
    """TxnOffsetCommit. Without a member: generation -1."""

    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    topics: Annotated[list[CommitTopic], Items]
    generation_id: Int32 = -1
    member_id: MemberId = ""
    group_instance_id: CommitInstanceId | None = None


class TxnCommitResponse(Response, frozen=True):
    """A result for each partition, in the order of the request. Offsets with error 0 are pending until the end."""

    topics: list[CommittedTopic]
    error_code: Int32 = 0


class EndTxnRequest(Request, frozen=True):
    """EndTxn. `committed` true: pending offsets are committed; false: they are aborted."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    committed: bool


class EndTxnResponse(Response, frozen=True):
    """The result of the end. Pending offsets are not committed if a later commit superseded them."""

    pending_offsets: int
    committed_offsets: int
    error_code: Int32 = 0


class InitProducerIdResponse(Response, frozen=True):
    """The producer to use from now on."""

    producer_id: int
    producer_epoch: Int32
    error_code: Int32 = 0
