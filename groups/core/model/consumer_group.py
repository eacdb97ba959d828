"""Groups with epochs, of the consumer protocol or share groups: partitions, members, timers, and what follows of them.

Sets of partitions of several topics are maps from topic id; a topic without partitions is absent. `Partitions` are
plain sets; `Assigned` also says for each partition in which assignment epoch the member got it.

Source: consumer.md 1, 1.1, 1.3, 1.4, 1.5 and 4.6; share.md 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar, TypeVar

from groups.core.assignors.base import Partitions
from groups.core.model.persistent import DeadlineMap, PersistentMap, Timer
from groups.core.model.types import Hold, Millis, Protocol

Assigned = Mapping[str, Mapping[int, int]]
"""Topic id -> partition -> assignment epoch (KIP-1251)."""


def plain(assigned: Assigned) -> Partitions:
    """The partitions alone."""
    return {topic_id: frozenset(partitions) for topic_id, partitions in assigned.items()}


def flat(partitions: Partitions | Assigned) -> Iterator[tuple[str, int]]:
    """Each partition as (topic id, number)."""
    return ((topic_id, p) for topic_id, numbers in partitions.items() for p in numbers)


def within(assigned: Assigned, limits: Partitions) -> Assigned:
    """The part of `assigned` that is also in `limits`."""
    kept = {
        topic_id: {p: epoch for p, epoch in partitions.items() if p in limits[topic_id]}
        for topic_id, partitions in assigned.items()
        if topic_id in limits
    }
    return {topic_id: partitions for topic_id, partitions in kept.items() if partitions}


def minus(assigned: Assigned, limits: Partitions) -> Assigned:
    """The part of `assigned` that is not in `limits`."""
    rest = {
        topic_id: {p: epoch for p, epoch in partitions.items() if p not in limits.get(topic_id, ())}
        for topic_id, partitions in assigned.items()
    }
    return {topic_id: partitions for topic_id, partitions in rest.items() if partitions}


def merged(assigned: Assigned, added: Assigned) -> Assigned:
    """Both together; they must have no partition in common."""
    if not added:
        return assigned
    both = {topic_id: dict(partitions) for topic_id, partitions in assigned.items()}
    for topic_id, partitions in added.items():
        both.setdefault(topic_id, {}).update(partitions)
    return both


def intersects(one: Partitions, other: Assigned) -> bool:
    """Is any partition in both?"""
    return any(not partitions.isdisjoint(other.get(topic_id, ())) for topic_id, partitions in one.items())


def is_subset(part: Partitions, whole: Assigned) -> bool:
    """Is every partition of `part` in `whole`?"""
    return all(partitions <= whole.get(topic_id, {}).keys() for topic_id, partitions in part.items())


RegexKey = tuple[str, str]
"""A regular expression, and the key of the rights with which it is matched."""

DEPARTED_EPOCH = -2
"""The epoch in the heartbeat of a static member that leaves temporarily, and of the member from then on."""


class ConsumerGroupState(str, Enum):
    """States of a consumer group as Kafka reports them (consumer.md 1.4)."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberState(Enum):
    """Where a member stands on the way to its target; the values are Kafka's stored numbers (consumer.md 1.2)."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        return cls.UNKNOWN


class TimerKind(str, Enum):
    """The timers of a member, in the order in which timers of the same instant fire (consumer.md 8)."""

    SESSION = "session"
    REBALANCE = "rebalance"
    JOIN = "join"
    SYNC = "sync"


@dataclass(frozen=True, slots=True)
class ClassicMetadata:
    """What a member brought with its JoinGroup; only members that use the classic protocol have it (consumer.md
    9.7).
    """

    session_timeout_ms: Millis
    protocols: tuple[Protocol, ...]


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member of a consumer group (consumer.md 1.2).

    `target` is what it should have, `assigned` what it may use now; `pending_revocation` is what it was told to give up
    and no other member may have yet. `subscribed_topic_regex` "": none. `topic_rights`: the key of what the caller of
    its last heartbeat may describe (`groups.core.model.types`), "" also without a regular expression.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: Millis = -1
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""
    topic_rights: str = ""
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Assigned = field(default_factory=dict)
    pending_revocation: Assigned = field(default_factory=dict)
    target: Partitions = field(default_factory=dict)

    @property
    def regex_key(self) -> RegexKey | None:
        """The key under which its regular expression is resolved; None: it has no regular expression."""
        return (self.subscribed_topic_regex, self.topic_rights) if self.subscribed_topic_regex else None

    def reconciled_to(self, epoch: int) -> bool:
        """Does the member have exactly what it should have as of `epoch`?"""
        return self.state is MemberState.STABLE and self.member_epoch == epoch


@dataclass(frozen=True, slots=True)
class Timers:
    """The timers of all members. Arming one again replaces the earlier one of its kind."""

    session: DeadlineMap = field(default_factory=DeadlineMap)
    rebalance: DeadlineMap = field(default_factory=DeadlineMap)
    join: DeadlineMap = field(default_factory=DeadlineMap)
    sync: DeadlineMap = field(default_factory=DeadlineMap)

    def of(self, kind: TimerKind) -> DeadlineMap:
        """The timers of one kind, by member id."""
        match kind:
            case TimerKind.SESSION:
                return self.session
            case TimerKind.REBALANCE:
                return self.rebalance
            case TimerKind.JOIN:
                return self.join
            case TimerKind.SYNC:
                return self.sync

    def arm(self, kind: TimerKind, member_id: str, timer: Timer) -> Timers:
        """A copy with that timer armed."""
        return replace(self, **{kind.value: self.of(kind).put(member_id, timer)})

    def cancel(self, kind: TimerKind, member_id: str) -> Timers:
        """A copy without that timer, if it was armed."""
        timers = self.of(kind)
        return replace(self, **{kind.value: timers.drop(member_id)}) if member_id in timers else self

    def forget(self, member_id: str) -> Timers:
        """A copy without the timers of that member."""
        timers = self
        for kind in TimerKind:
            timers = timers.cancel(kind, member_id)
        return timers

    def first(self) -> tuple[Millis, TimerKind] | None:
        """When the earliest timer fires, and its kind."""
        armed = [(timer.deadline, kind) for kind in TimerKind if (timer := self.of(kind).least) is not None]
        return min(armed, key=lambda timer: timer[0], default=None)

    def due(self, now: Millis, sessions_end: Millis) -> TimerKind | None:
        """The kind of the earliest overdue timer; sessions only up to `sessions_end`."""
        first = self.first()
        if first is None or first[0] > now:
            return None
        if first[1] is not TimerKind.SESSION or first[0] <= sessions_end:
            return first[1]
        first = replace(self, session=DeadlineMap()).first()
        return first[1] if first is not None and first[0] <= now else None


@dataclass(frozen=True, slots=True)
class RegexResolution:
    """What regular expressions matched among the topics that some rights allow describing: regex -> topic names.

    Those of members with the same rights are resolved together, from `topics_version` of the catalogue, in a job that
    began at `started_at`. Version -1: to be resolved as soon as possible; some of it is only what is left of a
    resolution with other rights. `started_at` None: with these rights nothing was resolved yet.
    """

    topics: Mapping[str, frozenset[str]]
    topics_version: int
    started_at: Millis | None


@dataclass(frozen=True, slots=True)
class Job:
    """Work in progress. From `deadline` on it counts as lost.

    `epoch`: the group epoch for which a target is computed; 0 for other work.
    """

    started_at: Millis
    deadline: Millis
    epoch: int = 0


T = TypeVar("T")


class OwnedTwice(Exception):
    """Two members would have the same partition: a bug in the code that assigned it."""


class ConsumerMembers(Mapping[str, ConsumerMember]):
    """The members by id, immutable. Iterates in ascending order of id, which sorts.

    `owners`: (topic id, partition) -> member that has it assigned or pending revocation. `static`: instance id ->
    member id. `votes`: server assignor -> members that vote for it. `names`: topic name -> members that subscribe to it
    by name. `regexes`: regex and rights -> members that use it with these. `stable_at`: epoch -> members in STABLE with
    that epoch. `classic`: members that use the classic protocol, `classic_protocols`: how many of those support each
    protocol.
    """

    __slots__ = (
        "_by_id",
        "classic",
        "classic_protocols",
        "names",
        "owners",
        "regexes",
        "stable_at",
        "static",
        "votes",
    )

    def __init__(self, members: Iterable[ConsumerMember] = ()) -> None:
        by_id = {member.member_id: member for member in members}
        self._by_id: PersistentMap[str, ConsumerMember] = PersistentMap(by_id)
        self.owners: PersistentMap[tuple[str, int], str] = PersistentMap(self._owners(by_id.values()))
        self.static: PersistentMap[str, str] = PersistentMap()
        for member in by_id.values():
            self.static = self.static.update(_static(member))
        self.votes: Mapping[str, int] = {}
        self.names: Mapping[str, int] = {}
        self.regexes: Mapping[RegexKey, int] = {}
        self.stable_at: Mapping[int, int] = {}
        self.classic_protocols: Mapping[str, int] = {}
        self.classic = 0
        _count_all(self, by_id.values())

    def put(self, member: ConsumerMember) -> ConsumerMembers:
        """A copy with `member`, replacing the one with the same id. Raises `OwnedTwice`."""
        before = self._by_id.get(member.member_id)
        after = self._copy()
        after._by_id = self._by_id.put(member.member_id, member)
        after._move(before, member)
        return after

    def drop(self, member_id: str) -> ConsumerMembers:
        """A copy without that member. KeyError if it does not exist."""
        after = self._copy()
        after._by_id = self._by_id.drop(member_id)
        after._move(self._by_id[member_id], None)
        return after

    def put_same(self, members: Mapping[str, ConsumerMember]) -> ConsumerMembers:
        """A copy with these members, which differ from those with the same ids in nothing that is derived."""
        after = self._copy()
        after._by_id = self._by_id.update(members)
        return after

    def changes_since(self, before: ConsumerMembers) -> tuple[frozenset[str], dict[str, ConsumerMember]]:
        """The ids of removed members, and the members that are new or changed. The cost depends on the changes only."""
        return self._by_id.changes_since(before._by_id)

    def owner_of(self, topic_id: str, partition: int) -> str | None:
        """The member that has the partition assigned or pending revocation."""
        return self.owners.get((topic_id, partition))

    def _copy(self) -> ConsumerMembers:
        after = type(self).__new__(type(self))
        for name in ConsumerMembers.__slots__:
            setattr(after, name, getattr(self, name))
        return after

    def _move(self, before: ConsumerMember | None, after: ConsumerMember | None) -> None:
        """Update everything that is derived from `before` to match `after`."""
        self._move_owned(before, after)
        self.static = self.static.without(_static(before)).update(_static(after))
        self.votes = _recount(self.votes, _vote(before), _vote(after))
        self.names = _recount(self.names, _names(before), _names(after))
        self.regexes = _recount(self.regexes, _regex(before), _regex(after))
        self.stable_at = _recount(self.stable_at, _stable(before), _stable(after))
        old_protocols, new_protocols = _protocols(before), _protocols(after)
        self.classic_protocols = _recount(self.classic_protocols, old_protocols or (), new_protocols or ())
        self.classic += (new_protocols is not None) - (old_protocols is not None)

    def _move_owned(self, before: ConsumerMember | None, after: ConsumerMember | None) -> None:
        if before is not None and after is not None and _owns_the_same(before, after):
            return
        old, new = _owned(before), _owned(after)
        taken = new - old
        left = self.owners.without(old - new)
        for key in taken:
            holder = left.get(key)
            if holder is not None:
                assert after is not None
                raise OwnedTwice(f"{key} of {after.member_id} is owned by {holder}")
        self.owners = left.update(dict.fromkeys(taken, after.member_id)) if after is not None else left

    def __getitem__(self, member_id: str) -> ConsumerMember:
        return self._by_id[member_id]

    def __contains__(self, member_id: object) -> bool:
        return member_id in self._by_id

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._by_id))

    def __len__(self) -> int:
        return len(self._by_id)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.values())!r})"

    def _owners(self, members: Iterable[ConsumerMember]) -> dict[tuple[str, int], str]:
        owners: dict[tuple[str, int], str] = {}
        for member in members:
            for key in _owned(member):
                if key in owners:
                    raise OwnedTwice(f"{key} of {member.member_id} is owned by {owners[key]}")
                owners[key] = member.member_id
        return owners


class ShareMembers(ConsumerMembers):
    """The members of a share group: a partition has several of them, so `owners` is empty."""

    __slots__ = ()

    def _move_owned(self, before: ConsumerMember | None, after: ConsumerMember | None) -> None:
        pass

    def _owners(self, members: Iterable[ConsumerMember]) -> dict[tuple[str, int], str]:
        return {}


def _count_all(into: ConsumerMembers, members: Iterable[ConsumerMember]) -> None:
    votes: dict[str, int] = {}
    names: dict[str, int] = {}
    regexes: dict[RegexKey, int] = {}
    stable_at: dict[int, int] = {}
    protocols: dict[str, int] = {}
    for member in members:
        _add(votes, _vote(member))
        _add(names, _names(member))
        _add(regexes, _regex(member))
        _add(stable_at, _stable(member))
        _add(protocols, _protocols(member) or ())
        into.classic += member.classic is not None
    into.votes, into.names, into.regexes, into.stable_at = votes, names, regexes, stable_at
    into.classic_protocols = protocols


def _owns_the_same(one: ConsumerMember, other: ConsumerMember) -> bool:
    """A quick look that may miss equal sets, never different ones."""
    return one.assigned is other.assigned and one.pending_revocation is other.pending_revocation


def _owned(member: ConsumerMember | None) -> set[tuple[str, int]]:
    return set() if member is None else {*flat(member.assigned), *flat(member.pending_revocation)}


def _static(member: ConsumerMember | None) -> dict[str, str]:
    return {} if member is None or member.instance_id is None else {member.instance_id: member.member_id}


def _vote(member: ConsumerMember | None) -> tuple[str, ...]:
    return () if member is None or member.server_assignor is None else (member.server_assignor,)


def _names(member: ConsumerMember | None) -> frozenset[str]:
    return frozenset() if member is None else member.subscribed_topic_names


def _regex(member: ConsumerMember | None) -> tuple[RegexKey, ...]:
    key = None if member is None else member.regex_key
    return () if key is None else (key,)


def _stable(member: ConsumerMember | None) -> tuple[int, ...]:
    return () if member is None or member.state is not MemberState.STABLE else (member.member_epoch,)


def _protocols(member: ConsumerMember | None) -> frozenset[str] | None:
    """None: the member uses the consumer protocol."""
    if member is None or member.classic is None:
        return None
    return frozenset(protocol.name for protocol in member.classic.protocols)


def _recount(counts: Mapping[T, int], before: Iterable[T], after: Iterable[T]) -> Mapping[T, int]:
    """The counts with `before` taken out and `after` added; the same object if both are equal."""
    if before == after:
        return counts
    recounted = dict(counts)
    for key in before:
        recounted[key] -= 1
    _add(recounted, after)
    return {key: count for key, count in recounted.items() if count}


def _add(counts: dict[T, int], keys: Iterable[T]) -> None:
    for key in keys:
        counts[key] = counts.get(key, 0) + 1


@dataclass(frozen=True, slots=True)
class EpochGroup:
    """What a group of the consumer protocol and a share group have in common (consumer.md 1.1): members with epochs on
    the way to a target that the coordinator computes. A share group uses no regular expressions.

    `metadata_hash`: digest of the subscribed topics that exist, as of the last look; `metadata_version`: the version of
    the catalogue at that look, -1 before the first. `assignment_timestamp`: when the target was last computed, 0 for
    never. `resolutions`: what regular expressions match, by the key of the rights of the members that use them.
    `regex_jobs`, one for each key, and `target_job`: background work in progress.
    """

    type: ClassVar[str]
    """As Kafka's ListGroups has it."""
    group_id: str
    state_since: Millis = 0
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignment_timestamp: Millis = 0
    metadata_hash: str = ""
    metadata_version: int = -1
    members: ConsumerMembers = field(default_factory=ConsumerMembers)
    timers: Timers = field(default_factory=Timers)
    resolutions: Mapping[str, RegexResolution] = field(default_factory=dict)
    regex_jobs: Mapping[str, Job] = field(default_factory=dict)
    target_job: Job | None = None
    hold: Hold | None = None
    armed_gap: int = 0
    """As that of a `ClassicGroup`."""

    @property
    def state(self) -> ConsumerGroupState:
        """The state as Kafka reports it."""
        raise NotImplementedError

    @property
    def awaits_target(self) -> bool:
        """Must the target be computed, and is no computation in progress yet?"""
        return self.group_epoch > self.assignment_epoch and self.target_job is None

    @property
    def homogeneous(self) -> bool:
        """Do all members subscribe to the same topics, as far as is known without comparing them?"""
        size, members = len(self.members), self.members
        if members.regexes:
            return not members.names and set(members.regexes.values()) == {size}
        return all(count == size for count in members.names.values())

    def matched_by(self, key: RegexKey) -> frozenset[str]:
        """The names of the topics that a regular expression matches with some rights; nothing until it is resolved.

        Differs from Kafka: in Kafka members that use the same expression share what it matches for one of them.
        """
        regex, rights = key
        resolution = self.resolutions.get(rights)
        return resolution.topics.get(regex, frozenset()) if resolution is not None else frozenset()

    def is_resolved(self, key: RegexKey) -> bool:
        """Is the result of a regular expression with some rights known?"""
        regex, rights = key
        return rights in self.resolutions and regex in self.resolutions[rights].topics

    def subscription_of(self, member: ConsumerMember) -> frozenset[str]:
        """The names of all topics the member subscribes to, whether they exist or not."""
        key = member.regex_key
        return member.subscribed_topic_names if key is None else member.subscribed_topic_names | self.matched_by(key)

    def subscribed_topics(self) -> AbstractSet[str]:
        """The names of all topics that any member subscribes to (consumer.md 4.4 and 7.3)."""
        names = set(self.members.names)
        for key in self.members.regexes:
            names |= self.matched_by(key)
        return names


@dataclass(frozen=True, slots=True)
class ConsumerGroup(EpochGroup):
    """A group of the consumer protocol: each partition has one member at most."""

    type: ClassVar[str] = "consumer"

    @property
    def state(self) -> ConsumerGroupState:
        """consumer.md 1.4, the first condition that holds."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if self.members.stable_at.get(self.assignment_epoch, 0) < len(self.members):
            return ConsumerGroupState.RECONCILING
        return ConsumerGroupState.STABLE


@dataclass(frozen=True, slots=True)
class ShareGroup(EpochGroup):
    """A share group (KIP-932): its members share partitions, so nobody has to give one up before another has it."""

    type: ClassVar[str] = "share"
    members: ConsumerMembers = field(default_factory=ShareMembers)

    @property
    def state(self) -> ConsumerGroupState:
        """share.md 1.1: there is no assigning or reconciling, a member takes its target in one step."""
        return ConsumerGroupState.STABLE if self.members else ConsumerGroupState.EMPTY
