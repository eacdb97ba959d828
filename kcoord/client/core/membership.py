"""The member's side of the classic protocol as a state machine: answers go in, the next step comes out.

No network, no waiting, no clock.
Source: classic.md 11.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from kcoord.client.core.reactions import Api, Reaction, reaction
from kcoord.client.types import MemberState
from kcoord.protocol.errors import ProtocolError

NO_GENERATION = -1
NO_MEMBER = ""


@dataclass(frozen=True, slots=True)
class Generation:
    """This member's id in which generation; -1 and "" if unknown."""

    generation_id: int = NO_GENERATION
    member_id: str = NO_MEMBER
    protocol_name: str | None = None

    @property
    def known(self) -> bool:
        """The member belongs to a generation, as far as it knows."""
        return self.generation_id != NO_GENERATION and self.member_id != NO_MEMBER


class Phase(Enum):
    """The states of the Java client; `MemberState` merges the middle two."""

    UNJOINED = MemberState.UNJOINED
    PREPARING_REBALANCE = "joining"
    COMPLETING_REBALANCE = "syncing"
    STABLE = MemberState.STABLE


class Step(Enum):
    """What the sender of a request does after a failure."""

    RESEND = "the same request at once"
    RETRY = "the same request after the back-off"
    JOIN = "a new join at once"
    JOIN_LATER = "a new join after the back-off"
    GO_ON = "nothing: the answer changes nothing for the sender"
    RAISE = "give the failure to the user"


class Membership:
    """One member's state.

    `phase`, `generation`, `rejoin_needed` and why, `is_leader`; `fatal` is a failure that a heartbeat found
    and the next poll raises; `departures` counts how often it left.
    """

    def __init__(self) -> None:
        self.phase = Phase.UNJOINED
        self.generation = Generation()
        self.rejoin_needed = True
        self.rejoin_reason = "initial join"
        self.is_leader = False
        self.fatal: ProtocolError | None = None
        self.departures = 0

    @property
    def state(self) -> MemberState:
        """The state as the protocol's documents name it."""
        if self.phase in (Phase.PREPARING_REBALANCE, Phase.COMPLETING_REBALANCE):
            return MemberState.REBALANCING
        return MemberState.STABLE if self.phase is Phase.STABLE else MemberState.UNJOINED

    @property
    def heartbeating(self) -> bool:
        """Heartbeats are due: from the answer to the join on. A parked join keeps the session alive."""
        return self.fatal is None and self.phase in (Phase.COMPLETING_REBALANCE, Phase.STABLE)

    @property
    def in_group(self) -> bool:
        """The group counts this member, or is about to: it joins or has joined."""
        return self.fatal is None and self.phase is not Phase.UNJOINED

    def request_rejoin(self, reason: str) -> None:
        """Join again at the next poll."""
        if not self.rejoin_needed:
            self.rejoin_needed = True
            self.rejoin_reason = reason

    def begin_join(self) -> Generation:
        """A join is about to be sent; returns the identity to send it with."""
        self.phase = Phase.PREPARING_REBALANCE
        return self.generation

    def joined(self, generation: Generation, is_leader: bool, sent: Generation) -> bool:
        """The join, sent as `sent`, succeeded. False if the member left or was reset meanwhile: start over."""
        if self.phase is not Phase.PREPARING_REBALANCE or self.generation != sent:
            return False
        self.generation = generation
        self.is_leader = is_leader
        self.phase = Phase.COMPLETING_REBALANCE
        return True

    def synced(self, sent: Generation) -> bool:
        """The sync, sent as `sent`, succeeded. False if the generation was reset meanwhile: rejoin now."""
        if self.phase is not Phase.COMPLETING_REBALANCE or self.generation != sent:
            return False
        self.phase = Phase.STABLE
        self.rejoin_needed = False
        return True

    def failed(self, api: Api, failure: ProtocolError, sent: Generation) -> Step:
        """A request of `api`, sent as `sent`, was answered with `failure`: change the state, return the next step."""
        kind = reaction(api, failure)
        # Differs from Kafka: heartbeats and joins use different connections here, so a heartbeat that was sent
        # before the join may be refused because the join succeeded. The answer to the join decides.
        overtaken = api is Api.HEARTBEAT and self.phase is Phase.PREPARING_REBALANCE
        unchanged = sent == self.generation and not overtaken
        if kind in (Reaction.FORGET_MEMBER, Reaction.FORGET_GENERATION):
            if unchanged:
                self._forget(f"{api.value} answered {failure.error.name}", kind is Reaction.FORGET_GENERATION)
            return _AFTER_FORGETTING[api]
        if kind is Reaction.ADOPT_MEMBER_ID:
            return self._adopt(failure, sent)
        if kind is Reaction.REJOIN_AT_POLL:
            if self.phase is Phase.STABLE and (unchanged or api is Api.COMMIT):
                self.request_rejoin("the group is rebalancing")
            return _AFTER_FORGETTING[api]
        if kind is Reaction.FENCED:
            if unchanged:
                self._fence(failure)
            return _AFTER_FORGETTING[api]
        return _STEPS[kind]

    def leave(self) -> Generation:
        """The member leaves: forget everything; returns the previous identity, to leave with."""
        was = self.generation
        self.departures += 1
        self._forget("the member left", keep_member_id=False)
        return was

    def _adopt(self, failure: ProtocolError, sent: Generation) -> Step:
        member_id = failure.fields.get("member_id")
        if not isinstance(member_id, str) or not member_id:
            return Step.RAISE
        if sent == self.generation:
            self.generation = replace(self.generation, member_id=member_id)
        return Step.JOIN

    def _forget(self, reason: str, keep_member_id: bool) -> None:
        self.generation = Generation(member_id=self.generation.member_id if keep_member_id else NO_MEMBER)
        self.phase = Phase.UNJOINED
        self.is_leader = False
        self.rejoin_needed = True
        self.rejoin_reason = reason

    def _fence(self, failure: ProtocolError) -> None:
        self._forget("another member took over the instance id", keep_member_id=False)
        self.fatal = failure


_AFTER_FORGETTING = {
    Api.JOIN: Step.JOIN,
    Api.SYNC: Step.JOIN,
    Api.HEARTBEAT: Step.GO_ON,
    Api.COMMIT: Step.RAISE,
}

_STEPS = {
    Reaction.RETRY: Step.RETRY,
    Reaction.RESEND: Step.RESEND,
    Reaction.REDISCOVER: Step.RETRY,
    Reaction.REDISCOVER_AND_REJOIN: Step.JOIN_LATER,
    Reaction.REJOIN: Step.JOIN,
    Reaction.COUNT_AS_FAILED: Step.RETRY,
    Reaction.FAIL: Step.RAISE,
}
