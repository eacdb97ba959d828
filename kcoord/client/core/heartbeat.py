"""The heartbeats: keep the session while the user's code works, and end it when that takes too long.

Source: KIP-62; classic.md 11.
"""

from __future__ import annotations

import logging

from kcoord.client.core import wire
from kcoord.client.core.effects import Wait
from kcoord.client.core.lane import Lane
from kcoord.client.core.membership import Generation, Step
from kcoord.client.core.reactions import Api
from kcoord.client.core.rebalance import REASON_LIMIT, Shared
from kcoord.protocol.errors import Error, ProtocolError

log = logging.getLogger("kcoord.client")


class Departure:
    """Leaving the group. Best effort: sent once, failures are only logged; the state is always reset."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    async def leave(self, reason: str, timeout_ms: int) -> None:
        """Forget the membership; tell the coordinator, unless the member is static or was never one."""
        shared = self._shared
        was = shared.membership.leave()
        shared.condition.notify_all()
        if shared.config.group_instance_id is not None or not was.member_id:
            return
        if shared.link.coordinator is None:
            log.warning("group %s: member %s cannot send its leave request", shared.config.group_id, was.member_id)
            return
        log.info("group %s: member %s leaves: %s", shared.config.group_id, was.member_id, reason)
        member = {"member_id": was.member_id, "group_instance_id": None, "reason": reason[:REASON_LIMIT]}
        try:
            answer = await shared.link.call("leave", {"members": [member]}, wire.LeaveAnswer, timeout_ms=timeout_ms)
        except ProtocolError as failure:
            log.warning("group %s: the leave failed: %s", shared.config.group_id, failure)
            return
        refused = [m.error_code for m in answer.members if m.error_code]
        if refused:
            log.info("group %s: the leave was answered with error %d", shared.config.group_id, refused[0])


class Heartbeats(Lane):
    """Sends heartbeats while the member has a session; leaves when max_poll_interval_ms passed without a poll.

    `failure` is what ended the lane, if it was not `stop`: without heartbeats the membership cannot continue.
    """

    def __init__(self, shared: Shared, departure: Departure) -> None:
        super().__init__(f"kcoord-heartbeat-{shared.config.group_id}", shared.condition, shared.lanes)
        self._shared = shared
        self._departure = departure

    async def _run_until_stopped(self) -> None:
        shared = self._shared
        membership, timer = shared.membership, shared.timer
        while not self.stopped:
            now = shared.condition.clock()
            if membership.in_group and timer.poll_expired(now):
                await self._departure.leave(_POLL_EXPIRED, shared.config.heartbeat_timeout_ms)
            elif not membership.heartbeating or now < timer.next_at:
                await Wait(shared.condition.version, self._wait_s(now))
            else:
                timer.sent(now)
                if timer.session_expired(now):
                    log.warning("group %s: no heartbeat succeeded within the session", shared.config.group_id)
                    shared.link.forget()
                await self._beat(membership.generation)

    def _wait_s(self, now: float) -> float | None:
        membership = self._shared.membership
        if not membership.in_group:
            return None
        return self._shared.timer.wait_s(now, membership.heartbeating)

    async def _beat(self, sent: Generation) -> None:
        shared = self._shared
        body = {
            "member_id": sent.member_id,
            "generation_id": sent.generation_id,
            "group_instance_id": shared.config.group_instance_id,
        }
        timeout_ms = shared.config.heartbeat_timeout_ms
        try:
            await shared.link.call("heartbeat", body, wire.HeartbeatAnswer, timeout_ms=timeout_ms)
        except ProtocolError as failure:
            self._failed(failure, sent)
            return
        shared.timer.succeeded(shared.condition.clock())

    def _failed(self, failure: ProtocolError, sent: Generation) -> None:
        shared = self._shared
        step = shared.membership.failed(Api.HEARTBEAT, failure, sent)
        now = shared.condition.clock()
        if failure.error is Error.THROTTLING_QUOTA_EXCEEDED:
            shared.timer.throttled(now, failure.retry_after_ms)
        elif step is Step.RETRY:
            shared.timer.failed(now, failure.retry_after_ms)
        else:
            # REBALANCE_IN_PROGRESS renews the session; after the others no session is left.
            shared.timer.succeeded(now)
        shared.condition.notify_all()
        log.info("group %s: heartbeat: %s: %s", shared.config.group_id, failure.error.name, failure)


_POLL_EXPIRED = (
    "consumer poll timeout has expired: poll() was not called for longer than max_poll_interval_ms. "
    "Process fewer records per poll (max_poll_records) or raise max_poll_interval_ms."
)
