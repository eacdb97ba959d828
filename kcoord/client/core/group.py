"""The interface between a consumer and its membership, for either protocol of the group."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from kcoord.client.config import ConsumerConfig
from kcoord.client.core.condition import Condition
from kcoord.client.core.effects import Lanes
from kcoord.client.core.link import Link
from kcoord.client.core.membership import Generation
from kcoord.client.core.offsets import Committer, OffsetManager
from kcoord.client.core.positions import Positions
from kcoord.client.core.subscription import SubscriptionState
from kcoord.client.core.worker import Worker
from kcoord.client.types import MemberState, TopicPartition


@dataclass(frozen=True, slots=True)
class Parts:
    """The components of a consumer."""

    config: ConsumerConfig
    link: Link
    condition: Condition
    lanes: Lanes
    worker: Worker
    subscription: SubscriptionState
    offsets: OffsetManager
    positions: Positions


class Coordinator(Committer, Protocol):
    """A consumer's membership in its group. Used by the user's lane, except for `begin_commit` and its result."""

    @property
    def state(self) -> MemberState:
        """The state of the member in the group."""

    @property
    def generation(self) -> Generation:
        """The member's id and its generation or epoch, as far as known."""

    async def poll(self) -> None:
        """Take part in the group as far as possible without waiting, except for commits and the listener.

        Raises errors found to be fatal, and what the listener raises.
        """

    async def renew(self, partitions: Collection[TopicPartition]) -> None:
        """The topics of these assigned partitions are gone: none of their positions counts any more.

        Raises what the listener raises.
        """

    def wait_s(self) -> float | None:
        """How long `poll` has nothing to do unless something changes; None: until it does."""

    def request_rejoin(self, reason: str) -> None:
        """Join again at the next poll. Raises IllegalStateError if the protocol does not support it."""

    async def leave(self, reason: str, deadline: float, *, commit: bool) -> None:
        """Commit (if automatic, and `commit`), report the partitions, leave the group.

        An exception of the listener is raised after that.
        """

    async def stop(self, deadline: float) -> bool:
        """Stop the lanes. True if they ended in time."""
