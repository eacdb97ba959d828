"""The user's side of the membership: prepares rebalances, finishes them, commits automatically, leaves.

Used by the user's lane. Source: Kafka's `ConsumerCoordinator`; KIP-429; classic.md 11.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kcoord.assignors import RebalanceProtocol
from kcoord.client.core.autocommit import AutoCommit
from kcoord.client.core.catalogue import TopicWatch
from kcoord.client.core.effects import ask
from kcoord.client.core.group import Parts
from kcoord.client.core.heartbeat import Departure, Heartbeats
from kcoord.client.core.membership import Generation, Membership, Phase, Step
from kcoord.client.core.offsets import Identity, LoneReader
from kcoord.client.core.reactions import Api
from kcoord.client.core.rebalance import Failed, Going, Joined, Rebalance, Shared
from kcoord.client.core.strategies import Owned, Strategies
from kcoord.client.core.timers import HeartbeatTimer
from kcoord.client.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    KcoordError,
    RebalanceInProgressError,
    error_of,
)
from kcoord.client.types import MemberState, TopicPartition
from kcoord.protocol.errors import Error, ProtocolError

log = logging.getLogger("kcoord.client")

FIRST_ANSWER_S = 1.0
"""How long a leaving member waits for the member id of its first join, so that it can give it back."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """An assignment that is in place, of which the assignor and the listener have not been told yet."""

    joined: Joined
    by_topic: Mapping[str, Sequence[int]]
    added: Collection[TopicPartition]


class GroupCoordinator:
    """What `poll` does for the group. `poll` here never waits, except for commits and the listener."""

    def __init__(self, strategies: Strategies, parts: Parts) -> None:
        config = parts.config
        timer = HeartbeatTimer(config, parts.condition.clock())
        self._shared = Shared(config, parts.link, strategies, parts.condition, parts.lanes, Membership(), timer)
        self._config = config
        self._subscription = parts.subscription
        self._positions = parts.positions
        self._watch = TopicWatch(config, parts.link, parts.worker)
        self._autocommit = AutoCommit(config, parts.subscription, parts.offsets, parts.condition.clock)
        self._departure = Departure(self._shared)
        self._heartbeat = Heartbeats(self._shared, self._departure)
        self._rebalance: Rebalance | None = None
        self._finishing: Joined | None = None
        self._unannounced: Announcement | None = None
        self._prepared = False
        self._joined_topics: frozenset[str] = frozenset()
        self._remembered = Owned()

    @property
    def state(self) -> MemberState:
        """The state of the member in the group."""
        return self._shared.membership.state

    @property
    def generation(self) -> Generation:
        """The member's id and generation, as far as known."""
        return self._shared.membership.generation

    async def poll(self) -> None:
        """Take part in the group as far as possible without waiting.

        Raises fatal errors from a join or a heartbeat, and what the listener raises.
        """
        self._shared.timer.polled(self._shared.condition.clock())
        fatal = self._shared.membership.fatal
        broken = self._heartbeat.failure
        if broken is not None:
            raise RuntimeError("the heartbeat thread failed: close this consumer") from broken
        if fatal is not None:
            raise error_of(fatal)
        if self._subscription.automatic:
            self._heartbeat.start()
            self._note_changes()
            while await self._advance():
                pass
        self._autocommit.when_due(allowed=self._rebalance is None)

    async def renew(self, partitions: Collection[TopicPartition]) -> None:
        """Find new positions for partitions whose topic was replaced; the listener gets `on_partitions_lost`."""
        self._subscription.renew(partitions)
        self._positions.forget()
        listener = self._subscription.listener
        try:
            await ask(listener.on_partitions_lost, sorted(partitions))
        finally:
            await ask(listener.on_partitions_assigned, sorted(partitions))

    def wait_s(self) -> float | None:
        """How long `poll` has nothing to do unless something changes."""
        return self._autocommit.wait_s()

    def request_rejoin(self, reason: str) -> None:
        """Join again at the next poll."""
        self._shared.membership.request_rejoin(reason)

    def begin_commit(self) -> Identity:
        """Begin a commit. Raises RebalanceInProgressError, CommitFailedError where it cannot succeed."""
        generation = self._generation_in_place()
        # One generation for all attempts: an attempt in a later one could overwrite what a new owner committed.
        return lambda: generation

    def commit_failed(self, failure: ProtocolError, sent: Generation) -> KcoordError | None:
        """Change the state according to a commit failure. Returns the error for the user; None: try again."""
        if not sent.known:
            return LoneReader().commit_failed(failure, sent)
        membership = self._shared.membership
        unchanged = membership.generation == sent
        rejoining = membership.phase is Phase.PREPARING_REBALANCE
        step = membership.failed(Api.COMMIT, failure, sent)
        self._shared.condition.notify_all()
        return _commit_error(failure, unchanged, rejoining) if step is Step.RAISE else None

    def fetches_as(self) -> Generation | None:
        """No member: the classic protocol does not check who fetches offsets."""
        return None

    def _generation_in_place(self) -> Generation:
        if not self._subscription.automatic:
            return Generation()
        membership = self._shared.membership
        if membership.fatal is not None:
            raise error_of(membership.fatal)
        # Differs from Kafka: a generation counts once its assignment is in place. Before that, what was read
        # belongs to the previous generation, and a new owner may have committed already.
        if membership.phase is Phase.STABLE and self._rebalance is None:
            return membership.generation
        if self._rebalance is not None and membership.phase is not Phase.UNJOINED:
            raise RebalanceInProgressError("the group is rebalancing: poll, then commit what is still assigned")
        raise CommitFailedError("this consumer is not part of the group: it was removed, or has not joined yet")

    async def leave(self, reason: str, deadline: float, *, commit: bool) -> None:
        """Commit (if automatic, and `commit`), report the partitions, leave the group.

        Each step is taken even if the one before it failed or was cancelled; the exception is raised after that.
        """
        try:
            try:
                if commit and self._subscription.assigned and not self._lost():
                    await self._autocommit.now(self._subscription.assigned, self._left_ms(deadline))
            finally:
                await self._give_up(self._subscription.assigned)
        finally:
            await self._depart(reason, deadline)

    async def stop(self, deadline: float) -> bool:
        """Stop the heartbeats. True if they ended in time."""
        return await self._heartbeat.stop(deadline)

    async def _depart(self, reason: str, deadline: float) -> None:
        try:
            await self._stop_rebalance()
        finally:
            self._prepared = False
            self._finishing = None
            self._unannounced = None
            self._joined_topics = frozenset()
            self._remembered = Owned()
            self._watch.stop()
            await self._departure.leave(reason, self._left_ms(deadline))

    def _left_ms(self, deadline: float) -> int:
        return max(1, min(self._config.request_timeout_ms, int((deadline - self._shared.condition.clock()) * 1000)))

    def _note_changes(self) -> None:
        """Rejoin for a changed subscription, or for partition counts that changed while this member leads."""
        changed = self._watch.changes(self._shared.condition.clock())
        if changed is not None:
            self.request_rejoin(changed)
        if self._rebalance is None and self._joined_topics and self._joined_topics != self._subscription.topics:
            self.request_rejoin("the subscription changed")

    async def _advance(self) -> bool:
        """One step: finish a rebalance that is over, or begin one that is needed. False if nothing is left to do.

        A step that is cancelled is taken again by the next poll; only the listener is not called twice for one thing.
        """
        if self._rebalance is not None:
            return self._take_outcome(self._rebalance)
        if self._finishing is not None:
            await self._finish(self._finishing)
            return True
        if self._unannounced is not None:
            await self._announce(self._unannounced)
            return True
        needed = self._shared.membership.rejoin_needed
        if needed:
            await self._begin()
        return needed

    def _take_outcome(self, rebalance: Rebalance) -> bool:
        outcome = rebalance.outcome
        if outcome is None:
            return False
        self._rebalance = None
        if isinstance(outcome, Failed):
            raise outcome.error
        self._prepared = False
        if isinstance(outcome, Joined) and self._still(outcome.generation):
            self._joined_topics = rebalance.topics
            self._begin_finish(outcome)
        return True

    def _still(self, generation: Generation) -> bool:
        membership = self._shared.membership
        return membership.phase is Phase.STABLE and membership.generation == generation

    async def _begin(self) -> None:
        if not self._prepared:
            await self._prepare()
        membership = self._shared.membership
        owned = Owned(self._subscription.owned(), membership.generation.generation_id)
        reason = membership.rejoin_reason
        log.info("group %s: (re)joining: %s", self._config.group_id, reason)
        self._rebalance = Rebalance(self._shared, Going(self._subscription.topics, owned, self._remembered, reason))
        self._rebalance.start()

    def _lost(self) -> bool:
        """The member was dropped (or reset) while it held partitions."""
        return bool(self._subscription.assigned) and not self._shared.membership.generation.known

    async def _prepare(self) -> None:
        """Before a join: commit, then give up what must not be kept."""
        owned = self._subscription.assigned
        if owned and not self._lost():
            await self._autocommit.now(owned, self._config.request_timeout_ms)
        # Before the listener runs: an exception in it must not make it run twice for one rebalance.
        self._prepared = True
        self._watch.stop()
        if self._lost() or self._shared.strategies.protocol is RebalanceProtocol.EAGER:
            await self._give_up(owned, always=True)
            return
        unwanted = frozenset(tp for tp in owned if tp.topic not in self._subscription.topics)
        if unwanted:
            await self._revoke(unwanted, owned - unwanted)

    async def _give_up(self, partitions: Collection[TopicPartition], always: bool = False) -> None:
        """Report all partitions lost if the membership is, else revoked."""
        if self._lost():
            log.warning("group %s: partitions lost: %s", self._config.group_id, _listed(partitions))
            try:
                await ask(self._subscription.listener.on_partitions_lost, sorted(partitions))
            finally:
                self._assign(frozenset())
        elif partitions or (always and self._subscription.automatic):
            await self._revoke(partitions, frozenset())

    async def _revoke(self, revoked: Collection[TopicPartition], kept: frozenset[TopicPartition]) -> None:
        if revoked:
            log.info("group %s: revoked: %s", self._config.group_id, _listed(revoked))
        try:
            await ask(self._subscription.listener.on_partitions_revoked, sorted(revoked))
        finally:
            self._assign(kept)

    def _assign(self, partitions: Collection[TopicPartition]) -> None:
        self._subscription.set_assigned(partitions)
        self._positions.forget()

    def _begin_finish(self, joined: Joined) -> None:
        if any(tp.topic not in self._subscription.topics for tp in joined.partitions):
            self.request_rejoin("the assignment is for an older subscription")
        if joined.led:
            self._watch.start(joined.led, joined.counts, self._shared.condition.clock())
        self._autocommit.restart()
        self._finishing = joined

    async def _finish(self, joined: Joined) -> None:
        """After a sync: take over the assignment; from now on what is committed counts for it."""
        if not self._still(joined.generation):
            self._finishing = None
            return
        assigned = frozenset(tp for tp in joined.partitions if tp.topic in self._subscription.topics)
        owned = self._subscription.assigned
        revoked = owned - assigned
        if revoked:
            # Records may have been read since the commit before the join.
            self.request_rejoin("revoked partitions can go to their new owners")
            await self._autocommit.now(revoked, self._config.request_timeout_ms)
        self._finishing = None
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(assigned):
            by_topic.setdefault(topic, []).append(partition)
        self._remembered = Owned(by_topic, joined.generation.generation_id)
        try:
            if revoked:
                await self._revoke(revoked, owned - revoked)
        finally:
            self._assign(assigned)
            self._unannounced = Announcement(joined, by_topic, assigned - owned)

    async def _announce(self, announcement: Announcement) -> None:
        self._unannounced = None
        generation = announcement.joined.generation
        added = sorted(announcement.added)
        everything = _listed(self._subscription.assigned)
        log.info("group %s: assigned: %s, new: %s", self._config.group_id, everything, _listed(added))
        told = self._shared.strategies.assigned
        await ask(
            told,
            generation.protocol_name or "",
            announcement.by_topic,
            generation.generation_id,
            announcement.joined.user_data,
        )
        await ask(self._subscription.listener.on_partitions_assigned, added)

    async def _stop_rebalance(self) -> None:
        rebalance, self._rebalance = self._rebalance, None
        if rebalance is None:
            return
        rebalance.stop()
        if not self._shared.membership.generation.member_id:
            condition = self._shared.condition
            await condition.wait_for(lambda: rebalance.ended, condition.clock() + FIRST_ANSWER_S)


def _listed(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions))) or "none"


def _commit_error(failure: ProtocolError, unchanged: bool, rejoining: bool) -> KcoordError:
    """The error reported to a caller that commits. Source: classic.md 11.2, column OffsetCommit."""
    if failure.error is Error.REBALANCE_IN_PROGRESS:
        return RebalanceInProgressError(failure.detail)
    if failure.error is Error.FENCED_INSTANCE_ID and unchanged:
        return FencedInstanceIdError(failure.detail)
    if failure.error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID):
        if not unchanged and rejoining:
            return RebalanceInProgressError(failure.detail)
        return CommitFailedError(failure.detail, error=failure.error)
    return error_of(failure)
