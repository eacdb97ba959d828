"""A static member that comes back while the session of its crashed predecessor is still running.

Differs from Kafka: there UNRELEASED_INSTANCE_ID ends the client at once, so a worker that crashed fails every time its
supervisor starts it, until the old session is over. Ours then joins by itself. If another live member has the
instance id, its session shows it: it is renewed, and outlasts the time that the first refusal announced.
Source: consumer.md 3.2 and 11.4; http-api.md 1 (`action: retry`).
"""

from __future__ import annotations

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
