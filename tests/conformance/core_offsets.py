"""Commits and fetches through the core: its rules of what is stored, on a dictionary in place of the table.

What sits above the core is played here: permissions, and reading what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from groups.core.commands import CommitOffsets
from kcoord.errors import Error
from offsets.core.commit import record, refuse
from offsets.core.types import Millis, OffsetCommit, OffsetRecord, PartitionCommit
from tests.conformance.cases import Case
from tests.conformance.driver import NoDriver, Response

METADATA_LIMIT = 4_096
"""Default of `offset.metadata.max.bytes`."""

Args = Mapping[str, Any]
MayCommit = Callable[[CommitOffsets], Error]
"""The membership half of a commit: the error of the group's decision."""


class CoreOffsets:
    """The offsets of all groups of a case, and who may not see what."""

    def __init__(self, case: Case) -> None:
        self._topics = case.topics
        self._metadata_limit: int = case.config.get("offset.metadata.max.bytes", METADATA_LIMIT)
        self._stored: dict[str, dict[tuple[str, int], OffsetRecord]] = {}
        self._committed = 0
        self._expired = 0
        self._denied: set[tuple[str, str, str]] = set()

    def commit(self, args: Args, may_commit: MayCommit, now: Millis) -> Response:
        """OffsetCommit (offsets specification, section 3.2)."""
        group_id = args["group_id"]
        if ("READ", "GROUP", group_id) in self._denied:
            return _everywhere(args, Error.GROUP_AUTHORIZATION_FAILED)
        commit = self._read_commit(args)
        results, passed = refuse(commit, self._topics)
        if passed:
            error = may_commit(
                CommitOffsets(group_id, commit.member_id, commit.group_instance_id, commit.generation_id)
            )
            if error is not Error.NONE:
                return _everywhere(args, error)
            accepted, records = record(passed, commit.retention_time_ms, now, self._metadata_limit)
            results += accepted
            self._stored.setdefault(group_id, {}).update(
                {(entry.topic, entry.partition): replace(entry, commit_timestamp=now) for entry in records}
            )
            self._committed += len(records)
        partitions: dict[str, dict[str, str]] = {}
        for topic, partition, error in results:
            partitions.setdefault(topic, {})[str(partition)] = error.name
        return {"partitions": partitions}

    def fetch(self, args: Args) -> Response:
        """OffsetFetch (section 5). Nothing is pending here, so every offset is stable."""
        return {"groups": {group["group_id"]: self._fetch(group) for group in args["groups"]}}

    def deny(self, args: Args) -> None:
        """From now on that check fails. Raises NoDriver for a check that neither commit nor fetch makes."""
        denied = args["operation"], args["resource_type"], args["resource_name"]
        if denied[0] not in ("READ", "DESCRIBE") or denied[1] not in ("GROUP", "TOPIC"):
            raise NoDriver(f"no driver for call Deny {denied[0]} {denied[1]} through core")
        self._denied.add(denied)

    def forget(self, group_id: str) -> None:
        """The group is deleted, and its offsets with it."""
        self._stored.pop(group_id, None)

    def of(self, group_id: str) -> Mapping[tuple[str, int], OffsetRecord]:
        """What a group has committed, as of now."""
        return dict(self._stored.get(group_id, {}))

    def expire(self, group_id: str, topic: str, partition: int) -> None:
        """Retention removes an offset."""
        del self._stored[group_id][topic, partition]
        self._expired += 1

    def metrics(self) -> Response:
        """What commits have stored, and retention removed."""
        stored = sum(len(offsets) for offsets in self._stored.values())
        return {
            "NumOffsets": stored,
            "offset-commit-count": self._committed,
            "offset-expiration-count": self._expired,
        }

    def _read_commit(self, args: Args) -> OffsetCommit:
        return OffsetCommit(
            group_id=args["group_id"],
            member_id=args.get("member_id", ""),
            group_instance_id=args.get("group_instance_id"),
            generation_id=args.get("generation_id_or_member_epoch", -1),
            partitions=tuple(
                _partition(topic, int(number), value)
                for topic, partitions in args["offsets"].items()
                for number, value in partitions.items()
            ),
            retention_time_ms=args.get("retention_time_ms", -1),
            denied=frozenset(name for operation, kind, name in self._denied if (operation, kind) == ("READ", "TOPIC")),
        )

    def _fetch(self, group: Args) -> Response:
        if ("DESCRIBE", "GROUP", group["group_id"]) in self._denied:
            return {"error": Error.GROUP_AUTHORIZATION_FAILED.name, "offsets": {}}
        stored = self._stored.get(group["group_id"], {})
        wanted = group["topics"]
        offsets: dict[str, dict[str, Response]] = {}
        if wanted is None:
            for topic, partition in stored:
                if ("DESCRIBE", "TOPIC", topic) not in self._denied:
                    offsets.setdefault(topic, {})[str(partition)] = _offset(stored[topic, partition])
            return {"error": "NONE", "offsets": offsets}
        for topic, partitions in wanted.items():
            refused = ("DESCRIBE", "TOPIC", topic) in self._denied
            offsets[topic] = {
                str(partition): {"error": Error.TOPIC_AUTHORIZATION_FAILED.name, "offset": -1}
                if refused
                else _offset(stored.get((topic, partition)))
                for partition in partitions
            }
        return {"error": "NONE", "offsets": offsets}


def _everywhere(args: Args, error: Error) -> Response:
    return {
        "partitions": {topic: dict.fromkeys(partitions, error.name) for topic, partitions in args["offsets"].items()}
    }


def _partition(topic: str, partition: int, value: int | Args) -> PartitionCommit:
    if isinstance(value, int):
        return PartitionCommit(topic, partition, value)
    return PartitionCommit(topic, partition, value["offset"], value.get("leader_epoch", -1), value.get("metadata"))


def _offset(stored: OffsetRecord | None) -> Response:
    if stored is None:
        return {"error": "NONE", "offset": -1, "leader_epoch": -1, "metadata": ""}
    return {
        "error": "NONE",
        "offset": stored.offset,
        "leader_epoch": stored.leader_epoch,
        "metadata": stored.metadata,
    }
