"""The difference between two folded groups with epochs: what has to be written.

A heartbeat that changes nothing but a deadline must cost the same in every group: the changes are found by comparing
only those parts of two groups that they do not share.
"""

from __future__ import annotations

from dataclasses import dataclass

from groups.core.model.consumer_group import EpochGroup, ShareGroup
from groups.core.model.consumer_state import ConsumerMember, TimerKind

Owned = tuple[str, int, str, int, bool]
"""Topic id, partition, member id, assignment epoch, whether it is to be given up."""

OTHER_TIMERS = tuple(kind for kind in TimerKind if kind is not TimerKind.SESSION)


@dataclass(frozen=True, slots=True)
class ConsumerChanges:
    """The difference between two folded consumer groups, as the store writes it.

    `resolution_stays`: the stored results of the regular expressions are still valid. `stepped`: members in which only
    epochs, state and what they own changed. `renewed`: ids of the members whose session changed;
    `only_renewed`: nothing else changed.
    """

    header: bool
    resolution_stays: bool
    removed: tuple[str, ...]
    upserted: tuple[ConsumerMember, ...]
    stepped: tuple[ConsumerMember, ...]
    timers: tuple[str, ...]
    renewed: frozenset[str]
    only_renewed: bool
    released: frozenset[Owned]
    taken: frozenset[Owned]

    @property
    def nothing(self) -> bool:
        """The two groups are the same."""
        return self.only_timers and not self.timers

    @property
    def only_timers(self) -> bool:
        """Only deadlines moved."""
        return not (self.header or self.removed or self.upserted or self.stepped)


def changes(before: EpochGroup | None, after: EpochGroup) -> ConsumerChanges:
    """What must be written to make the rows of `before` those of `after`."""
    base = before or type(after)(after.group_id)
    removed, changed = after.members.changes_since(base.members)
    renewed = _moved(base, after, TimerKind.SESSION)
    others = {member_id for kind in OTHER_TIMERS for member_id in _moved(base, after, kind)}
    old: frozenset[Owned] = frozenset()
    new: frozenset[Owned] = frozenset()
    if not isinstance(after, ShareGroup):  # what its members have is stored with them
        old = frozenset(owned for member_id in (*removed, *changed) for owned in _owned(base.members.get(member_id)))
        new = frozenset(owned for member in changed.values() for owned in _owned(member))
    stepped = {
        member_id: member
        for member_id, member in changed.items()
        if (was := base.members.get(member_id)) is not None and _said(was) == _said(member)
    }
    header = before is None or header_columns(before) != header_columns(after)
    return ConsumerChanges(
        header=header,
        resolution_stays=before is not None and before.resolutions == after.resolutions,
        removed=tuple(sorted(removed)),
        upserted=tuple(changed[member_id] for member_id in sorted(changed.keys() - stepped.keys())),
        stepped=tuple(stepped[member_id] for member_id in sorted(stepped)),
        timers=tuple(sorted(renewed | others)),
        renewed=renewed,
        only_renewed=not (header or removed or changed or others),
        released=old - new,
        taken=new - old,
    )


def _moved(before: EpochGroup, after: EpochGroup, kind: TimerKind) -> frozenset[str]:
    """Ids of members whose timer of this kind is another."""
    parts = after.timers.of(kind).changes_since(before.timers.of(kind))
    return frozenset(member_id for part in parts for member_id in part if member_id in after.members)


def _said(member: ConsumerMember) -> tuple[object, ...]:
    """What a step of a member leaves unchanged."""
    return (
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.subscribed_topic_names,
        member.subscribed_topic_regex,
        member.topic_rights,
        member.server_assignor,
        member.classic,
        member.target,
    )


def header_columns(group: EpochGroup) -> tuple[object, ...]:
    """What decides whether the header row changed."""
    return (
        group.state,
        group.state_since,
        group.group_epoch,
        group.assignment_epoch,
        group.assignment_timestamp,
        group.metadata_hash,
        group.metadata_version,
        group.resolutions,
        group.regex_jobs,
        group.target_job,
        group.hold,
        group.armed_gap,
    )


def _owned(member: ConsumerMember | None) -> list[Owned]:
    if member is None:
        return []
    return [
        (topic_id, partition, member.member_id, epoch, is_pending)
        for assigned, is_pending in ((member.assigned, False), (member.pending_revocation, True))
        for topic_id, partitions in assigned.items()
        for partition, epoch in partitions.items()
    ]
