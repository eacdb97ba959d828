"""Creating an empty group with start offsets and settings, before its first member joins.

Kafka has no such request; with Kafka, one commits for a group that does not exist. Source: http-api.md 4; offsets.md
2.2 and 3.6, for the refusals and what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from groups.configs import GroupConfigs
from groups.core.model.commands import ResetOffsets
from groups.core.model.events import EventKind
from groups.core.model.replies import Done
from groups.engine.service import GroupService
from groups.store.locked import LockedGroup
from groups.topics import TopicService, partition_counts
from kcoord.access.audit.recording import Act
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.setting import Value
from offsets.commits.store import OffsetStore
from offsets.core.commit import utf16_length
from offsets.core.types import ChangeKind, OffsetRecord, Provenance
from offsets.journal.events import offsets_event


@dataclass(frozen=True, slots=True)
class StartOffset:
    """The first offset that a group is to read of a partition. `field`: its path in the request, for error messages."""

    topic: str
    partition: int
    offset: int
    metadata: str = ""
    field: str = ""


@dataclass(frozen=True, slots=True)
class NewGroup:
    """A group to create. `config`: its settings, not validated yet. `principal`: who creates it."""

    group_id: str
    offsets: Sequence[StartOffset]
    config: Mapping[str, object] = field(default_factory=dict)
    principal: str = ""


@dataclass(frozen=True, slots=True)
class CreatedGroup:
    """The result of a `NewGroup`. `created`: the group did not exist before this request."""

    created: bool
    config: Mapping[str, Value | None]


class GroupCreation:
    """Creates groups on request, for one process."""

    def __init__(self, runtime: Runtime) -> None:
        self._groups = runtime.get(GroupService)
        self._topics = runtime.get(TopicService)
        self._store = runtime.get(OffsetStore)
        self._configs = runtime.get(GroupConfigs)
        self._metadata_limit = runtime.config.int("offset.metadata.max.bytes")

    async def create(self, new: NewGroup) -> CreatedGroup:
        """Create the group in one transaction, with a line of the journal for each offset and an event.

        An existing group must have neither members nor offsets, or exactly these offsets: then the request is a retry
        whose first answer was lost, and only the settings are applied again.

        Raises ProtocolError: UNKNOWN_TOPIC_OR_PARTITION, OFFSET_METADATA_TOO_LARGE, INVALID_REQUEST (a partition named
        twice) and INVALID_CONFIG, naming the field, with nothing written; NON_EMPTY_GROUP; COORDINATOR_NOT_AVAILABLE.
        """
        await self._check(new.offsets)
        config = self._configs.checked(new.config)
        if config:
            await self._configs.check_together(new.group_id, config)

        async def write(locked: LockedGroup) -> CreatedGroup | ProtocolError:
            return await self._write(locked, new, config)

        outcome: Any = await self._groups.execute(ResetOffsets(new.group_id, create=True), write)
        if isinstance(outcome, ProtocolError):
            raise outcome
        if isinstance(outcome, Done):
            raise ProtocolError(outcome.error, outcome.detail)
        assert isinstance(outcome, CreatedGroup)
        if config:
            self._configs.altered(new.group_id, config, new.principal)
        return outcome

    async def _write(
        self, locked: LockedGroup, new: NewGroup, config: Mapping[str, Value | None]
    ) -> CreatedGroup | ProtocolError:
        """In the transaction of the decision.

        If other settings, changed since these were checked, now forbid them, a group without offsets is left behind:
        the next retention check removes it.
        """
        wanted = {(start.topic, start.partition, start.offset, start.metadata) for start in new.offsets}
        there = await self._store.offsets_of(locked, limit=len(wanted) + 1)
        repeated = there == {(*offset, False) for offset in wanted}
        if there and not repeated:
            return ProtocolError(
                Error.NON_EMPTY_GROUP,
                f"group {new.group_id!r} has committed offsets: change them with a plan, or delete the group first",
            )
        if config:
            try:
                await self._configs.alter_within(locked.connection, new.group_id, config, new.principal, recorded=True)
            except ProtocolError as refusal:
                return refusal
        if new.offsets and not repeated:
            await self._store.write(
                locked,
                [OffsetRecord(start.topic, start.partition, start.offset, -1, start.metadata) for start in new.offsets],
                Provenance(ChangeKind.RESET, principal=new.principal),
            )
            partitions = [(start.topic, start.partition) for start in new.offsets]
            event = offsets_event(EventKind.OFFSETS_RESET, locked.group, partitions, principal=new.principal)
            locked.events.append(event)
        after = {"offsets": {f"{one.topic}-{one.partition}": one.offset for one in new.offsets}, "config": config}
        before = None if locked.created else {"offsets": len(there)}
        locked.acts.append(Act("group.create", "group", new.group_id, before, after, principal=new.principal))
        return CreatedGroup(locked.created, config)

    async def _check(self, offsets: Sequence[StartOffset]) -> None:
        """Raise the error of the first invalid offset: all of them are written, or none."""
        counts = partition_counts(await self._topics.current(), {start.topic for start in offsets})
        seen: set[tuple[str, int]] = set()
        for start in offsets:
            if start.topic not in counts:
                raise _refused(Error.UNKNOWN_TOPIC_OR_PARTITION, start, "partition", f"no topic {start.topic!r}")
            if not 0 <= start.partition < counts[start.topic]:
                partitions = f"{start.topic!r} has partitions 0 to {counts[start.topic] - 1}"
                raise _refused(Error.UNKNOWN_TOPIC_OR_PARTITION, start, "partition", partitions)
            if (start.topic, start.partition) in seen:
                named = f"{start.topic}-{start.partition} is listed twice; list it once"
                raise _refused(Error.INVALID_REQUEST, start, "partition", named)
            if (length := utf16_length(start.metadata)) > self._metadata_limit:
                longest = f"{length} characters; at most {self._metadata_limit} (offset.metadata.max.bytes)"
                raise _refused(Error.OFFSET_METADATA_TOO_LARGE, start, "committed_metadata", longest)
            seen.add((start.topic, start.partition))


def _refused(error: Error, start: StartOffset, name: str, detail: str) -> ProtocolError:
    path = f"{start.field}.{name}" if start.field else name
    return ProtocolError(error, f"{path}: {detail}", fields={"field": path})
