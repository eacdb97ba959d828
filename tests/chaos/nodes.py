"""Nodes, partitions and members as Postgres has them, for tests of single faults."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tests.chaos.world import World

T = TypeVar("T")


@dataclass(frozen=True)
class Owned:
    """A coordinator partition. `node`: the name of its owner, "" if nobody owns it."""

    state: str
    incarnation: int | None
    node: str
    epoch: int
    gap: int
    active_since: int | None


PARTITIONS = """
select p.partition, p.state, p.owner_id, coalesce(n.node_id, ''), p.epoch, p.gap, p.active_since
from groups_coordinatorpartition p left join groups_coordinatornode n on n.id = p.owner_id order by 1
"""

LIVE = """
select node_id, id from groups_coordinatornode
where ended_at is null and expires_at > (extract(epoch from clock_timestamp()) * 1000)::bigint
"""

MEMBERS = """
select g.group_id, m.member_id from groups_member m join groups_group g on g.id = m.group_id
union all
select g.group_id, m.member_id from groups_consumermember m join groups_group g on g.id = m.group_id
"""


def partitions(world: World) -> dict[int, Owned]:
    """All coordinator partitions."""
    return {number: Owned(*rest) for number, *rest in world.sql(PARTITIONS)}


def live(world: World) -> dict[str, int]:
    """The incarnations of the nodes that hold a lease, by name."""
    return {str(name): int(incarnation) for name, incarnation in world.sql(LIVE)}


def members(world: World) -> set[tuple[str, str]]:
    """Who belongs to a group."""
    return {(str(group), str(member)) for group, member in world.sql(MEMBERS)}


def now_ms(world: World) -> int:
    """The clock of the service."""
    return int(world.sql("select (extract(epoch from clock_timestamp()) * 1000)::bigint")[0][0])


def node_of(world: World, server: str) -> str:
    """The name of a server among the nodes."""
    number = server.rpartition("-")[2]
    (found,) = [name for name in live(world) if name.endswith(f"-{number}")]
    return found


def changes_since(world: World, record: int) -> list[tuple[int, str, str, str, int, int]]:
    """Changes of owners after a record: partition, from, to, reason, epoch, gap."""
    query = """
    select partition, from_node, to_node, reason, epoch, gap from groups_partitionchange where id > %(id)s order by id
    """
    return [(int(a), str(b), str(c), str(d), int(e), int(f)) for a, b, c, d, e, f in world.sql(query, {"id": record})]


def last_change(world: World) -> int:
    """The record of the last change of an owner."""
    return int(world.sql("select coalesce(max(id), 0) from groups_partitionchange")[0][0])


def removals_since(world: World, record: int) -> list[tuple[str, str, str | None]]:
    """Members that were removed after an event: group, member id, cause."""
    query = """
    select group_name, member_id, detail ->> 'cause' from groups_event
    where id > %(id)s and kind in ('member_expired', 'member_removed') order by id
    """
    return [(str(group), str(member), cause) for group, member, cause in world.sql(query, {"id": record})]


def last_event(world: World) -> int:
    """The record of the last event."""
    return int(world.sql("select coalesce(max(id), 0) from groups_event")[0][0])


def until(condition: Callable[[], T], seconds: float, what: str) -> float:
    """Wait until it is true; returns how long that took. Raises AssertionError after `seconds`."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"not within {seconds:g} s: {what}"
        time.sleep(0.05)
    return time.monotonic() - began


def all_active(world: World, without: int | None = None, nodes: int | None = None) -> bool:
    """Every partition is ACTIVE at a live node, none at incarnation `without`; shared by `nodes` nodes, if given."""
    owners = live(world).values()
    found = partitions(world).values()
    return (
        all(p.state == "ACTIVE" and p.incarnation in owners and p.incarnation != without for p in found)
        and (nodes is None or len({p.incarnation for p in found}) == nodes)
        and len(found) == 50
    )
