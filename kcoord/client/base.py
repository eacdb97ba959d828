"""The calls that both consumers have alike: those that never wait."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from kcoord.client.core.arguments import offsets_of
from kcoord.client.core.consumer import ConsumerCore
from kcoord.client.core.membership import Generation
from kcoord.client.core.offsets import CommitCallback
from kcoord.client.types import MemberState, OffsetAndMetadata, TopicPartition

T = TypeVar("T")


class Driver(Protocol):
    """Runs calls that do not wait."""

    def now(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a call of the user. Raises IllegalStateError while another call is under way elsewhere."""

    def look(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run something that may be done at any time."""


class BaseConsumer(ABC):
    """What a consumer does without waiting."""

    _core: ConsumerCore

    @property
    @abstractmethod
    def _driver(self) -> Driver: ...

    # Membership

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read `partitions` without joining the group; commits are those of a standalone reader (generation -1).

        The positions of partitions that were assigned before are committed, if commits are automatic. Raises
        IllegalStateError after `subscribe`.
        """
        self._driver.now(self._core.assign, partitions)

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to by name."""
        return self._core.subscription.topics

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this consumer currently reads."""
        return self._core.subscription.assigned

    @property
    def state(self) -> MemberState:
        """The state of the member in the group."""
        return self._driver.look(lambda: self._core.coordinator.state)

    @property
    def generation(self) -> Generation:
        """The member's id and generation, as far as known; in a consumer group, `generation_id` is the member
        epoch.
        """
        return self._driver.look(lambda: self._core.coordinator.generation)

    def group_metadata(self) -> Generation:
        """The member for commits not sent through this client, such as inside a sink's transaction: the member and the
        generation, or epoch, whose assignment is in place.

        Unlike `generation` it is never that of a rebalance which this consumer has not taken part in with a `poll`.
        Raises what `commit` raises where it cannot succeed: CommitFailedError, RebalanceInProgressError, FatalErrors.
        """
        return self._driver.now(self._core.group_metadata)

    def sink_offsets(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]) -> list[dict[str, Any]]:
        """These offsets as the SQL function `kcoord.commit_offsets` takes them, for a commit in your own transaction.

        They name the topic that was read by its id, so that nothing is committed on one that was created again. Raises
        TypeError, ValueError for what cannot be committed.
        """
        chosen = offsets_of(offsets)
        return self._driver.now(lambda: self._core.offsets.sink_offsets(chosen))

    def enforce_rebalance(self, reason: str = "requested by the user") -> None:
        """Join again at the next poll (KIP-568, KIP-800). Raises IllegalStateError in a consumer group."""
        self._driver.now(self._core.request_rejoin, reason)

    @property
    def committed_again(self) -> int:
        """How many offsets this consumer committed again, after the service had lost them in a fail-over of Postgres.

        It does so by itself, for partitions that it has had since the commit, as soon as the answer to a commit or to a
        fetch of committed offsets tells of the loss.
        """
        return self._core.offsets.committed_again

    # Records

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue reading `partition` at `offset`. Raises IllegalStateError, ValueError for a negative offset."""
        self._driver.now(self._core.seek, partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continue reading `partitions` (default: all assigned) at their first offset."""
        self._driver.now(self._core.seek_to, "earliest", partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continue reading `partitions` (default: all assigned) at their end."""
        self._driver.now(self._core.seek_to, "latest", partitions)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of `partitions` until `resume`; they stay assigned. A rebalance that takes them away
        clears this."""
        self._driver.now(self._core.set_paused, partitions, True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of `partitions` again."""
        self._driver.now(self._core.set_paused, partitions, False)

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return self._core.subscription.paused()

    # Offsets

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit without waiting; one attempt. `callback(offsets, error)` runs in a later `poll`, `commit` or `close`.

        Commits reach the service in the order in which they were made. Without a callback, failures are logged.
        """
        self._driver.now(self._core.commit_async, offsets, callback)
