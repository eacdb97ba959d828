"""Loading: what a node does with a new partition before it answers for its groups and runs their timers.

Everything is in Postgres, and groups whose sessions could not be counted start them over when somebody looks at them
(`groups.core.rearming`), so the cost does not grow with the number of groups. Groups are read only if `group.max.size`
is set, to find those that are too large.

Source: offsets.md 9.2 and 9.3; classic.md 8.3.
"""

from __future__ import annotations

import structlog

from groups.core.shards import ShardState
from groups.nodes.hosting import Hosting
from groups.nodes.store import NodeStore
from groups.nodes.view import View
from kcoord.database.pool import Connection
from kcoord.metrics import PARTITION_LOAD_MS
from kcoord.process.runtime import Runtime
from kcoord.setting_table import INT_MAX

log = structlog.get_logger(__name__)


class Loader:
    """Loads the partitions that this node was given."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.get(NodeStore)
        self._hosting = runtime.get(Hosting)
        self._max_size = runtime.config.int("group.max.size")

    @property
    def has_work(self) -> bool:
        """Something loads, or its loading failed."""
        return any(shard.state is not ShardState.ACTIVE for shard in self._hosting.shards.values())

    async def load(self, connection: Connection, incarnation: int, view: View) -> None:
        """Load all partitions that are not active, in one transaction. Raises psycopg.Error.

        What failed before is loaded under a newer epoch.
        """
        shards = self._hosting.shards
        failed = [partition for partition, shard in shards.items() if shard.state is ShardState.FAILED]
        if failed:
            for partition, epoch in await self._store.retry(connection, incarnation, failed, view.now):
                shards.elect(partition, epoch)
        epochs = {partition: shard.epoch for partition, shard in shards.items() if shard.state is ShardState.LOADING}
        if not epochs:
            return
        try:
            if self._max_size < INT_MAX:
                await self._store.wake_oversized(connection, epochs, self._max_size)
            active = await self._store.activate(connection, incarnation, epochs)
        except Exception:
            for partition, epoch in epochs.items():
                shards.load_failed(partition, epoch)
            raise
        self._loaded(epochs, active, view)

    def _loaded(self, epochs: dict[int, int], active: list[tuple[int, int, int]], view: View) -> None:
        shards = self._hosting.shards
        for partition, epoch, load_ms in active:
            shards.loaded(partition, epoch)
            PARTITION_LOAD_MS.observe(load_ms)
        for partition, epoch in epochs.items():
            # It may have been active under this epoch already, when only this process forgot.
            found = view.by_partition[partition]
            if found.epoch == epoch and found.state == ShardState.ACTIVE.value:
                shards.loaded(partition, epoch)
        if active:
            log.info("partitions_loaded", partitions=len(active), slowest_ms=max(row[2] for row in active))
