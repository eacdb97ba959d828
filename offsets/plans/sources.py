"""The inputs of a plan: where the group is now, and the data of its strategy's source.

Each statement sees one snapshot of the database; two of them may see different ones. That is harmless: a plan is
applied only if the committed offsets are still those that it shows.

What a group had committed at an instant comes from the journal, and from the archive where the journal ends: a day of
the journal is dropped only once the archive has it, so what the journal lacks is in the archive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from groups.readmodel import unknown_group
from groups.topics import TopicService, partition_counts
from kcoord.access.rights import Operation, Principal
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.strategies import Reset, Scope, Strategy, invalid
from offsets.core.days import DAY_MS, bounds, day_of
from offsets.core.plan import MAX_LINES, too_many
from offsets.core.plan_types import UNKNOWN_THEN, Found, Position
from offsets.core.samples import offset_at
from offsets.core.types import Millis, TopicPartition
from offsets.journal.archived_offsets import ArchivedOffsets, Offsets
from offsets.lag.samples import SampleReads
from offsets.plans.store import PlanStore, chunks

DAYS_BACK = (0, 1, 3, 7, 15)
"""Days by which the journal is searched backwards: most partitions are found in the first, a single table."""

NOTHING_THEN = "no offset was committed then"


@dataclass(frozen=True, slots=True)
class GroupPast:
    """What the journal and the archive say about a group at an instant (ms)."""

    group_id: str
    at: Millis
    journal: Offsets
    archive: Offsets

    @property
    def archived_topics(self) -> set[str]:
        """Topics that the archive has anything about up to the instant."""
        return {topic for topic, _ in self.archive}


class Past:
    """Reads past offsets. Methods may raise UNKNOWN_SERVER_ERROR: the archive cannot be read."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.get(PlanStore)
        self._archived = runtime.get(ArchivedOffsets)
        self._retention_ms = runtime.config.int("offsets.journal.retention.days") * DAY_MS

    async def check(self, now: Millis, at: Millis) -> None:
        """Raise INVALID_REQUEST, naming `at`, for an instant in the future, or one for which nothing is kept."""
        if at > now:
            raise invalid("at", "at: must not be in the future")
        if at >= now - self._retention_ms:
            return
        begins = await self._archived.begins()
        if begins is not None and begins <= at:
            return
        days = self._retention_ms // DAY_MS
        kept = f"it is kept for {days} days (offsets.journal.retention.days)"
        archive = "" if begins is None else f", and the archive begins at {rfc3339(begins)}"
        raise invalid("at", f"at: before the journal begins; {kept}{archive}")

    async def of(
        self, group_id: str, partitions: Sequence[TopicPartition], at: Millis, *, others: bool = True
    ) -> GroupPast:
        """What is known about these partitions at an instant that `check` accepted.

        `others`: also return partitions that only the archive has; otherwise it is read only as far back as needed.
        """
        # In this order: a day dropped between the two reads is in the archive, which is read second.
        journal = await self._in_journal(group_id, partitions, at)
        left = None if others else {key for key in partitions if key not in journal}
        return GroupPast(group_id, at, journal, await self._archived.at(group_id, at, left))

    async def committed(self, past: GroupPast, positions: Sequence[Position]) -> dict[TopicPartition, Found]:
        """What the last line up to the instant says about each partition.

        For a partition without such a line: if its current offset has no later line either, it was committed before the
        journal begins, and was in place at that instant; otherwise nothing is known to have been committed.
        """
        found = {key: _told(offset, "from the archive") for key, offset in past.archive.items()}
        found |= {key: _told(offset, "") for key, offset in past.journal.items()}
        unknown = [position for position in positions if position.key not in found]
        current = {p.key: p.committed.offset for p in unknown if p.committed is not None}
        changed = await self._store.journal_since(past.group_id, list(current), past.at)
        for position in unknown:
            key = position.key
            if key in current and key not in changed:
                found[key] = Found(current[key], "unchanged since before the journal begins")
            else:
                found[key] = Found(None, UNKNOWN_THEN)
        return found

    async def _in_journal(self, group_id: str, partitions: Sequence[TopicPartition], at: Millis) -> Offsets:
        offsets: dict[TopicPartition, int | None] = {}
        left = list(partitions)
        today, until = bounds(day_of(at))[0], at
        for since in (*(today - days * DAY_MS for days in DAYS_BACK), 0):
            if not left or since > until:
                continue
            offsets |= await self._store.journal_at(group_id, left, since, until)
            left = [key for key in left if key not in offsets]
            until = since - 1
        return offsets


def _told(offset: int | None, note: str) -> Found:
    return Found(offset, note if offset is not None else NOTHING_THEN)


Sources = tuple[list[Position], dict[TopicPartition, Found]]


class NothingMeant(ProtocolError):
    """INVALID_REQUEST: no topics are named, and the group has nothing committed, nor had at the requested instant."""

    def __init__(self, group_id: str) -> None:
        detail = f"topics: required, because group {group_id!r} has no committed offsets"
        super().__init__(Error.INVALID_REQUEST, detail, fields={"field": "topics"})


class PlanSources:
    """Gathers positions and sources. Methods raise ProtocolError, naming the error in the request."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.get(PlanStore)
        self._topics = runtime.get(TopicService)
        self._samples = runtime.get(SampleReads)
        self._past = runtime.get(Past)

    async def gather(
        self,
        group_id: str,
        reset: Reset,
        now: Millis,
        at: Millis | None,
        principal: Principal,
        *,
        share: bool = False,
    ) -> Sources:
        """The positions that a reset concerns, and the data of its source about them.

        `at`: the instant of strategies that have one. `share`: the group is a share group.

        Raises TOPIC_AUTHORIZATION_FAILED for a topic that the caller may describe but not read; topics that it may not
        describe are skipped unless the request names them.
        """
        check_readable({topic for topic, _ in _named(reset)}, principal)
        match reset.strategy:
            case Strategy.FROM_FILE:
                assert reset.csv is not None
                positions = await self._positions(group_id, list(reset.csv), share=share)
                found = {key: Found(offset) for key, offset in reset.csv.items()}
            case Strategy.COPY_FROM_GROUP:
                positions, found = await self._of_group(group_id, reset, principal)
            case Strategy.TO_COMMITTED_AT:
                assert at is not None
                positions, found = await self._from_the_past(group_id, reset.scope, now, at, principal)
            case Strategy.TO_DATETIME | Strategy.BY_DURATION:
                assert at is not None
                positions = await self._in_scope(group_id, reset.scope, principal, share=share)
                found = await self._from_samples(positions, at)
            case _:
                positions, found = await self._in_scope(group_id, reset.scope, principal, share=share), {}
        check_readable({position.topic for position in positions}, principal)
        if not positions:
            raise NothingMeant(group_id)
        return positions, found

    async def _in_scope(
        self, group_id: str, scope: Scope, principal: Principal, *, share: bool = False
    ) -> list[Position]:
        if scope is not None:
            return await self._positions(group_id, await self._partitions(scope), share=share)
        committed = await self._store.committed(group_id, share=share)
        if len(committed) > MAX_LINES:
            raise too_many(len(committed))
        visible = _visible({position.topic for position in committed}, principal)
        return [position for position in committed if position.topic in visible]

    async def _positions(
        self, group_id: str, partitions: Sequence[TopicPartition], *, share: bool = False
    ) -> list[Position]:
        if len(partitions) > MAX_LINES:
            raise too_many(len(partitions))
        return await self._store.positions(group_id, partitions, share=share)

    async def _partitions(self, scope: Sequence[tuple[str, tuple[int, ...] | None]]) -> list[TopicPartition]:
        """The partitions that a scope covers. Raises UNKNOWN_TOPIC_OR_PARTITION for a topic that does not exist."""
        counts = partition_counts(await self._topics.current(), [topic for topic, _ in scope])
        for index, (topic, _) in enumerate(scope):
            if topic not in counts:
                field = f"topics[{index}].name"
                raise ProtocolError(
                    Error.UNKNOWN_TOPIC_OR_PARTITION,
                    f"{field}: there is no topic {topic!r}; GET /v1/topics lists all topics",
                    fields={"field": field},
                )
        total = sum(counts[topic] if named is None else len(named) for topic, named in scope)
        if total > MAX_LINES:
            raise too_many(total)
        return [
            (topic, partition)
            for topic, named in scope
            for partition in (range(counts[topic]) if named is None else named)
        ]

    async def _of_group(self, group_id: str, reset: Reset, principal: Principal) -> Sources:
        """What another group has committed; without a scope, everything."""
        assert reset.from_group is not None
        exists = await self._store.group_key(reset.from_group) is not None
        if not exists or not principal.may_group(Operation.DESCRIBE, reset.from_group):
            unknown = unknown_group(reset.from_group)
            raise ProtocolError(unknown.error, f"from_group: {unknown.detail}", fields={"field": "from_group"})
        source = await self._in_scope(reset.from_group, None, principal)
        found = {p.key: Found(p.committed.offset) for p in source if p.committed is not None}
        partitions = list(found) if reset.scope is None else await self._partitions(reset.scope)
        return await self._positions(group_id, partitions), found

    async def _from_samples(self, positions: Sequence[Position], at: Millis) -> dict[TopicPartition, Found]:
        """Where the logs were at an instant, as far as samples show."""
        by_topic: dict[str, list[int]] = {}
        for position in positions:
            by_topic.setdefault(position.topic, []).append(position.partition)
        found: dict[TopicPartition, Found] = {}
        for topic, partitions in by_topic.items():
            for some in chunks(partitions):
                for partition, samples in (await self._samples.around(topic, some, at)).items():
                    found[topic, partition] = Found(offset_at(samples, at))
        return found

    async def _from_the_past(
        self, group_id: str, scope: Scope, now: Millis, at: Millis, principal: Principal
    ) -> Sources:
        """What was committed at an instant; without a scope, on all existing topics with a trace."""
        await self._past.check(now, at)
        if scope is not None:
            positions = await self._in_scope(group_id, scope, principal)
            past = await self._past.of(group_id, [position.key for position in positions], at, others=False)
            return positions, await self._past.committed(past, positions)
        committed = await self._in_scope(group_id, None, principal)
        keys = {position.key for position in committed}
        keys |= await self._all_partitions(await self._store.journal_topics(group_id), principal)
        past = await self._past.of(group_id, list(keys), at)
        keys |= await self._all_partitions(past.archived_topics, principal)
        positions = await self._positions(group_id, list(keys))
        found = await self._past.committed(past, positions)
        meant = [p for p in positions if p.committed is not None or found[p.key].offset is not None]
        return meant, found

    async def _all_partitions(self, topics: Iterable[str], principal: Principal) -> set[TopicPartition]:
        """The partitions of those topics that exist and that the caller may describe."""
        counts = partition_counts(await self._topics.current(), _visible(set(topics), principal))
        if sum(counts.values()) > MAX_LINES:
            raise too_many(sum(counts.values()))
        return {(topic, partition) for topic, count in counts.items() for partition in range(count)}


def _named(reset: Reset) -> Sequence[tuple[str, object]]:
    """The topics that a request itself names."""
    return list(reset.csv or ()) if reset.scope is None else list(reset.scope)


def _visible(topics: Set[str], principal: Principal) -> Set[str]:
    """Those topics that the caller may describe."""
    return {topic for topic in topics if principal.may_topic(Operation.DESCRIBE, topic)}


def check_readable(topics: Iterable[str], principal: Principal, *, known: bool = True) -> None:
    """Raise TOPIC_AUTHORIZATION_FAILED unless all may be read; their existence is not checked.

    `known`: the caller named them or may describe them. Of others, those it may not describe stay unnamed.
    """
    denied = sorted({topic for topic in topics if not principal.may_topic(Operation.READ, topic)})
    if denied:
        told = [topic for topic in denied if known or principal.may_topic(Operation.DESCRIBE, topic)]
        more = len(denied) - len(told[:10])
        names = ", ".join(told[:10]) + (f" and {more} more" if told and more else "") or f"{more} topics of the plan"
        raise ProtocolError(
            Error.TOPIC_AUTHORIZATION_FAILED,
            f"{principal.said} may not READ {names}",
            fields={"topics": told[:100]},
        )
