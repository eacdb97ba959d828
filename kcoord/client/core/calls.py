"""What the calls of every consumer have in common: they are interrupted, told to stop, refused once it is closed."""

from __future__ import annotations

from typing import Any

from kcoord.client.config import ConsumerConfig
from kcoord.client.core import arguments
from kcoord.client.core.condition import Condition
from kcoord.client.errors import IllegalStateError, WakeupError


class ClientCore:
    """A consumer that may be told to wake up, to stop, and that is closed at the end."""

    def __init__(self, config: ConsumerConfig, condition: Condition) -> None:
        self.condition = condition
        self._default_ms = config.default_api_timeout_ms
        self._woken = False
        self._stop_seen = False
        self.stopping = False
        self.closed = False

    def wakeup(self) -> None:
        """Make the call that waits, or the next one that does, raise WakeupError."""
        self._woken = True
        self.condition.notify_all()

    def stop(self) -> None:
        """No more records: an iteration ends, a poll returns."""
        self.stopping = True
        self.condition.notify_all()

    def timeout_ms(self, timeout_ms: Any) -> int:
        """A timeout of the user, or the default of calls that have none."""
        return self._default_ms if timeout_ms is None else arguments.milliseconds("timeout_ms", timeout_ms)

    def _last_poll(self) -> None:
        if self._stop_seen:
            # Not another empty answer: a loop that does not look would spin forever.
            raise WakeupError("the consumer was told to stop: poll in a loop of `while not consumer.stopping`")
        self._stop_seen = True

    def _raise_wakeup(self) -> None:
        if self._woken:
            self._woken = False
            raise WakeupError("wakeup() was called")

    def _require_open(self) -> None:
        if self.closed:
            raise IllegalStateError("the consumer is closed")
