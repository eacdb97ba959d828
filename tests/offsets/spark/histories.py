"""A coordinator in miniature that leaves histories as the real one does, whatever is done to it: clean by construction.

`World.do` takes small numbers and makes of them what is possible: commits of both protocols, rebalances, hand-overs,
static members that come back, transactions, resets and their undoing, deletions of offsets, groups and topics, topics
made again before their sweep, groups that change their protocol, watermarks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

BASE_MS = 1_790_000_000_000
PARTITIONS = 2

Key = tuple[str, str, int]


@dataclass
class Member:
    """`assigned`: partition -> epoch in which it was got."""

    name: str
    epoch: int
    assigned: dict[tuple[str, int], int] = field(default_factory=dict)


@dataclass
class Group:
    name: str
    kind: str
    created_at: int
    generation: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    target: dict[tuple[str, int], str] = field(default_factory=dict)


@dataclass
class Topic:
    name: str
    key: int
    created_at: int
    ends: list[int] = field(default_factory=lambda: [0] * PARTITIONS)


class World:
    """One database, in time."""

    def __init__(self) -> None:
        self.now, self.last_id, self.tag = BASE_MS, 0, 0
        self.lines: list[dict[str, Any]] = []
        self.view: dict[Key, dict[str, Any]] = {}
        self.pending: dict[tuple[int, Key], dict[str, Any]] = {}
        self.groups: dict[str, Group] = {}
        self.topics: dict[str, Topic] = {}
        self.deleted: list[tuple[str, int]] = []
        self.watermarks: dict[tuple[str, int], tuple[int, int, int, int]] = {}
        self.events: list[dict[str, Any]] = []
        self.restorable: dict[Key, tuple[dict[str, Any] | None, int | None]] = {}
        self.names = 0
        self.begin()

    # -- what the service does

    def begin(self) -> None:
        """Another history: groups and topics that no other has."""
        self.tag += 1
        self.group_names = [f"g{self.tag}-a", f"g{self.tag}-b"]
        self.topic_names = [f"t{self.tag}-x", f"t{self.tag}-y"]
        for name in self.topic_names:
            self.make_topic(name)

    def next_id(self) -> int:
        self.last_id += 1
        return self.last_id

    def make_topic(self, name: str) -> None:
        self.topics[name] = Topic(name, len(self.topics) + len(self.deleted) + 1, self.now)

    def event(self, group: str, kind: str, member: str | None = None) -> None:
        self.events.append({"group_name": group, "at": self.now, "kind": kind, "member_id": member})

    def line(self, key: Key, kind: str, record: dict[str, Any] | None, member: str = "", generation: int = -1) -> int:
        record = record or {"committed_offset": None, "leader_epoch": -1, "metadata": "", "expire_timestamp": None}
        number = self.next_id()
        self.lines.append(
            dict(
                id=number, at=self.now, kind=kind, group_name=key[0], topic=key[1], partition=key[2],
                member_id=member, generation_id=generation,
                **{name: record[name] for name in ("committed_offset", "leader_epoch", "metadata", "expire_timestamp")},
            )
        )  # fmt: skip
        return number

    def write(
        self, key: Key, kind: str, offset: int, member: str = "", generation: int = -1, written_at: int | None = None
    ) -> None:
        record = {"committed_offset": offset, "leader_epoch": offset % 3 - 1, "metadata": "m" * (offset % 2)}
        record["expire_timestamp"] = None
        number = self.line(key, kind, record, member, generation)
        at = self.now if written_at is None else written_at
        self.view[key] = {**record, "commit_timestamp": at, "record_offset": number, "generation_id": generation}
        self.restorable.pop(key, None)

    def remove(self, key: Key, kind: str, up_to: int | None = None) -> None:
        def old(record_offset: int) -> bool:
            return up_to is None or record_offset <= up_to

        there = key in self.view and old(self.view[key]["record_offset"])
        pending = [one for one in self.pending if one[1] == key and old(self.pending[one]["record_offset"])]
        for one in pending:
            del self.pending[one]
        if there:
            del self.view[key]
        if there or pending:
            self.line(key, kind, None)
            self.restorable.pop(key, None)

    def advance(self, key: Key, by: int) -> int | None:
        """The next offset that a consumer commits: not before what it read of this topic, never beyond its end."""
        topic = self.topics.get(key[1])
        if topic is None:
            return None
        row, read = self.view.get(key), 0
        if row is not None and self.of_this_life(key, row["record_offset"]):
            read = row["committed_offset"]
        read = max([read, *(one["committed_offset"] for (_, k), one in self.pending.items() if k == key)])
        topic.ends[key[2]] = max(topic.ends[key[2]], read + by)
        return read + by

    def of_this_life(self, key: Key, record_offset: int) -> bool:
        return all(record_offset > last for name, last in self.deleted if name == key[1])

    # -- what is done to it

    def do(self, what: int, a: int, b: int, c: int) -> None:
        """One step; nothing where it is not possible now."""
        self.now += c % 4 and (c % 7)
        group_name, topic_name = self.group_names[a % 2], self.topic_names[b % 2]
        key = (group_name, topic_name, c % PARTITIONS)
        group = self.groups.get(group_name)
        steps = [
            *(self.commit, self.commit, self.commit, self.commit, self.commit, self.rebalance),
            *(self.reconcile, self.reconcile, self.take_over, self.commit_simply, self.leave),
            *(self.reset, self.undo, self.delete_offset, self.delete_group, self.delete_topic, self.sweep),
            *(self.begin_transaction, self.end_transaction, self.convert, self.report),
        ]
        steps[what % len(steps)](group, key, a + b + c)

    def join(self, key: Key, number: int) -> Group:
        group = self.groups.get(key[0])
        if group is None:
            kind = "classic" if number % 2 else "consumer"
            group = self.groups[key[0]] = Group(key[0], kind, self.now)
        return group

    def rebalance(self, group: Group | None, key: Key, number: int) -> None:
        group = group or self.join(key, number)
        group.generation += 1
        while len(group.members) < 2:
            self.names += 1
            name = f"m{self.names}"
            group.members[name] = Member(name, group.generation)
        names = list(group.members)
        all_of_them = [(topic, p) for topic in self.topic_names for p in range(PARTITIONS)]
        group.target = {one: names[(number + i * (number % 3)) % len(names)] for i, one in enumerate(all_of_them)}
        if group.kind == "classic":
            for member in group.members.values():
                member.epoch = group.generation
                member.assigned = {one: group.generation for one, to in group.target.items() if to == member.name}

    def reconcile(self, group: Group | None, key: Key, number: int) -> None:
        """A member of a consumer group gives up what it is not to have, or gets what is free."""
        if group is None or group.kind == "classic" or not group.members:
            return
        member = list(group.members.values())[number % len(group.members)]
        kept = {one: epoch for one, epoch in member.assigned.items() if group.target.get(one) == member.name}
        taken = {one for other in group.members.values() if other is not member for one in other.assigned}
        free = [one for one, to in group.target.items() if to == member.name and one not in taken and one not in kept]
        member.epoch = group.generation
        member.assigned = {**kept, **dict.fromkeys(free, group.generation)}

    def owner(self, group: Group, key: Key) -> Member | None:
        return next((m for m in group.members.values() if key[1:] in m.assigned), None)

    def commit(self, group: Group | None, key: Key, number: int) -> None:
        member = self.owner(group, key) if group is not None else None
        offset = self.advance(key, number % 5)
        if group is None or member is None or offset is None:
            return
        epoch = member.epoch
        if group.kind == "consumer" and number % 3 == 0:
            epoch = max(member.assigned[key[1:]], epoch - 1)  # KIP-1251
        self.write(key, "commit", offset, member.name, epoch)

    def take_over(self, group: Group | None, key: Key, number: int) -> None:
        """A static member comes back under another id, in the same generation."""
        if group is None or not group.members:
            return
        old = list(group.members.values())[number % len(group.members)]
        self.names += 1
        new = Member(f"m{self.names}", old.epoch, old.assigned)
        del group.members[old.name]
        group.members[new.name] = new
        group.target = {one: new.name if to == old.name else to for one, to in group.target.items()}
        self.event(group.name, "member_replaced", new.name)

    def commit_simply(self, group: Group | None, key: Key, number: int) -> None:
        offset = self.advance(key, number % 5)
        if (group is None or not group.members) and offset is not None:
            self.groups.setdefault(key[0], Group(key[0], "classic", self.now))
            self.write(key, "commit", offset)

    def leave(self, group: Group | None, key: Key, number: int) -> None:
        if group is not None and group.members:
            group.generation += 1
            group.members, group.target = {}, {}

    def reset(self, group: Group | None, key: Key, number: int) -> None:
        topic = self.topics.get(key[1])
        if (group is not None and group.members) or topic is None:
            return
        self.groups.setdefault(key[0], Group(key[0], "classic", self.now))
        before = self.view.get(key)
        self.pending = {one: record for one, record in self.pending.items() if one[1] != key}
        self.write(key, "import" if number % 4 == 0 else "reset", number % (topic.ends[key[2]] + 1))
        self.restorable[key] = (before, self.view[key]["record_offset"])

    def undo(self, group: Group | None, key: Key, number: int) -> None:
        before, applied = self.restorable.get(key, (None, None))
        row = self.view.get(key)
        if group is None or group.members or row is None or row["record_offset"] != applied:
            return
        if any(one[1] == key for one in self.pending) or key[1] not in self.topics:
            return
        if before is None:
            self.remove(key, "restore")
        elif self.of_this_life(key, before["record_offset"]):
            self.write(key, "restore", before["committed_offset"], written_at=before["commit_timestamp"])

    def delete_offset(self, group: Group | None, key: Key, number: int) -> None:
        self.remove(key, "delete" if number % 2 else "expire")

    def delete_group(self, group: Group | None, key: Key, number: int) -> None:
        """Where nothing is committed, the journal says nothing of it."""
        if group is None or group.members:
            return
        keys = {one for one in self.view if one[0] == group.name} | {one for _, one in self.pending if one[0] == key[0]}
        for one in sorted(keys):
            self.remove(one, "group_delete")
        del self.groups[group.name]

    def delete_topic(self, group: Group | None, key: Key, number: int) -> None:
        """Its offsets go later; perhaps there is another of its name before."""
        if key[1] in self.topics:
            del self.topics[key[1]]
            self.watermarks = {one: mark for one, mark in self.watermarks.items() if one[0] != key[1]}
            self.deleted.append((key[1], self.last_id))
            if number % 2:
                return
        if not any(name == key[1] for name, _ in self.deleted) or number % 3:
            self.make_topic(key[1]) if key[1] not in self.topics else None

    def sweep(self, group: Group | None, key: Key, number: int) -> None:
        for name, last in [one for one in self.deleted if one[0] == key[1]]:
            up_to = last if name in self.topics else None
            for one in sorted({k for k in self.view if k[1] == name} | {k for _, k in self.pending if k[1] == name}):
                self.remove(one, "topic_delete", up_to)
            self.deleted.remove((name, last))
        if key[1] not in self.topics:
            self.make_topic(key[1])

    def begin_transaction(self, group: Group | None, key: Key, number: int) -> None:
        member = self.owner(group, key) if group is not None else None
        offset = self.advance(key, number % 5)
        if group is None or member is None or offset is None:
            return
        if (number % 2, key) in self.pending:
            return
        self.pending[number % 2, key] = {
            "committed_offset": offset, "leader_epoch": 1, "metadata": "tx", "expire_timestamp": None,
            "commit_timestamp": self.now, "record_offset": self.next_id(), "generation_id": member.epoch,
            "member": member.name,
        }  # fmt: skip

    def end_transaction(self, group: Group | None, key: Key, number: int) -> None:
        for one in [one for one in self.pending if one[0] == number % 2]:
            record = self.pending.pop(one)
            committed = self.view.get(one[1])
            if number % 5 == 0 or (committed is not None and committed["record_offset"] > record["record_offset"]):
                continue
            member = record.pop("member")
            self.line(one[1], "txn_commit", record, member, record["generation_id"])
            self.view[one[1]] = record
            self.restorable.pop(one[1], None)

    def convert(self, group: Group | None, key: Key, number: int) -> None:
        """An empty group changes its protocol; its epoch begins again and its offsets stay."""
        if group is not None and not group.members:
            group.kind = "consumer" if group.kind == "classic" else "classic"
            group.generation = 0
            self.event(group.name, "group_converted")

    def report(self, group: Group | None, key: Key, number: int) -> None:
        topic = self.topics.get(key[1])
        if topic is not None:
            for partition, end in enumerate(topic.ends):
                self.watermarks[topic.name, partition] = (topic.key, 0, end, self.now)
                topic.ends[partition] = end + number % 4  # records come after it was measured
