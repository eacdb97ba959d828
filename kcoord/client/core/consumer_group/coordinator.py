"""The user's side of a member of a consumer group: puts assignments in place, reports losses, commits, leaves.

Used by the user's lane. Source: consumer.md 11.3 and 11.4; Kafka's `ConsumerMembershipManager`.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterable

from kcoord.client.core.autocommit import AutoCommit
from kcoord.client.core.consumer_group.heartbeat import Member
from kcoord.client.core.consumer_group.membership import ConsumerMembership, Reconciliation, TopicIdPartition
from kcoord.client.core.consumer_group.participant import Participant
from kcoord.client.core.consumer_group.reactions import CommitReaction, commit_reaction
from kcoord.client.core.consumer_group.request import HeartbeatRequest, Subscribed
from kcoord.client.core.consumer_group.states import State
from kcoord.client.core.consumer_group.timer import ConsumerHeartbeatTimer
from kcoord.client.core.effects import ask
from kcoord.client.core.group import Parts
from kcoord.client.core.membership import Generation
from kcoord.client.core.offsets import Identity, LoneReader
from kcoord.client.errors import CommitFailedError, IllegalStateError, KcoordError, error_of
from kcoord.client.types import TopicPartition
from kcoord.protocol.errors import ProtocolError

log = logging.getLogger("kcoord.client")

_LOST = frozenset({State.FENCED, State.STALE, State.FATAL, State.LEAVING})
"""States in which the member no longer has its partitions when the user polls."""

_NOT_A_MEMBER = "this consumer is not part of the group: it was removed, or has not joined yet"


class ConsumerGroupCoordinator(Participant):
    """What `poll` does for the group. It never waits, except for commits and the listener."""

    def __init__(self, parts: Parts) -> None:
        config = parts.config
        super().__init__(
            Member(
                config,
                parts.link,
                parts.condition,
                parts.lanes,
                ConsumerMembership(str(uuid.uuid4()), static=config.group_instance_id is not None),
                ConsumerHeartbeatTimer(config, parts.condition.clock()),
                HeartbeatRequest(config),
                Subscribed(),
            )
        )
        self._config = config
        self._subscription = parts.subscription
        self._positions = parts.positions
        self._autocommit = AutoCommit(config, parts.subscription, parts.offsets, parts.condition.clock)
        self._held: frozenset[TopicIdPartition] = frozenset()
        self._untold: frozenset[TopicIdPartition] = frozenset()
        self._in_listener = False

    async def poll(self) -> None:
        """Take part in the group as far as possible without waiting for the service, except for commits.

        Raises errors from heartbeats that are fatal or need reporting, and what the listener raises.
        """
        self._polled()
        if self._subscription.automatic and not self._in_listener:
            self._heartbeat.start()
            while await self._settle() or await self._reconcile():
                pass
        allowed = self._membership.may_commit or not self._subscription.automatic
        self._autocommit.when_due(allowed=allowed)

    async def renew(self, partitions: Collection[TopicPartition]) -> None:
        """Nothing: they are not read or committed any more, and the next assignment says what comes instead."""

    def wait_s(self) -> float | None:
        """How long `poll` has nothing to do unless something changes."""
        return self._autocommit.wait_s()

    def request_rejoin(self, reason: str) -> None:
        """Raises IllegalStateError: the service alone decides when partitions move."""
        raise IllegalStateError(
            'group_protocol="consumer": the service balances the group; members cannot request a rebalance'
        )

    def begin_commit(self) -> Identity:
        """Begin a commit. Raises CommitFailedError where it cannot succeed.

        Each attempt is sent with the epoch current at that time, as long as the member stays in the group without
        interruption: then no other member has had its partitions in between.
        """
        if not self._subscription.automatic:
            return Generation
        membership = self._membership
        if membership.fatal is not None:
            raise error_of(membership.fatal)
        stay = membership.stay

        def identity() -> Generation:
            if membership.stay != stay or not membership.may_commit:
                raise CommitFailedError(_NOT_A_MEMBER)
            return Generation(membership.epoch, membership.member_id)

        identity()
        return identity

    def commit_failed(self, failure: ProtocolError, sent: Generation) -> KcoordError | None:
        """The error reported to the user for a failed commit; None: try again."""
        if not sent.known:
            return LoneReader().commit_failed(failure, sent)
        reaction = commit_reaction(failure.error)
        if reaction is CommitReaction.RETRY:
            return None
        if reaction is CommitReaction.OUT:
            return CommitFailedError(failure.detail, error=failure.error)
        return error_of(failure)

    def fetches_as(self) -> Generation | None:
        """The member, so that a fetch with an outdated epoch is refused; no member while outside the group."""
        membership = self._membership
        return Generation(membership.epoch, membership.member_id) if membership.may_commit else None

    async def leave(self, reason: str, deadline: float, *, commit: bool) -> None:
        """Commit (if automatic, and `commit`), report the partitions, leave the group.

        Each step is taken even if the one before it failed or was cancelled; the exception is raised after that.
        """
        log.info("group %s: leaving: %s", self._config.group_id, reason)
        self._membership.prepare_leaving()
        try:
            try:
                if commit and self._held and self._leaves():
                    await self._autocommit.now(self._subscription.assigned, self._left_ms(deadline))
            finally:
                if not self._leaves():
                    await self._report_lost()
                elif self._held:
                    await self._call("revoked", self._subscription.assigned)
        finally:
            self._have(frozenset())
            await self._say_leave(deadline)

    # Losing and joining

    async def _settle(self) -> bool:
        """Take one step after recent events: report losses, join. False if nothing is left to do."""
        self._member.subscribed = Subscribed(self._subscription.topics, self._subscription.pattern)
        membership = self._membership
        if membership.state in _LOST and self._held:
            await self._report_lost()
            return True
        return self._join_if_out()

    async def _report_lost(self) -> None:
        """The member no longer owns any of its partitions."""
        lost = self._subscription.assigned
        if not self._held:
            return
        log.warning("group %s: partitions lost: %s", self._config.group_id, _listed(lost))
        try:
            await self._call("lost", lost)
        finally:
            self._have(frozenset())

    # Reconciling

    async def _reconcile(self) -> bool:
        """Put the service's assignment in place. False if nothing is left to do.

        Revocations come first; both calls of the listener must have returned before the member acknowledges. After a
        call that raised, nothing is acknowledged and the next poll repeats that call.
        """
        work = self._membership.reconciliation()
        if work is None:
            return False
        revoked = self._held - work.target.partitions
        if revoked and not await self._revoke(work, revoked):
            return True
        await self._assign(work)
        return True

    async def _revoke(self, work: Reconciliation, revoked: frozenset[TopicIdPartition]) -> bool:
        """Commit and give up `revoked`. False if the assignment is no longer valid."""
        named = _named(revoked)
        self._subscription.withhold(named, True)
        self._subscription.gone |= _replaced(revoked, work.target.partitions)
        await self._autocommit.now(named, min(self._config.request_timeout_ms, self._config.max_poll_interval_ms))
        if not self._stands(work):
            return False
        gone = _named(tp for tp in revoked if tp.topic_id in self._subscription.gone)
        log.info("group %s: revoked: %s", self._config.group_id, _listed(named))
        if gone:
            log.warning("group %s: lost with their topic: %s", self._config.group_id, _listed(gone))
            await self._call("lost", gone)
        if named - gone:
            await self._call("revoked", named - gone)
        self._have(self._held - revoked)
        return self._stands(work)

    async def _assign(self, work: Reconciliation) -> None:
        """Take over new partitions, then acknowledge. None of them is read before the listener has returned."""
        target = work.target.partitions
        added = (target - self._held) | (self._untold & target)
        self._have(target)
        self._untold = added
        named = _named(added)
        self._subscription.withhold(named, True)
        everything = _listed(self._subscription.assigned)
        log.info("group %s: assigned: %s, new: %s", self._config.group_id, everything, _listed(named))
        await self._call("assigned", named)
        self._untold = frozenset()
        self._subscription.withhold(named, False)
        self._membership.reconciled(work)
        self._condition.notify_all()

    def _stands(self, work: Reconciliation) -> bool:
        return self._membership.stands(work)

    def _have(self, partitions: frozenset[TopicIdPartition]) -> None:
        self._held = partitions
        self._untold &= partitions
        self._subscription.set_assigned(_named(partitions))
        self._subscription.identify({tp.named: tp.topic_id for tp in partitions})
        self._positions.forget()

    async def _call(self, what: str, partitions: Collection[TopicPartition]) -> None:
        """Call the listener. A poll inside it reads what is held, but does not begin another reconciliation."""
        listener = self._subscription.listener
        method = {
            "revoked": listener.on_partitions_revoked,
            "assigned": listener.on_partitions_assigned,
            "lost": listener.on_partitions_lost,
        }[what]
        self._in_listener = True
        try:
            await ask(method, sorted(partitions))
        finally:
            self._in_listener = False

    # Leaving

    def _leaves(self) -> bool:
        return self._membership.state is State.PREPARE_LEAVING

    def _left_ms(self, deadline: float) -> int:
        return max(1, min(self._config.request_timeout_ms, int((deadline - self._condition.clock()) * 1000)))


def _named(partitions: Iterable[TopicIdPartition]) -> frozenset[TopicPartition]:
    return frozenset(tp.named for tp in partitions)


def _replaced(revoked: Iterable[TopicIdPartition], target: Iterable[TopicIdPartition]) -> set[str]:
    """The topics that were revoked because another one has their name now."""
    current = {tp.topic: tp.topic_id for tp in target}
    return {tp.topic_id for tp in revoked if current.get(tp.topic, tp.topic_id) != tp.topic_id}


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions))) or "none"
