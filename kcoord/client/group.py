"""What a consumer and its part in the group know of each other, whichever protocol the group speaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kcoord.client.config import ConsumerConfig
from kcoord.client.link import Link
from kcoord.client.membership import Generation
from kcoord.client.monitor import Monitor
from kcoord.client.offsets import Committer, OffsetManager
from kcoord.client.positions import Positions
from kcoord.client.subscription import SubscriptionState
from kcoord.client.types import MemberState
from kcoord.client.worker import Worker


@dataclass(frozen=True, slots=True)
class Parts:
    """What a consumer is made of."""

    config: ConsumerConfig
    link: Link
    monitor: Monitor
    worker: Worker
    subscription: SubscriptionState
    offsets: OffsetManager
    positions: Positions


class Coordinator(Committer, Protocol):
    """A consumer's part in its group. Used by the user's thread, except for `begin_commit` and what belongs to it."""

    @property
    def state(self) -> MemberState:
        """How far the member's part in the group has come."""

    @property
    def generation(self) -> Generation:
        """The member's id and its generation or epoch, as far as it has them."""

    def poll(self) -> None:
        """Take part in the group as far as it goes without waiting, except for commits and the listener.

        Raises what was found to be fatal, and what the listener raises.
        """

    def wait_s(self) -> float | None:
        """How long `poll` has nothing to do unless there is news; None: until there is."""

    def request_rejoin(self, reason: str) -> None:
        """Join again at the next poll. Raises IllegalStateError where the protocol knows no such thing."""

    def leave(self, reason: str, deadline: float, *, commit: bool) -> None:
        """Commit (if automatic, and `commit`), report the partitions, leave the group.

        What the listener raises is raised after that.
        """

    def stop(self, timeout_s: float) -> bool:
        """End the threads. True if they ended in time."""
