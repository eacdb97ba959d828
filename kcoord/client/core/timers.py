"""When a heartbeat is due, the session expired, the last poll too long ago. No clock: callers pass the time."""

from __future__ import annotations

from kcoord.client.config import ConsumerConfig
from kcoord.client.core.backoff import Backoff


class HeartbeatTimer:
    """The member's deadlines. Times are seconds of a monotonic clock. Source: classic.md 11.1."""

    def __init__(self, config: ConsumerConfig, now: float) -> None:
        self._interval_s = config.heartbeat_interval_ms / 1000
        self._session_s = config.session_timeout_ms / 1000
        self._poll_s = config.max_poll_interval_ms / 1000
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self.next_at = now
        self.session_deadline = now + self._session_s
        self.poll_deadline = now + self._poll_s

    def reset(self, now: float) -> None:
        """The member joined: its session starts."""
        self._backoff.reset()
        self.next_at = now + self._interval_s
        self.session_deadline = now + self._session_s

    def sent(self, now: float) -> None:
        """A heartbeat is being sent."""
        self.next_at = now + self._interval_s

    def succeeded(self, now: float) -> None:
        """A heartbeat (or another request that renews the session) was answered."""
        self._backoff.reset()
        self.session_deadline = now + self._session_s

    def failed(self, now: float, retry_after_ms: int | None) -> None:
        """A heartbeat failed: the next one follows after a backoff, at the latest after the usual interval."""
        delay_s = self._backoff.next_ms(retry_after_ms) / 1000
        self.next_at = now + (delay_s if retry_after_ms else min(delay_s, self._interval_s))

    def throttled(self, now: float, retry_after_ms: int | None) -> None:
        """A heartbeat was told to wait: it has renewed the session all the same."""
        self.session_deadline = now + self._session_s
        self.failed(now, retry_after_ms)

    def polled(self, now: float) -> None:
        """The user polled."""
        self.poll_deadline = now + self._poll_s

    def poll_expired(self, now: float) -> bool:
        """The user has not polled for max_poll_interval_ms."""
        return now >= self.poll_deadline

    def session_expired(self, now: float) -> bool:
        """No heartbeat succeeded for session_timeout_ms."""
        return now >= self.session_deadline

    def wait_s(self, now: float, heartbeating: bool) -> float:
        """How long nothing has to be done."""
        due = min(self.next_at, self.poll_deadline) if heartbeating else self.poll_deadline
        return max(0.0, due - now)
