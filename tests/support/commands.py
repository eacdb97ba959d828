"""Random but sensible traffic for one group: commands as members that live, crash and come back would send them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from groups.core.model.commands import (
    AbandonWait,
    Command,
    CommitOffsets,
    DeleteGroup,
    Heartbeat,
    HoldGroup,
    JoinGroup,
    KickMember,
    LeaveGroup,
    LeavingMember,
    ParkKind,
    ReleaseHold,
    SyncGroup,
    Tick,
)
from groups.core.model.types import ClassicGroup, Protocol
from kcoord.protocol.consumer_protocol import Subscription, encode_subscription

INSTANCES = ("i1", "i2", "i3")
METADATA = (b"", b"m1", b"\x00\xff", encode_subscription(Subscription(("foo",))))


def random_command(random: Random, group_id: str, group: ClassicGroup | None) -> Command:
    """A command that members of `group`, or strangers, might send next."""
    known = [*group.members, *group.pending_join] if group else []
    member_id = random.choice(known) if known and random.random() < 0.85 else ""
    member = group.members.get(member_id) if group else None
    instance_id = member.instance_id if member else None
    generation = group.generation_id if group else 0
    if random.random() < 0.1:
        generation += random.choice((-1, 1))
    match random.choices(
        ("join", "sync", "heartbeat", "leave", "commit", "delete", "tick", "abandon", "operator"),
        (40, 25, 15, 5, 5, 1, 6, 3, 3),
    )[0]:
        case "join":
            return random_join(random, group_id, member_id, instance_id)
        case "sync":
            assignments = {name: random.randbytes(random.randint(0, 6)) for name in known}
            return SyncGroup(group_id, member_id, instance_id, generation, None, None, assignments, 20_000)
        case "heartbeat":
            return Heartbeat(group_id, member_id, instance_id, generation)
        case "leave":
            return LeaveGroup(group_id, (LeavingMember(member_id, instance_id),))
        case "commit":
            return CommitOffsets(group_id, member_id, instance_id, generation if member_id else -1)
        case "delete":
            return DeleteGroup(group_id)
        case "abandon":
            return AbandonWait(group_id, member_id, random.choice(list(ParkKind)))
        case "operator":
            return random_operator(random, group_id, known)
    return Tick(group_id)


def random_operator(random: Random, group_id: str, known: Sequence[str]) -> Command:
    """A hold, its end, or a kick."""
    match random.randrange(3):
        case 0:
            return HoldGroup(group_id, random.choice((400, 4_000)), "ann", random.choice(("", "reset")))
        case 1:
            return ReleaseHold(group_id, "bob")
    return KickMember(group_id, random.choice([*known, "nobody"]), "ann", "hangs")


def random_join(random: Random, group_id: str, member_id: str = "", instance_id: str | None = None) -> JoinGroup:
    """A join, of a static member now and then, with timeouts and protocol lists that vary."""
    if not member_id and random.random() < 0.3:
        instance_id = random.choice(INSTANCES)
    names = random.choice((("range",), ("range", "sticky"), ("sticky", "range")))
    return JoinGroup(
        group_id=group_id,
        member_id=member_id,
        group_instance_id=instance_id,
        client_id=random.choice(("c1", "c2")),
        client_host="127.0.0.1",
        session_timeout_ms=random.choice((6_000, 10_000)),
        rebalance_timeout_ms=random.choice((8_000, 30_000)),
        protocol_type="consumer",
        protocols=tuple(Protocol(name, random.choice(METADATA)) for name in names),
        max_wait_ms=20_000,
    )
