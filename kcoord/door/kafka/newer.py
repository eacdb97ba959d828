"""Requests and answers that kio does not have yet: those of versions that came with Kafka 4.4.

Each is kio's class of the version before, with what was added; `kcoord.door.kafka.api` names them. One goes when kio
has it. Annotations are types and no strings here: kio's own serializer, with which tests compare ours, reads them.
Source: KIP-1242 (ApiVersions 5), KIP-1319 (TxnOffsetCommit 6), the message schemas of Kafka 4.4 (DeleteGroups 3).
"""

import uuid
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kio.schema.api_versions.v4 import request as versions_request
from kio.schema.api_versions.v4 import response as versions_response
from kio.schema.delete_groups.v2 import request as deletion_request
from kio.schema.delete_groups.v2 import response as deletion_response
from kio.schema.txn_offset_commit.v5 import request as commit_request
from kio.schema.txn_offset_commit.v5 import response as commit_response

STRING, INT32, UUID = {"kafka_type": "string"}, {"kafka_type": "int32"}, {"kafka_type": "uuid"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsRequest(versions_request.ApiVersionsRequest):
    """ApiVersions 5: which node of which cluster the client wants to reach; both or none."""

    __version__: ClassVar[Any] = 5
    cluster_id: str | None = field(metadata=STRING, default=None)
    node_id: int = field(metadata=INT32, default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsResponse(versions_response.ApiVersionsResponse):
    """ApiVersions 5."""

    __version__: ClassVar[Any] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroupsRequest(deletion_request.DeleteGroupsRequest):
    """DeleteGroups 3."""

    __version__: ClassVar[Any] = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletableGroupResult(deletion_response.DeletableGroupResult):
    """What became of one group."""

    __version__: ClassVar[Any] = 3
    error_message: str | None = field(metadata=STRING, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroupsResponse(deletion_response.DeleteGroupsResponse):
    """DeleteGroups 3: each group has a message."""

    __version__: ClassVar[Any] = 3
    results: tuple[DeletableGroupResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequestTopic:
    """A topic by its id."""

    __type__: ClassVar[Any] = commit_request.TxnOffsetCommitRequestTopic.__type__
    __version__: ClassVar[Any] = 6
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[Any] = 28
    topic_id: uuid.UUID | None = field(metadata=UUID)
    partitions: tuple[commit_request.TxnOffsetCommitRequestPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequest(commit_request.TxnOffsetCommitRequest):
    """TxnOffsetCommit 6. `generation_id` is called `generation_id_or_member_epoch` by Kafka since then."""

    __version__: ClassVar[Any] = 6
    topics: tuple[TxnOffsetCommitRequestTopic, ...]  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponseTopic:
    """A topic by its id."""

    __type__: ClassVar[Any] = commit_response.TxnOffsetCommitResponseTopic.__type__
    __version__: ClassVar[Any] = 6
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[Any] = 28
    topic_id: uuid.UUID | None = field(metadata=UUID)
    partitions: tuple[commit_response.TxnOffsetCommitResponsePartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponse(commit_response.TxnOffsetCommitResponse):
    """TxnOffsetCommit 6."""

    __version__: ClassVar[Any] = 6
    topics: tuple[TxnOffsetCommitResponseTopic, ...]  # type: ignore[assignment]
