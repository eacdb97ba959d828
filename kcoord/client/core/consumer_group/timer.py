"""When a heartbeat is due, how long the service may hold it, when the last poll is too long ago. No clock."""

from __future__ import annotations

from kcoord.client.config import ConsumerConfig
from kcoord.client.core.backoff import Backoff

LEAST_TIMEOUT_MS = 3_000


class ConsumerHeartbeatTimer:
    """The member's deadlines. Times are seconds of a monotonic clock; the interval comes from the service.

    How long a heartbeat may be held: at most one interval, so that the service hears from a held member as often as
    from one that sends heartbeats in Kafka's way, and a request lost with its connection is detected after the
    interval plus the time that an answer may take. The service requires sessions that are longer than the interval and
    starts them when it stops holding, so there is time for another attempt. Never beyond the time at which the user
    must have polled, since the lane that waits for the answer is the one that would leave the group then.
    Source: consumer.md 11.2; http-api.md "Waiting".
    """

    def __init__(self, config: ConsumerConfig, now: float) -> None:
        self._most_wait_ms = config.max_wait_ms
        self._request_timeout_ms = config.request_timeout_ms
        self._poll_s = config.max_poll_interval_ms / 1000
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._interval_ms = 0
        self._next_at = now
        self._not_before = now
        self.poll_deadline = now + self._poll_s

    def polled(self, now: float) -> None:
        """The user polled."""
        self.poll_deadline = now + self._poll_s

    def sent(self, now: float) -> None:
        """A heartbeat is being sent."""
        self._next_at = now + self._interval_ms / 1000

    def succeeded(self, now: float, interval_ms: int, *, at_once: bool) -> None:
        """A heartbeat was answered. `at_once`: send the next, which the service may hold, without delay."""
        self._backoff.reset()
        self._not_before = now
        self._next_at += (interval_ms - self._interval_ms) / 1000
        self._interval_ms = interval_ms
        if at_once:
            self._next_at = now

    def failed(self, now: float, retry_after_ms: int | None, *, at_once: bool) -> None:
        """A heartbeat failed. `at_once`: the next one needs no backoff, if this is the first failure in a row."""
        first = self._backoff.attempts == 0
        delay_ms = self._backoff.next_ms(retry_after_ms)
        self._next_at = now
        self._not_before = now if at_once and first and not retry_after_ms else now + delay_ms / 1000

    def reported(self, now: float, retry_after_ms: int | None) -> None:
        """A heartbeat was refused for a reason the user must fix: the next one follows after the interval."""
        self.failed(now, retry_after_ms, at_once=False)
        self._not_before = max(self._not_before, now + self._interval_ms / 1000)

    def due_at(self, *, at_once: bool) -> float:
        """When the next heartbeat is due. `at_once`: it does not wait for the interval."""
        return self._not_before if at_once else max(self._not_before, self._next_at)

    def hold_ms(self, now: float) -> int:
        """How long the service may hold a heartbeat that is sent now."""
        left_ms = int((self.poll_deadline - now) * 1000)
        return max(0, min(self._interval_ms, self._most_wait_ms, left_ms))

    def timeout_ms(self) -> int:
        """How long an answer may take, in addition to the hold time."""
        if not self._interval_ms:
            return self._request_timeout_ms
        return min(self._request_timeout_ms, max(self._interval_ms, LEAST_TIMEOUT_MS))
