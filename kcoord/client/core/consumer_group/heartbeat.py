"""The heartbeats of a member of a consumer or share group. Source: consumer.md 11.2 to 11.4."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kcoord.client.config import ConsumerConfig
from kcoord.client.core import wire
from kcoord.client.core.condition import Condition
from kcoord.client.core.consumer_group.membership import ConsumerMembership, Sent, TopicIdPartition
from kcoord.client.core.consumer_group.reactions import Reaction
from kcoord.client.core.consumer_group.request import HeartbeatRequest, Subscribed
from kcoord.client.core.consumer_group.states import AT_ONCE, State
from kcoord.client.core.consumer_group.timer import ConsumerHeartbeatTimer
from kcoord.client.core.effects import Lanes, Wait
from kcoord.client.core.lane import Lane
from kcoord.client.core.link import Link
from kcoord.protocol.errors import Error, ProtocolError

ATTEMPT_MS = 5_000
"""Longest wait before the next attempt: the predecessor may leave before its session ends."""

GRACE_S = 2.0
"""A session may last this much longer than announced: a request that is held ends a little late."""


class OldSession:
    """The session that a join waits for. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._ends_at: float | None = None

    def outlives(self, failure: ProtocolError, now: float) -> bool:
        """Whether this refusal ends with the old session, and that may still be running."""
        if failure.error is not Error.UNRELEASED_INSTANCE_ID or failure.retry_after_ms is None:
            return False
        if self._ends_at is None:
            self._ends_at = now + failure.retry_after_ms / 1000
        return now < self._ends_at + GRACE_S

    def forget(self) -> None:
        """The member joined, or continues for another reason."""
        self._ends_at = None


log = logging.getLogger("kcoord.client")


@dataclass(slots=True)
class Member:
    """State shared by the two lanes of a member."""

    config: ConsumerConfig
    link: Link
    condition: Condition
    lanes: Lanes
    membership: ConsumerMembership
    timer: ConsumerHeartbeatTimer
    request: HeartbeatRequest
    subscribed: Subscribed

    async def send_leave(self, body: dict[str, Any], timeout_ms: int) -> None:
        """Tell the coordinator, once; whatever it answers, the member has left."""
        epoch, group = body["member_epoch"], self.config.group_id
        if self.link.coordinator is None:
            log.warning("group %s: member %s cannot send its leave request", group, body["member_id"])
            return
        log.info("group %s: member %s leaves with epoch %d", group, body["member_id"], epoch)
        try:
            await self.link.call(self.request.path, body, wire.ConsumerHeartbeatAnswer, timeout_ms=timeout_ms)
        except ProtocolError as failure:
            log.warning("group %s: the leave failed: %s", group, failure)


@dataclass(frozen=True, slots=True)
class Going:
    """A heartbeat about to be sent."""

    sent: Sent
    body: dict[str, Any]
    hold_ms: int
    full: bool


class ConsumerHeartbeats(Lane):
    """Sends heartbeats while the member has something to report or a session to keep, one at a time; leaves when
    max_poll_interval_ms passed without a poll.
    """

    def __init__(self, member: Member) -> None:
        super().__init__(f"kcoord-heartbeat-{member.config.group_id}", member.condition, member.lanes)
        self._member = member
        self._old_session = OldSession()

    async def _run_until_stopped(self) -> None:
        member = self._member
        while not self.stopped:
            now = member.condition.clock()
            if now >= member.timer.poll_deadline and member.membership.poll_expired():
                await self._leave_stale()
                continue
            wait_s = self._wait_s(now)
            if wait_s is None or wait_s > 0:
                await Wait(member.condition.version, wait_s)
            else:
                await self._beat(self._next(now))

    def _wait_s(self, now: float) -> float | None:
        """How long nothing has to be done; None: until something changes."""
        membership, timer = self._member.membership, self._member.timer
        if not membership.heartbeating:
            return None
        due = timer.due_at(at_once=membership.state in AT_ONCE)
        if membership.takes_part:
            due = min(due, timer.poll_deadline)
        return max(0.0, due - now)

    def _next(self, now: float) -> Going:
        member = self._member
        hold_ms = member.timer.hold_ms(now) if member.membership.idle and member.request.may_be_held else 0
        full = member.request.is_full or member.membership.state is State.JOINING
        body = member.request.body(member.membership, member.subscribed, hold_ms)
        member.timer.sent(now)
        return Going(member.membership.sending(), body, hold_ms, full)

    async def _beat(self, going: Going) -> None:
        member = self._member
        try:
            answer = await member.link.call(
                member.request.path,
                going.body,
                wire.ConsumerHeartbeatAnswer,
                held_ms=going.hold_ms,
                timeout_ms=member.timer.timeout_ms(),
            )
        except ProtocolError as failure:
            self._failed(going, failure)
            return
        self._old_session.forget()
        is_new = member.membership.answered(going.sent, answer.member_epoch, _partitions(answer))
        # With nothing to do, wait for a change at the service rather than here. If a heartbeat that could have been
        # held is answered without a change, the service does not hold heartbeats: then the interval applies.
        at_once = member.request.may_be_held and member.membership.state is State.STABLE and (is_new or going.full)
        member.timer.succeeded(member.condition.clock(), answer.heartbeat_interval_ms, at_once=at_once)
        member.condition.notify_all()
        if is_new:
            member_id = going.body["member_id"]
            log.info("group %s: member %s is at epoch %d", member.config.group_id, member_id, answer.member_epoch)

    def _failed(self, going: Going, failure: ProtocolError) -> None:
        member = self._member
        now = member.condition.clock()
        waits = going.sent.joining and self._old_session.outlives(failure, now)
        reaction = member.membership.failed(going.sent, failure, passes=waits)
        member.request.forget()
        if waits:
            member.timer.failed(now, min(failure.retry_after_ms or 0, ATTEMPT_MS), at_once=False)
        elif reaction is Reaction.REPORT:
            member.timer.reported(now, failure.retry_after_ms)
        elif reaction is not None:
            at_once = reaction in (Reaction.REDISCOVER, Reaction.REJOIN)
            member.timer.failed(now, failure.retry_after_ms, at_once=at_once)
        member.condition.notify_all()
        if reaction is None:
            return
        log.info("group %s: heartbeat: %s: %s", member.config.group_id, failure.error.name, failure)

    async def _leave_stale(self) -> None:
        member = self._member
        log.warning("group %s: %s", member.config.group_id, _POLL_EXPIRED)
        await member.send_leave(member.request.leave(member.membership), member.timer.timeout_ms())
        member.membership.stale()
        member.condition.notify_all()


def _partitions(answer: wire.ConsumerHeartbeatAnswer) -> list[TopicIdPartition] | None:
    return None if answer.assignment is None else list(_named(answer.assignment))


def _named(assignment: wire.ConsumerAssignment) -> Iterator[TopicIdPartition]:
    for topic in assignment.topic_partitions:
        if topic.topic is None:
            # The service removes partitions of deleted topics in the next assignment.
            log.warning("topic %s was deleted: its partitions are no longer read", topic.topic_id)
            continue
        for partition in topic.partitions:
            yield TopicIdPartition(topic.topic_id, topic.topic, partition)


_POLL_EXPIRED = (
    "leaving, consumer poll timeout has expired: poll() was not called for longer than max_poll_interval_ms. "
    "Process fewer records per poll (max_poll_records) or raise max_poll_interval_ms."
)
