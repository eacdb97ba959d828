"""Commits and fetches through the core: its rules of what is stored, on a dictionary in place of the table.

What sits above the core is played here: permissions, and reading what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from groups.core.consumer.offsets import check_fetch
from groups.core.model.commands import CommitOffsets
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.group import Group
from groups.core.model.types import ClassicGroup, GroupState
from kcoord.protocol.errors import Error, ProtocolError
from offsets.core.commit import Commit, membership_half, records_of
from offsets.core.transactions import before_epochs, stable
from offsets.core.types import FetchedOffset, Millis, OffsetRecord
from tests.conformance.cases import Case
from tests.conformance.core_admin import Decide, delete_offsets
from tests.conformance.core_transactions import CoreTransactions
from tests.conformance.driver import NoDriver, Response
from tests.support.commits import OffsetCommit, PartitionCommit, Results, results_of, take

METADATA_LIMIT = 4_096
"""Default of `offset.metadata.max.bytes`."""

Args = Mapping[str, Any]
MayCommit = Callable[[CommitOffsets], Error]
"""The membership half of a commit: the error of the group's decision."""
GroupOf = Callable[[str], Group | None]


class CoreOffsets:
    """The offsets of all groups of a case, and who may not see what."""

    def __init__(self, case: Case) -> None:
        self.transactions = CoreTransactions()
        self.topics = case.topics
        self._metadata_limit: int = case.config.get("offset.metadata.max.bytes", METADATA_LIMIT)
        self._stored: dict[str, dict[tuple[str, int], OffsetRecord]] = {}
        self._committed = 0
        self._expired = 0
        self._deleted = 0
        self._denied: set[tuple[str, str, str]] = set()

    def commit(self, args: Args, may_commit: MayCommit, now: Millis) -> Response:
        """OffsetCommit (offsets.md 3.2)."""
        group_id = args["group_id"]
        if self.is_denied("READ", "GROUP", group_id):
            return _everywhere(args, Error.GROUP_AUTHORIZATION_FAILED)
        asked = self._read_commit(args)
        commit = take(asked, self.topics, self._metadata_limit)
        if commit.is_for_group:
            error = may_commit(membership_half(commit))
            if error is not Error.NONE:
                return _refused(asked, commit, error)
            records = records_of(commit, now)
            for entry in records:
                self._store(group_id, replace(entry, commit_timestamp=now))
            self.transactions.written(group_id, records)
            self._committed += len(records)
        return _answered(results_of(asked, commit))

    def txn_commit(self, args: Args, may_commit: MayCommit, now: Millis) -> Response:
        """TxnOffsetCommit (offsets.md 4.1)."""
        group_id = args["group_id"]
        if self.is_denied("WRITE", "TRANSACTIONAL_ID", args["transactional_id"]):
            return _everywhere(args, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if self.is_denied("READ", "GROUP", group_id):
            return _everywhere(args, Error.GROUP_AUTHORIZATION_FAILED)
        asked = self._read_commit(args)
        commit = take(asked, self.topics, self._metadata_limit)
        if commit.is_for_group:
            try:
                self.transactions.admit(args["producer_id"], args["producer_epoch"])
                error = may_commit(membership_half(commit, transactional=True))
            except ProtocolError as refusal:
                error = refusal.error
            if error is not Error.NONE:
                return _refused(asked, commit, before_epochs(error))
            records = records_of(commit, now)
            written = [replace(entry, commit_timestamp=now) for entry in records]
            self.transactions.write(args["producer_id"], group_id, written)
            self._committed += len(records)
        return _answered(results_of(asked, commit))

    def end_txn(self, args: Args) -> Response:
        """EndTxn's marker (offsets.md 4.3)."""
        for group_id, entry in self.transactions.end(args["producer_id"], committed=args["committed"]):
            self._store(group_id, entry)
        return {"error": "NONE"}

    def fetch(self, args: Args, group_of: GroupOf) -> Response:
        """OffsetFetch (offsets.md 5)."""
        require_stable = args.get("require_stable", False)
        return {
            "groups": {
                group["group_id"]: self._fetch(group, group_of(group["group_id"]), require_stable)
                for group in args["groups"]
            }
        }

    def delete(self, args: Args, decide: Decide) -> Response:
        """OffsetDelete (offsets.md 6)."""
        if self.is_denied("DELETE", "GROUP", args["group_id"]):
            return {"error": Error.GROUP_AUTHORIZATION_FAILED.name, "partitions": {}}
        denied = frozenset(name for operation, kind, name in self._denied if (operation, kind) == ("READ", "TOPIC"))
        return delete_offsets(args, decide, self._remove, self.topics, denied)

    def _remove(self, group_id: str, topic: str, partition: int) -> None:
        committed = self._stored.get(group_id, {}).pop((topic, partition), None)
        pending = (topic, partition) in self.transactions.of(group_id)
        self.transactions.forget(group_id, (topic, partition))
        self._deleted += committed is not None or pending

    def deny(self, args: Args) -> None:
        """From now on that check fails. Raises NoDriver for a check that nothing here makes."""
        denied = args["operation"], args["resource_type"], args["resource_name"]
        of_members = denied[0] in ("READ", "DESCRIBE") and denied[1] in ("GROUP", "TOPIC")
        if not of_members and denied[:2] not in (("WRITE", "TRANSACTIONAL_ID"), ("DELETE", "GROUP")):
            raise NoDriver(f"no driver for call Deny {denied[0]} {denied[1]} through core")
        self._denied.add(denied)

    def is_denied(self, operation: str, resource_type: str, name: str) -> bool:
        """Whether a check fails."""
        return (operation, resource_type, name) in self._denied

    def forget(self, group_id: str) -> None:
        """The group is deleted, and its offsets with it."""
        self._stored.pop(group_id, None)
        self.transactions.forget(group_id)

    def of(self, group_id: str) -> Mapping[tuple[str, int], OffsetRecord]:
        """What a group has committed, as of now."""
        return dict(self._stored.get(group_id, {}))

    def expire(self, group_id: str, topic: str, partition: int) -> None:
        """Retention removes an offset."""
        del self._stored[group_id][topic, partition]
        self.transactions.forget(group_id, (topic, partition))
        self._expired += 1

    def metrics(self) -> Response:
        """What commits have stored, and what retention and deletions have removed."""
        stored = sum(len(offsets) for offsets in self._stored.values())
        return {
            "NumOffsets": stored,
            "offset-commit-count": self._committed,
            "offset-expiration-count": self._expired,
            "offset-deletion-count": self._deleted,
        }

    def _read_commit(self, args: Args) -> OffsetCommit:
        return OffsetCommit(
            group_id=args["group_id"],
            member_id=args.get("member_id", ""),
            group_instance_id=args.get("group_instance_id"),
            generation_id=args.get("generation_id_or_member_epoch", args.get("generation_id", -1)),
            partitions=tuple(
                _partition(topic, int(number), value)
                for topic, partitions in args["offsets"].items()
                for number, value in partitions.items()
            ),
            retention_time_ms=args.get("retention_time_ms", -1),
            denied=frozenset(name for operation, kind, name in self._denied if (operation, kind) == ("READ", "TOPIC")),
        )

    def _store(self, group_id: str, entry: OffsetRecord) -> None:
        self._stored.setdefault(group_id, {})[entry.topic, entry.partition] = entry

    def _fetch(self, group: Args, known: Group | None, require_stable: bool) -> Response:
        if self.is_denied("DESCRIBE", "GROUP", group["group_id"]):
            return {"error": Error.GROUP_AUTHORIZATION_FAILED.name, "offsets": {}}
        if isinstance(known, ConsumerGroup):
            try:
                check_fetch(known, group.get("member_id"), group.get("member_epoch", -1))
            except ProtocolError as refusal:
                return {"error": refusal.error.name, "offsets": {}}
        dead = isinstance(known, ClassicGroup) and known.state is GroupState.DEAD
        found = [_fetched(entry) for entry in self._stored.get(group["group_id"], {}).values() if not dead]
        pending = self.transactions.of(group["group_id"]) if require_stable and not dead else []
        topics = group.get("topics")
        wanted = None if topics is None else [(topic, p) for topic, numbers in topics.items() for p in numbers]
        by_place = {(entry.topic, entry.partition): entry for entry in stable(found, pending, wanted)}
        offsets: dict[str, dict[str, Response]] = {} if topics is None else {topic: {} for topic in topics}
        for topic, partition in by_place if wanted is None else wanted:
            entry = by_place.get((topic, partition), FetchedOffset(topic, partition))
            if self.is_denied("DESCRIBE", "TOPIC", topic):
                if wanted is None:
                    continue
                entry = FetchedOffset(topic, partition, error=Error.TOPIC_AUTHORIZATION_FAILED)
            offsets.setdefault(topic, {})[str(partition)] = _offset(entry)
        return {"error": "NONE", "offsets": offsets}


def _answered(results: Results) -> Response:
    partitions: dict[str, dict[str, str]] = {}
    for topic, partition, error in results:
        partitions.setdefault(topic, {})[str(partition)] = error.name
    return {"error": Error.NONE.name, "partitions": partitions}


def _refused(asked: OffsetCommit, commit: Commit, error: Error) -> Response:
    """The group refuses what the filter of partitions let pass (offsets.md 2.2)."""
    own = (Error.TOPIC_AUTHORIZATION_FAILED, Error.UNKNOWN_TOPIC_OR_PARTITION)
    results = results_of(asked, commit)
    told = _answered(tuple((topic, number, each if each in own else error) for topic, number, each in results))
    return {**told, "error": error.name}


def _everywhere(args: Args, error: Error) -> Response:
    partitions = {topic: dict.fromkeys(partitions, error.name) for topic, partitions in args["offsets"].items()}
    return {"error": error.name, "partitions": partitions}


def _partition(topic: str, partition: int, value: int | Args) -> PartitionCommit:
    if isinstance(value, int):
        return PartitionCommit(topic, partition, value)
    return PartitionCommit(topic, partition, value["offset"], value.get("leader_epoch", -1), value.get("metadata"))


def _fetched(entry: OffsetRecord) -> FetchedOffset:
    return FetchedOffset(entry.topic, entry.partition, entry.offset, entry.leader_epoch, entry.metadata)


def _offset(entry: FetchedOffset) -> Response:
    return {
        "error": entry.error.name,
        "offset": entry.committed_offset,
        "leader_epoch": entry.leader_epoch,
        "metadata": entry.metadata,
    }
