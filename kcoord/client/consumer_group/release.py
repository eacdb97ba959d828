"""A static member that comes back while the session of its crashed predecessor still runs.

Differs from Kafka: there UNRELEASED_INSTANCE_ID ends the client at once, so a worker that crashed fails as often as its
supervisor starts it, until the old session is over. Ours joins by itself then. That another live member has the
instance id shows in its session: it is renewed, and outlasts what the first refusal said.
Source: consumer.md 3.2 and 11.4; http-api.md 1 (`action: retry`).
"""

from __future__ import annotations

from kcoord.protocol.errors import Error, ProtocolError

ATTEMPT_MS = 5_000
"""Longest wait before the next attempt: the predecessor may leave before its session ends."""

GRACE_S = 2.0
"""A session may last that much longer than was said: a request that is held ends a little late."""


class OldSession:
    """The session that a join waits for. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._ends_at: float | None = None

    def outlives(self, failure: ProtocolError, now: float) -> bool:
        """Is this a refusal that ends with the old session, and may that still run?"""
        if failure.error is not Error.UNRELEASED_INSTANCE_ID or failure.retry_after_ms is None:
            return False
        if self._ends_at is None:
            self._ends_at = now + failure.retry_after_ms / 1000
        return now < self._ends_at + GRACE_S

    def forget(self) -> None:
        """The member got in, or goes on for another reason."""
        self._ends_at = None
