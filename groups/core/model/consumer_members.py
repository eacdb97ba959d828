"""The members of a consumer group and everything derived from them, kept up to date change by change.

Source: consumer.md 1.3 and 1.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from groups.core.model.consumer_state import ConsumerMember, MemberState, RegexKey
from groups.core.model.partitions import flat
from groups.core.model.persistent import PersistentMap

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
