"""What a user implements to be notified of rebalances. Source: KIP-429."""

from __future__ import annotations

from collections.abc import Collection

from kcoord.client.types import TopicPartition


class ConsumerRebalanceListener:
    """Called by the thread that polls, inside `poll` (and `unsubscribe`, `close`). Override what you need.

    With an eager assignor the lists are complete: everything is revoked before each rebalance, everything assigned
    after it. With a cooperative one they are the differences. `poll` raises what a method raises; the rebalance
    continues with the next one.
    """

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """`revoked` are given up; they remain this member's until this returns: commit what is done.

        Eager: at the start of every rebalance, also with nothing to revoke. Cooperative: only with something to revoke.
        """

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """`assigned` are new; seeking is allowed here. Called at the end of every rebalance, even with nothing new."""

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        """`lost` may already belong to another member: committing fails. Falls back to `on_partitions_revoked`."""
        self.on_partitions_revoked(lost)


class AsyncConsumerRebalanceListener:
    """The same for `AsyncConsumer`, with methods that are awaited by the task that polls.

    One that is cancelled counts as one that raised.
    """

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """See `ConsumerRebalanceListener.on_partitions_revoked`."""

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """See `ConsumerRebalanceListener.on_partitions_assigned`."""

    async def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        """See `ConsumerRebalanceListener.on_partitions_lost`."""
        await self.on_partitions_revoked(lost)
