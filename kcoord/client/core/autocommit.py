"""Automatic commits. Used by the user's lane."""

from __future__ import annotations

import logging
from collections.abc import Collection

from kcoord.client.config import ConsumerConfig
from kcoord.client.core.condition import Clock
from kcoord.client.core.offsets import OffsetManager
from kcoord.client.core.subscription import SubscriptionState
from kcoord.client.errors import KcoordError
from kcoord.client.types import TopicPartition

log = logging.getLogger("kcoord.client")


class AutoCommit:
    """Commits positions every auto_commit_interval_ms and before partitions move; does nothing if enable_auto_commit is
    off.
    """

    def __init__(
        self, config: ConsumerConfig, subscription: SubscriptionState, offsets: OffsetManager, clock: Clock
    ) -> None:
        self._config = config
        self._subscription = subscription
        self._offsets = offsets
        self._clock = clock
        self._next_at = 0.0
        self.restart()

    def restart(self) -> None:
        """The interval starts again."""
        self._next_at = self._clock() + self._config.auto_commit_interval_ms / 1000

    def wait_s(self) -> float | None:
        """How long until something is due; None: indefinitely."""
        if not self._config.enable_auto_commit:
            return None
        return max(0.0, self._next_at - self._clock())

    def when_due(self, *, allowed: bool) -> None:
        """Commit the positions without waiting, if the interval is over and it is `allowed` now."""
        if not self._config.enable_auto_commit or self._clock() < self._next_at:
            return
        self.restart()
        if allowed:
            self._offsets.commit_async(self._subscription.consumed(), None)

    async def now(self, partitions: Collection[TopicPartition], timeout_ms: int) -> None:
        """Commit the positions of `partitions` and wait; a failure is logged, and its records will be read again."""
        if not self._config.enable_auto_commit:
            return
        try:
            await self._offsets.commit(self._subscription.consumed(partitions), timeout_ms, wakeable=False)
        except KcoordError as error:
            log.warning("group %s: the automatic commit failed: %s", self._config.group_id, error)
