"""The use-cases of the workers of share groups: acquire and settle.

Under no lock of the group: what is acquired is fenced by the row of its partition, what is settled by those of its
locks. Those of many workers are one transaction (`offsets.share.lane`). Source: share.md 7.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from uuid import UUID

from groups.configs import GroupConfigs
from groups.core.consumer.members import unknown_member
from groups.core.model.consumer_group import ConsumerMember
from groups.core.model.types import TopicView
from groups.core.share import check_epoch, no_share_group
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.access.rights import Operation, Principal
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current
from offsets.core.types import Millis
from offsets.share.lane import Admitted, ItemLane, Served
from offsets.share.store import ItemRequest, Outcome, ShareMember, rules_of
from offsets.share.waiting import ItemWaiters, Waiter

BUSY_PAUSES_MS = (10, 20, 40, 80)
"""After which it is tried again to acquire from partitions from which others acquire. That takes them a few ms, unless
they do it in a long transaction of their own."""

FRUITLESS_SECONDS, LONGEST_PAUSE_SECONDS = 0.02, 1.0
"""How long who was woken in vain waits before it may be woken again: longer each time."""


class ItemService:
    """Items for workers, for one process. Every method may raise ProtocolError COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._groups = runtime.get(GroupService)
        self._configs = runtime.get(GroupConfigs)
        self._topics = runtime.get(TopicService)
        self._lane = runtime.get(ItemLane)
        self._waiters = runtime.get(ItemWaiters)
        self._shortest_ms = runtime.config.int("group.share.min.record.lock.duration.ms")
        self._longest_ms = runtime.config.int("group.share.max.record.lock.duration.ms")

    async def acquire(self, asked: ItemRequest, principal: Principal, max_wait_ms: Millis = 0) -> Served:
        """Settle what is to be settled, then acquire up to `most` items of the partitions assigned to the member.

        With nothing to give it is held for up to `max_wait_ms`, without a connection.
        Raises ProtocolError GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, TOPIC_AUTHORIZATION_FAILED,
        INVALID_REQUEST for a lock that is too short or too long.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + max_wait_ms / 1000
        received = current.receipt()
        reply = await self._acquire_idle(asked, principal)
        settled = reply.settled
        pause = 0.0
        while not reply.locks and not self._waiters.closed and (left := until - loop.time()) > pause:
            await asyncio.sleep(pause)
            member = reply.admitted
            assert member is not None
            waiter = Waiter(asked.member_id, member.epoch, member.partitions, asked.most)
            await self._waiters.wait(asked.group_id, waiter, left - pause)
            if self._waiters.closed:
                break  # its client asks another server
            current.enter_receipt(current.held(received, max_wait_ms))
            again = replace(asked, member_epoch=None, settle=None, locks=())
            reply = await self._acquire_idle(again, principal)
            # What it was woken for may stay out of reach, such as a lock that is being settled in a long transaction.
            pause = min(max(pause * 2, FRUITLESS_SECONDS), LONGEST_PAUSE_SECONDS)
        reply.settled = settled
        return reply

    async def _acquire_idle(self, asked: ItemRequest, principal: Principal) -> Served:
        """Acquire; if others work on all partitions, try again a moment later, some times."""
        reply = await self._acquire(asked, principal)
        settled = reply.settled
        for pause in BUSY_PAUSES_MS:
            if not reply.busy:
                break
            await asyncio.sleep(random.uniform(0.5, 1.5) * pause / 1000)  # noqa: S311 - jitter, not a secret
            reply = await self._acquire(replace(asked, settle=None, locks=()), principal)
        reply.settled = settled
        return reply

    async def _acquire(self, asked: ItemRequest, principal: Principal) -> Served:
        asked = await self._complete(asked)
        view = await self._topics.view()
        return await self._lane.serve(asked, lambda found: _admitted(found, asked, view, principal))

    async def settle(self, asked: ItemRequest) -> list[Outcome]:
        """Settle items, entry by entry. The member need not be in the group any more.

        Raises ProtocolError GROUP_ID_NOT_FOUND.
        """
        asked = await self._complete(asked)
        return (await self._lane.serve(asked, lambda found: _check_group(found, asked.group_id))).settled

    async def _complete(self, asked: ItemRequest) -> ItemRequest:
        """With the rules of its group. Raises ProtocolError if another node is responsible for it."""
        self._groups.check_active(asked.group_id)
        rules = rules_of(await self._configs.resolved(asked.group_id))
        lock_ms = self._checked(asked.lock_ms) if asked.lock_ms else rules.lock_ms
        return replace(asked, lock_ms=lock_ms, rules=rules, receipt=current.receipt())

    def _checked(self, lock_ms: Millis) -> Millis:
        if not self._shortest_ms <= lock_ms <= self._longest_ms:
            raise ProtocolError(
                Error.INVALID_REQUEST,
                f"lock_ms: {lock_ms} must be from {self._shortest_ms} (group.share.min.record.lock.duration.ms) to "
                f"{self._longest_ms} (group.share.max.record.lock.duration.ms)",
                fields={"field": "lock_ms"},
            )
        return lock_ms


def _check_group(found: ShareMember, group_id: str) -> None:
    if found.type != "share":
        raise no_share_group(group_id, exists=found.pk is not None)


def _admitted(found: ShareMember, asked: ItemRequest, view: TopicView, principal: Principal) -> Admitted:
    """The member, which has the epoch that it says."""
    _check_group(found, asked.group_id)
    epoch, previous = found.member_epoch, found.previous_member_epoch
    if epoch is None or previous is None or (asked.member_epoch is not None and asked.member_epoch <= 0):
        raise unknown_member(asked.member_id)
    if asked.member_epoch is not None:
        known = ConsumerMember(asked.member_id, member_epoch=epoch, previous_member_epoch=previous)
        check_epoch(known, asked.member_epoch)
    names = _names(found, view, principal)
    partitions = [partition for partition in found.partitions if partition[0] in names]
    return Admitted(epoch, found.session_deadline, names, partitions, asked.lock_ms)


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
