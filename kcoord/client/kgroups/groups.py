"""A group as the tool sees it, of the types that it shows (offsets.md 13.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kcoord.client.kgroups import answers
from kcoord.client.kgroups.api import Api
from kcoord.client.kgroups.listing import SHOWN_PROTOCOL_TYPES, consumer_groups
from kcoord.client.kgroups.output import Output, reason
from kcoord.protocol.errors import Error, ProtocolError

SHARE_GROUP = "Share group"
DEAD, EMPTY, STABLE = "Dead", "Empty", "Stable"

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Member:
    """A member. `epoch` None: it is a member of a classic group. `upgraded`: it speaks the consumer protocol."""

    member_id: str
    instance_id: str | None
    host: str
    client_id: str
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...]
    epoch: int | None
    upgraded: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A group. One that does not exist is Dead and has nothing. Epochs are None for a classic group.

    `kind`: what messages call it.
    """

    group_id: str
    state: str = DEAD
    coordinator: str = ""
    strategy: str = ""
    members: tuple[Member, ...] = ()
    group_epoch: int | None = None
    target_epoch: int | None = None
    kind: str = "Consumer group"

    @property
    def is_share(self) -> bool:
        """Its members acquire items instead of committing offsets."""
        return self.kind == SHARE_GROUP


def wanted_groups(api: Api, groups: tuple[str, ...] | None) -> list[str]:
    """The ids of the selected groups, in order; None: all that --list would show."""
    if groups is None:
        return [group.group_id for group in consumer_groups(api)]
    return sorted(groups)


def find_group(api: Api, group_id: str, output: Output) -> Group | None:
    """A group; None after an error was printed: it is not a consumer group, or it cannot be described."""
    try:
        found = api.group(group_id)
    except ProtocolError as error:
        if error.error is Error.GROUP_ID_NOT_FOUND:
            return Group(group_id)
        output.error(f"Consumer group '{group_id}' could not be described: {reason(error)}")
        return None
    if found.type == "consumer":
        return _consumer_group(found)
    if found.type == "share":
        return replace(_consumer_group(found), kind=SHARE_GROUP)
    if found.protocol_type not in SHOWN_PROTOCOL_TYPES:
        output.error(f"'{group_id}' is not a consumer group: its protocol type is '{found.protocol_type}'.")
        return None
    return _classic_group(found)


def _classic_group(found: answers.Group) -> Group:
    members = tuple(
        Member(
            member_id=member.member_id,
            instance_id=member.group_instance_id,
            host=member.client_host,
            client_id=member.client_id,
            assignment=_in_order((member.partitions or {}).items()),
            target=(),
            epoch=None,
            upgraded=False,
        )
        for member in found.members
    )
    return Group(found.group_id, found.state, _coordinator(found), found.protocol_name, members)


def _consumer_group(found: answers.Group) -> Group:
    members = tuple(
        Member(
            member_id=member.member_id,
            instance_id=member.group_instance_id,
            host=member.client_host,
            client_id=member.client_id,
            assignment=_of_topics(member.assignment),
            target=_of_topics(member.target_assignment),
            epoch=member.member_epoch,
            upgraded=member.member_type == "consumer",
        )
        for member in found.members
    )
    epochs = found.group_epoch, found.assignment_epoch
    return Group(found.group_id, found.state, _coordinator(found), found.assignor, members, *epochs)


def _of_topics(entries: list[answers.TopicPartitions] | str) -> tuple[TopicPartition, ...]:
    """Partitions of topics that still exist."""
    assert not isinstance(entries, str), "members of consumer groups have lists"
    return _in_order((entry.topic, entry.partitions) for entry in entries if entry.topic is not None)


def _in_order(entries: Iterable[tuple[str, list[int]]]) -> tuple[TopicPartition, ...]:
    return tuple(sorted((topic, partition) for topic, partitions in entries for partition in partitions))


def _coordinator(found: answers.Group) -> str:
    node = found.coordinator
    return f"{node.host}:{node.port}  ({node.node_id})"
