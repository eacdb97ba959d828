"""The use-cases of the workers of share groups: acquire and settle.

One transaction each, under no lock of the group: what is acquired is fenced by the row of its partition, what is
settled by those of its locks. Source: share.md 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from groups.catalogue.topics import TopicService
from groups.configs import GroupConfigs
from groups.core.consumer.checks import unknown_member
from groups.core.model.consumer_state import ConsumerMember
from groups.core.model.types import TopicView
from groups.core.share.checks import check_epoch, no_share_group
from groups.engine.service import GroupService
from kcoord.access.rights import Operation, Principal
from kcoord.database.pool import Connection
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.core.share import Rules
from offsets.core.types import Millis
from offsets.share.store import Acquired, Outcome, ShareMember, ShareStore, rules_of


@dataclass(frozen=True, slots=True)
class Acquire:
    """What a member asks for. `ends`: how far partitions go, by topic id and number. `settle`: as that of `Settle`.

    `lock_ms` None: as long as the settings of the group say.
    """

    group_id: str
    member_id: str
    member_epoch: int
    most: int
    lock_ms: Millis | None
    ends: Mapping[tuple[UUID, int], int]
    settle: bytes | None


@dataclass(frozen=True, slots=True)
class Settle:
    """What becomes of items that a member holds. `items`: the JSON of a list of settlements, which are well formed."""

    group_id: str
    member_id: str
    items: bytes


@dataclass(frozen=True, slots=True)
class AcquireReply:
    """What was settled and acquired. `busy`: others work on all partitions, so that nothing is known of them.

    `topics`: the names of the topics of the locks; `lock_ms`: how long they last.
    """

    session_deadline: Millis | None
    settled: list[Outcome]
    locks: list[Acquired]
    topics: Mapping[UUID, str]
    busy: bool
    lock_ms: Millis


class ItemService:
    """Items for workers, for one process. Every method may raise ProtocolError COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._configs = runtime.get(GroupConfigs)
        self._topics = runtime.get(TopicService)
        self._store = runtime.get(ShareStore)
        self._shortest_ms = runtime.config.int("group.share.min.record.lock.duration.ms")
        self._longest_ms = runtime.config.int("group.share.max.record.lock.duration.ms")

    async def acquire(self, asked: Acquire, principal: Principal) -> AcquireReply:
        """Settle what is to be settled, then acquire up to `most` items of the partitions assigned to the member.

        Raises ProtocolError GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, TOPIC_AUTHORIZATION_FAILED,
        INVALID_REQUEST for a lock that is too short or too long.
        """
        self._groups.check_active(asked.group_id)
        rules = await self._rules(asked.group_id)
        lock_ms = rules.lock_ms if asked.lock_ms is None else self._checked(asked.lock_ms)
        view = await self._topics.view()

        async def work(connection: Connection) -> AcquireReply:
            member = await self._member(connection, asked)
            names = _names(member, view, principal)
            now = await self._db.now_ms(connection)
            settled: list[Outcome] = []
            if asked.settle is not None:
                settled = await self._store.settle(connection, member.pk, asked.member_id, asked.settle, rules, now)
            partitions = [partition for partition in member.partitions if partition[0] in names]
            locks, busy = await self._store.acquire(
                connection, member.pk, asked.member_id, partitions, asked.ends, asked.most, lock_ms, rules, now
            )
            return AcquireReply(member.session_deadline, settled, locks, names, busy, lock_ms)

        return await self._db.transaction(work)

    async def settle(self, asked: Settle) -> list[Outcome]:
        """Settle items, entry by entry. The member need not be in the group any more.

        Raises ProtocolError GROUP_ID_NOT_FOUND.
        """
        self._groups.check_active(asked.group_id)
        rules = await self._rules(asked.group_id)

        async def work(connection: Connection) -> list[Outcome]:
            found = await self._share_group(connection, asked.group_id, asked.member_id)
            now = await self._db.now_ms(connection)
            return await self._store.settle(connection, found.pk, asked.member_id, asked.items, rules, now)

        return await self._db.transaction(work)

    async def _rules(self, group_id: str) -> Rules:
        return rules_of(await self._configs.resolved(group_id))

    def _checked(self, lock_ms: Millis) -> Millis:
        if not self._shortest_ms <= lock_ms <= self._longest_ms:
            raise ProtocolError(
                Error.INVALID_REQUEST,
                f"lock_ms: {lock_ms} must be from {self._shortest_ms} (group.share.min.record.lock.duration.ms) to "
                f"{self._longest_ms} (group.share.max.record.lock.duration.ms)",
                fields={"field": "lock_ms"},
            )
        return lock_ms

    async def _share_group(self, connection: Connection, group_id: str, member_id: str) -> ShareMember:
        found = await self._store.member(connection, group_id, member_id)
        if found is None or found.type != "share":
            raise no_share_group(group_id, exists=found is not None)
        return found

    async def _member(self, connection: Connection, asked: Acquire) -> ShareMember:
        found = await self._share_group(connection, asked.group_id, asked.member_id)
        if found.member_epoch is None or found.previous_member_epoch is None or asked.member_epoch <= 0:
            raise unknown_member(asked.member_id)
        known = ConsumerMember(
            asked.member_id, member_epoch=found.member_epoch, previous_member_epoch=found.previous_member_epoch
        )
        check_epoch(known, asked.member_epoch)
        return found


def _names(member: ShareMember, view: TopicView, principal: Principal) -> dict[UUID, str]:
    """The names of the topics of a member; those that were deleted are left out. Raises TOPIC_AUTHORIZATION_FAILED."""
    topics = (view.by_id.get(topic_id) for topic_id in member.assigned or {})
    names = {UUID(topic.topic_id): topic.name for topic in topics if topic is not None}
    denied = sorted(name for name in names.values() if not principal.may_topic(Operation.READ, name))
    if denied:
        raise ProtocolError(
            Error.TOPIC_AUTHORIZATION_FAILED,
            f"{principal.said} may not READ {', '.join(map(repr, denied[:10]))}, of which partitions are assigned to "
            "the member: grant it, or name other topics in the heartbeat",
        )
    return names
