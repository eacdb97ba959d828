"""The user's side of a member of a consumer or share group: joins, says what went wrong, leaves.

Used by the user's lane. Source: consumer.md 11.
"""

from __future__ import annotations

import logging

from kcoord.client.core.consumer_group.heartbeat import ConsumerHeartbeats, Member
from kcoord.client.core.consumer_group.states import SHOWN, State
from kcoord.client.core.membership import NO_GENERATION, Generation
from kcoord.client.errors import error_of
from kcoord.client.types import MemberState

log = logging.getLogger("kcoord.client")

JOIN_ANSWER_S = 1.0
"""How long a leaving member waits for the answer to its join: a leave that overtakes it would have no effect."""

HELD_ANSWER_S = 1.0
"""How long closing waits for the answer to a request that the service may still hold."""


class Participant:
    """A member with its heartbeats."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._condition = member.condition
        self._membership = member.membership
        self._heartbeat = ConsumerHeartbeats(member)

    @property
    def state(self) -> MemberState:
        """The state of the member in the group."""
        return SHOWN[self._membership.state]

    @property
    def generation(self) -> Generation:
        """The member's id, and its epoch in place of a generation; -1 while it has no epoch."""
        return Generation(self._membership.epoch or NO_GENERATION, self._membership.member_id)

    async def stop(self, deadline: float) -> bool:
        """Stop the heartbeats. True if they ended in time."""
        if self._membership.in_flight is not None:
            deadline = min(deadline, self._condition.clock() + HELD_ANSWER_S)
        return await self._heartbeat.stop(deadline)

    def _polled(self) -> None:
        """The user polls. Raises RuntimeError if the heartbeats failed."""
        self._member.timer.polled(self._condition.clock())
        if self._heartbeat.failure is not None:
            raise RuntimeError("the heartbeat thread failed: close this consumer") from self._heartbeat.failure

    def _join_if_out(self) -> bool:
        """Join unless the member is in the group. Raises what ended it, and what the user has to know."""
        membership = self._membership
        if membership.fatal is not None:
            raise error_of(membership.fatal)
        if membership.reported:
            raise error_of(membership.reported.pop(0))
        if membership.state not in (State.UNSUBSCRIBED, State.FENCED, State.STALE):
            return False
        membership.join()
        self._condition.notify_all()
        log.info("group %s: member %s joins", self._member.config.group_id, membership.member_id)
        return True

    def _left_ms(self, deadline: float) -> int:
        limit_ms = self._member.config.request_timeout_ms
        return max(1, min(limit_ms, int((deadline - self._condition.clock()) * 1000)))

    async def _say_leave(self, deadline: float) -> None:
        """Send the leave of a member that prepared it, once its join was answered."""
        try:
            await self._await_join(min(deadline, self._condition.clock() + JOIN_ANSWER_S))
        finally:
            await self._leave_now(deadline)

    async def _leave_now(self, deadline: float) -> None:
        if not self._membership.begin_leaving():
            return
        body = self._member.request.leave(self._membership)
        try:
            await self._member.send_leave(body, self._left_ms(deadline))
        finally:
            self._membership.left()
            self._condition.notify_all()

    async def _await_join(self, deadline: float) -> None:
        def answered() -> bool:
            sent = self._membership.in_flight
            return sent is None or not sent.joining

        await self._condition.wait_for(answered, deadline)
