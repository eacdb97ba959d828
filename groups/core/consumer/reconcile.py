"""One step of one member towards its target: what it gives up first, then what it gets.

Nothing is handed out that another member has or was told to give up. Source: consumer.md 6.
"""

from __future__ import annotations

from collections.abc import Iterator

from groups.core.consumer.checks import fenced
from groups.core.model.consumer_group import EpochGroup
from groups.core.model.consumer_records import MemberReconciled
from groups.core.model.consumer_state import ConsumerMember, MemberState
from groups.core.model.partitions import Assigned, Partitions, flat, intersects, merged, minus, within
from groups.core.model.types import Millis, TopicView


def reconcile(
    group: EpochGroup,
    member: ConsumerMember,
    owned: Partitions | None,
    topics: TopicView,
    now: Millis,
    *,
    subscription_changed: bool,
) -> MemberReconciled | None:
    """The step that `member` takes with this heartbeat, None if it stays as it is (consumer.md 6.1).

    `owned`: what it reports as owned, None if it does not report. Raises `ProtocolError` FENCED_MEMBER_EPOCH for a
    member in an unknown state that still owns something.
    """
    step = _Step(group, member, owned, topics, now)
    match member.state:
        case MemberState.STABLE if member.member_epoch != group.assignment_epoch:
            return step.next()
        case MemberState.STABLE:
            return step.shrink() if subscription_changed else None
        case MemberState.UNREVOKED_PARTITIONS if step.still_owns(member.pending_revocation):
            return step.shrink() if subscription_changed else None
        case MemberState.UNKNOWN if owned is None or owned:
            raise fenced(member, member.member_epoch)
        case _:
            return step.next()


def unreleased(member: ConsumerMember) -> Iterator[tuple[str, int]]:
    """The partitions, by topic id and number, that the member should have but does not have yet."""
    return (
        (topic_id, p)
        for topic_id, partitions in member.target.items()
        for p in partitions
        if p not in member.assigned.get(topic_id, ())
    )


class _Step:
    """The inputs of a step, and the two ways to take it."""

    def __init__(
        self, group: EpochGroup, member: ConsumerMember, owned: Partitions | None, topics: TopicView, now: Millis
    ) -> None:
        self._group = group
        self._member = member
        self._owned = owned
        self._topics = topics
        self._subscription = group.subscription_of(member)
        self._now = now

    def still_owns(self, partitions: Assigned) -> bool:
        """Not reporting is never an acknowledgement."""
        return self._owned is None or intersects(self._owned, partitions)

    def next(self) -> MemberReconciled | None:
        """consumer.md 6.2: revoke first, then assign."""
        member, epoch = self._member, self._group.assignment_epoch
        target = {topic_id: partitions for topic_id, partitions in member.target.items() if self._subscribes(topic_id)}
        keep, revoke = within(member.assigned, target), minus(member.assigned, target)
        if revoke and self.still_owns(revoke):
            return self._to(MemberState.UNREVOKED_PARTITIONS, member.member_epoch, keep, revoke)
        add, unreleased = self._free(target, keep)
        state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
        return self._to(state, epoch, merged(keep, add), {})

    def shrink(self) -> MemberReconciled | None:
        """consumer.md 6.3: partitions of topics no longer subscribed are revoked, whatever the target still says."""
        member = self._member
        kept = {topic_id: partitions for topic_id, partitions in member.assigned.items() if self._subscribes(topic_id)}
        if len(kept) == len(member.assigned):
            return None
        dropped = {topic_id: partitions for topic_id, partitions in member.assigned.items() if topic_id not in kept}
        pending = merged(member.pending_revocation, dropped)
        state, previous = member.state, member.previous_member_epoch
        if self.still_owns(pending):
            state = MemberState.UNREVOKED_PARTITIONS
        else:
            pending = member.pending_revocation
        return self._to(state, member.member_epoch, kept, pending, previous_epoch=previous)

    def _subscribes(self, topic_id: str) -> bool:
        topic = self._topics.by_id.get(topic_id)
        return topic is not None and topic.name in self._subscription

    def _free(self, target: Partitions, keep: Assigned) -> tuple[Assigned, bool]:
        """What can be added to `keep`, and whether any of the target is still missing afterwards.

        Partitions that the member itself was told to give up are returned to it at once.
        """
        members, epoch = self._group.members, self._group.assignment_epoch
        add: dict[str, dict[int, int]] = {}
        unreleased = False
        for topic_id, partitions in target.items():
            for p in partitions:
                if p in keep.get(topic_id, ()):
                    continue
                if members.owner_of(topic_id, p) in (None, self._member.member_id):
                    add.setdefault(topic_id, {})[p] = epoch
                else:
                    unreleased = True
        return add, unreleased

    def _to(
        self,
        state: MemberState,
        epoch: int,
        assigned: Assigned,
        pending: Assigned,
        *,
        previous_epoch: int | None = None,
    ) -> MemberReconciled | None:
        member = self._member
        if previous_epoch is None:
            previous_epoch = member.member_epoch
        before = member.member_epoch, member.previous_member_epoch, member.state
        partitions = member.assigned, member.pending_revocation
        if before == (epoch, previous_epoch, state) and partitions == (assigned, pending):
            return None
        had = {*flat(member.assigned), *flat(member.pending_revocation)}
        releases = not had <= {*flat(assigned), *flat(pending)}
        return MemberReconciled(member.member_id, epoch, previous_epoch, state, assigned, pending, releases, self._now)
