"""The heartbeat thread: keeps the session while the user's code works, and ends it when that takes too long.

Source: KIP-62; classic.md 11.
"""

from __future__ import annotations

import logging
import threading
import time

from kcoord.client import wire
from kcoord.client.membership import Generation, Step
from kcoord.client.reactions import Api
from kcoord.client.rebalance import REASON_LIMIT, Shared
from kcoord.protocol.errors import ProtocolError

log = logging.getLogger("kcoord.client")


class Departure:
    """Leaving the group. Best effort: sent once, failures are only logged; the state is always reset."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def leave(self, reason: str, timeout_ms: int) -> None:
        """Forget the membership; tell the coordinator, unless the member is static or was never one."""
        shared = self._shared
        with shared.monitor:
            was = shared.membership.leave()
            shared.monitor.changed()
        if shared.config.group_instance_id is not None or not was.member_id:
            return
        if shared.link.coordinator is None:
            log.warning("group %s: member %s cannot send its leave request", shared.config.group_id, was.member_id)
            return
        log.info("group %s: member %s leaves: %s", shared.config.group_id, was.member_id, reason)
        member = {"member_id": was.member_id, "group_instance_id": None, "reason": reason[:REASON_LIMIT]}
        try:
            answer = shared.link.call("leave", {"members": [member]}, wire.LeaveAnswer, timeout_ms=timeout_ms)
        except ProtocolError as failure:
            log.warning("group %s: the leave failed: %s", shared.config.group_id, failure)
            return
        refused = [m.error_code for m in answer.members if m.error_code]
        if refused:
            log.info("group %s: the leave was answered with error %d", shared.config.group_id, refused[0])


class HeartbeatThread:
    """Sends heartbeats while the member has a session; leaves when max_poll_interval_ms passed without a poll.

    `failure` is what ended the thread, if it was not `stop`: without heartbeats the membership cannot continue.
    """

    def __init__(self, shared: Shared, departure: Departure) -> None:
        self._shared = shared
        self._departure = departure
        self._stopped = False
        self.failure: Exception | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"kcoord-heartbeat-{shared.config.group_id}", daemon=True
        )

    def start(self) -> None:
        """Start, unless already started."""
        # Not `is_alive`: a thread that failed is reported by `failure` and cannot be restarted.
        if self._thread.ident is None:
            self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """Stop; waits for a heartbeat in flight, at most `timeout_s`. True if the thread ended."""
        with self._shared.monitor:
            self._stopped = True
            self._shared.monitor.changed()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._beat_until_stopped()
        except Exception as error:  # noqa: BLE001 - poll() raises it; a thread has no caller to raise it to
            with self._shared.monitor:
                self.failure = error
                self._shared.monitor.changed()

    def _beat_until_stopped(self) -> None:
        shared = self._shared
        while True:
            sent: Generation | None = None
            with shared.monitor:
                if self._stopped:
                    return
                now = time.monotonic()
                seen = shared.monitor.version
                overdue = shared.membership.in_group and shared.timer.poll_expired(now)
                if not overdue:
                    if not shared.membership.heartbeating or now < shared.timer.next_at:
                        shared.monitor.wait(seen, self._wait_s(now))
                        continue
                    sent = shared.membership.generation
                    shared.timer.sent(now)
                    if shared.timer.session_expired(now):
                        log.warning("group %s: no heartbeat succeeded within the session", shared.config.group_id)
                        shared.link.forget()
            if sent is None:
                self._departure.leave(_POLL_EXPIRED, shared.config.heartbeat_timeout_ms)
            else:
                self._beat(sent)

    def _wait_s(self, now: float) -> float | None:
        membership = self._shared.membership
        if not membership.in_group:
            return None
        return self._shared.timer.wait_s(now, membership.heartbeating)

    def _beat(self, sent: Generation) -> None:
        shared = self._shared
        body = {
            "member_id": sent.member_id,
            "generation_id": sent.generation_id,
            "group_instance_id": shared.config.group_instance_id,
        }
        try:
            shared.link.call("heartbeat", body, wire.HeartbeatAnswer, timeout_ms=shared.config.heartbeat_timeout_ms)
        except ProtocolError as failure:
            self._failed(failure, sent)
            return
        with shared.monitor:
            shared.timer.succeeded(time.monotonic())

    def _failed(self, failure: ProtocolError, sent: Generation) -> None:
        shared = self._shared
        with shared.monitor:
            step = shared.membership.failed(Api.HEARTBEAT, failure, sent)
            now = time.monotonic()
            if step is Step.RETRY:
                shared.timer.failed(now, failure.retry_after_ms)
            else:
                # REBALANCE_IN_PROGRESS renews the session; after the others no session is left.
                shared.timer.succeeded(now)
            shared.monitor.changed()
        log.info("group %s: heartbeat: %s: %s", shared.config.group_id, failure.error.name, failure)


_POLL_EXPIRED = (
    "consumer poll timeout has expired: poll() was not called for longer than max_poll_interval_ms. "
    "Process fewer records per poll (max_poll_records) or raise max_poll_interval_ms."
)
