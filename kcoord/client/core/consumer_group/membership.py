"""One member as a state machine: answers go in, states and work come out.

No network, no waiting, no clock. Source: consumer.md 11.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kcoord.client.core.consumer_group.reactions import Reaction, heartbeat_reaction
from kcoord.client.core.consumer_group.states import HEARTBEATING, MEMBERS, State, check
from kcoord.client.types import TopicPartition
from kcoord.protocol.errors import ProtocolError

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2


class TopicIdPartition(NamedTuple):
    """One partition of a topic that may be deleted and created again under the same name."""

    topic_id: str
    topic: str
    partition: int

    @property
    def named(self) -> TopicPartition:
        """In the form users see."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class Assignment:
    """Partitions with a number assigned by this client: two assignments with equal partitions are still distinct."""

    number: int
    partitions: frozenset[TopicIdPartition]


NOTHING = Assignment(0, frozenset())


@dataclass(frozen=True, slots=True)
class Sent:
    """The identity a heartbeat was sent with. `stay` counts joins: answers to an earlier stay do not count."""

    stay: int
    epoch: int
    state: State

    @property
    def joining(self) -> bool:
        """It was sent with epoch 0."""
        return self.epoch == JOIN_EPOCH


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """An assignment to put in place, within one stay."""

    stay: int
    target: Assignment


class ConsumerMembership:
    """One member's state.

    Parameters: `member_id` is kept for life, also across fencing (KIP-848); `static`: it only leaves temporarily.
    `epoch` is the member epoch, 0 before the first answer; `stay` grows with each join; `target` what the service
    assigned, `applied` what was put in place; `in_flight` the heartbeat in flight; `fatal` what ended it; `reported`
    failures to report to the user once.
    """

    def __init__(self, member_id: str, *, static: bool = False) -> None:
        self.member_id = member_id
        self.static = static
        self.state = State.UNSUBSCRIBED
        self.epoch = JOIN_EPOCH
        self.stay = 0
        self.target = NOTHING
        self.applied = NOTHING
        self.in_flight: Sent | None = None
        self.fatal: ProtocolError | None = None
        self.reported: list[ProtocolError] = []
        self._asked = False
        self._last_number = NOTHING.number
        self._begun: frozenset[TopicIdPartition] = frozenset()

    @property
    def takes_part(self) -> bool:
        """The group counts this member, or is about to."""
        return self.state in MEMBERS

    @property
    def heartbeating(self) -> bool:
        """Heartbeats are due."""
        return self.state in HEARTBEATING

    @property
    def may_commit(self) -> bool:
        """The group knows this member, and it owns its partitions."""
        return self.heartbeating and self.epoch > JOIN_EPOCH

    @property
    def idle(self) -> bool:
        """Once its next heartbeat is sent, the member only waits for the service, which may hold that heartbeat."""
        at_rest = self.state in (State.STABLE, State.ACKNOWLEDGING)
        return at_rest and self.applied.number == self.target.number

    @property
    def owned(self) -> frozenset[TopicIdPartition]:
        """What a heartbeat reports as owned: whatever this member may have before the heartbeat is answered.

        Differs from Kafka: its client reports what is in place. What is being put in place meanwhile is missing there,
        so the coordinator, if it wants that back by then, takes it as given up and assigns it to another member.
        """
        return self.applied.partitions | self.target.partitions | self._begun

    @property
    def leave_epoch(self) -> int:
        """The epoch that means "I leave": a static member keeps its partitions until its session ends."""
        return LEAVE_STATIC_EPOCH if self.static else LEAVE_EPOCH

    # Joining and heartbeats

    def join(self) -> None:
        """Begin a stay: from UNSUBSCRIBED, or, once the partitions are reported lost, from FENCED or STALE."""
        self._to(State.JOINING)
        self.stay += 1
        self._asked = False

    def sending(self) -> Sent:
        """A heartbeat is sent. What it acknowledges counts as acknowledged (11.2): one that fails is sent in full."""
        sent = Sent(self.stay, self.epoch, self.state)
        self.in_flight = sent
        self._asked = True
        if self.state is State.ACKNOWLEDGING:
            self._to(State.STABLE if self.applied.number == self.target.number else State.RECONCILING)
        return sent

    def answered(self, sent: Sent, epoch: int, partitions: Iterable[TopicIdPartition] | None) -> bool:
        """A heartbeat succeeded (11.3). `partitions` None: unchanged. True if anything was new."""
        self.in_flight = None
        if sent.stay != self.stay or not self.heartbeating:
            return False
        is_new = epoch != self.epoch
        self.epoch = epoch
        if not self.takes_part:
            return is_new
        if partitions is not None:
            is_new = self._retarget(frozenset(partitions)) or is_new
        if self.state is State.JOINING or self.target.number != self.applied.number:
            self._settle()
        return is_new

    def _retarget(self, partitions: frozenset[TopicIdPartition]) -> bool:
        if partitions == self.target.partitions:
            return False
        self._last_number += 1
        self.target = Assignment(self._last_number, partitions)
        return True

    def _settle(self) -> None:
        if self.applied.number == self.target.number:
            self._to(State.STABLE)
        elif self.state is not State.ACKNOWLEDGING:
            # What was put in place is reported first, immediately; `sending` continues from there.
            self._to(State.RECONCILING)

    def failed(self, sent: Sent, failure: ProtocolError, *, passes: bool = False) -> Reaction | None:
        """A heartbeat failed (11.4): change the state, return the next step; None: the member has left meanwhile.

        `passes`: the failure is known to be temporary, whatever the table says about the error.
        """
        self.in_flight = None
        reaction = Reaction.BACK_OFF if passes else heartbeat_reaction(failure.error, joining=sent.joining)
        if sent.stay != self.stay:
            return None
        if reaction is Reaction.REJOIN and self.state is State.LEAVING:
            self.left()
        if not self.heartbeating:
            return None
        if reaction is Reaction.REJOIN:
            self._to(State.FENCED if self.takes_part else State.UNSUBSCRIBED)
            self._forget()
        elif reaction is Reaction.FAIL:
            self._to(State.FATAL)
            self.fatal = failure
            self._forget()
        elif reaction is Reaction.REPORT:
            self.reported.append(failure)
        return reaction

    # Reconciling

    def reconciliation(self) -> Reconciliation | None:
        """What the user's lane has to put in place now; None: nothing."""
        if self.state is not State.RECONCILING:
            return None
        self._begun |= self.target.partitions
        return Reconciliation(self.stay, self.target)

    def stands(self, work: Reconciliation) -> bool:
        """`work` is still valid: the member did not leave, was not fenced, did not rejoin."""
        return self.state is State.RECONCILING and self.stay == work.stay

    def reconciled(self, work: Reconciliation) -> bool:
        """`work` is in place and the listener has returned. False if it is no longer valid."""
        if not self.stands(work):
            return False
        self.applied = work.target
        self._begun = frozenset()
        self._to(State.ACKNOWLEDGING)
        return True

    # Leaving

    def prepare_leaving(self) -> bool:
        """The user leaves. False if the member is not in the group: any partitions it holds are lost."""
        if self.state is State.FENCED:
            self._to(State.UNSUBSCRIBED)
        if not self.takes_part:
            return False
        self._to(State.PREPARE_LEAVING)
        return True

    def begin_leaving(self) -> bool:
        """The listener has returned. True if a leave must be sent, followed by a call to `left`."""
        if self.state is not State.PREPARE_LEAVING:
            return False
        self._to(State.LEAVING)
        if not self._asked:
            self.left()
            return False
        return True

    def left(self) -> None:
        """The leave was sent; its answer does not matter."""
        if self.state is State.LEAVING:
            self._to(State.UNSUBSCRIBED)
            self._forget()

    def poll_expired(self) -> bool:
        """The user does not poll. True if a leave must be sent, followed by a call to `stale`."""
        if not self.takes_part:
            return False
        self._to(State.PREPARE_LEAVING)
        self._to(State.LEAVING)
        return True

    def stale(self) -> None:
        """The leave of a member whose user does not poll was sent."""
        if self.state is State.LEAVING:
            self._to(State.STALE)
            self._forget()

    def _forget(self) -> None:
        self.epoch = JOIN_EPOCH
        self.target = self.applied = NOTHING
        self._begun = frozenset()

    def _to(self, state: State) -> None:
        self.state = check(self.state, state)
