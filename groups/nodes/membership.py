"""A node among the others: how it registers, keeps its lease, takes over from the dead and leaves.

Each function is one transaction of the node's own connection. What the rules are, and what goes wrong without each, is
in docs/models; they are checked there exhaustively.
"""

from __future__ import annotations

from dataclasses import dataclass

from groups.nodes.store import Identity, NodeStore
from groups.nodes.view import View, plan, works_beside
from kcoord.database.pool import Connection


class NodeRefused(Exception):
    """This process cannot be a node now. The message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A node with its lease."""

    incarnation: int
    view: View


async def register(store: NodeStore, connection: Connection, identity: Identity, partitions: int) -> Registered:
    """Take part as a new incarnation, and take what nobody owns. Raises NodeRefused.

    Not while a lease under the same name runs: until then its holder believes that it is the owner. So a server that
    was killed and started again waits for the lease of its predecessor, and never continues it.
    """
    now = await store.lock(connection)
    died = await store.end_lapsed(connection, now)
    view = await store.view(connection, now)
    _check(view, identity, partitions)
    await store.create_partitions(connection, now)
    incarnation = await store.insert(connection, identity, now)
    await store.settle(connection, now, died=died)
    await store.tell(connection)
    return Registered(incarnation, await store.view(connection, now))


def _check(view: View, identity: Identity, partitions: int) -> None:
    """Raises NodeRefused for what does not fit the nodes that are there."""
    if view.partitions and len(view.partitions) != partitions:
        raise NodeRefused(
            f"offsets.topic.num.partitions is {partitions} here, but the database has {len(view.partitions)} "
            f"coordinator partitions: set KCOORD_OFFSETS_TOPIC_NUM_PARTITIONS={len(view.partitions)}"
        )
    for node in view.nodes:
        if node.node_id == identity.node_id:
            raise NodeRefused(
                f"a lease of node {node.node_id} runs: that of this server before it was killed, which ends soon, or "
                "that of another server; give each its own KCOORD_NODE_ID"
            )
        if identity.url and node.url == identity.url:
            raise NodeRefused(
                f"node {node.node_id} has the same advertised URL {node.url}: give each server its own "
                "KCOORD_ADVERTISED_URL, at which clients reach that server"
            )
        if not works_beside(identity.version, node.version):
            raise NodeRefused(
                f"release {identity.version} does not work beside release {node.version} of node {node.node_id}: "
                "upgrade over one minor release at a time"
            )


async def renew(store: NodeStore, connection: Connection, incarnation: int) -> View | None:
    """Renew the lease and look around; None: the lease has ended, and everything held under it is worthless."""
    now = await store.renew(connection, incarnation)
    return None if now is None else await store.view(connection, now)


async def care(store: NodeStore, connection: Connection) -> View:
    """Declare the nodes dead whose leases have run out, and give partitions without a live owner to live nodes."""
    now = await store.lock(connection)
    died = await store.end_lapsed(connection, now)
    if await store.settle(connection, now, died=died):
        await store.tell(connection)
    return await store.view(connection, now)


async def balance(store: NodeStore, connection: Connection, incarnation: int) -> View:
    """Give away what other live nodes should own."""
    now = await store.lock(connection)
    view = await store.view(connection, now, lock=True)
    targets = surplus(view, incarnation)
    if targets and incarnation in view.live:
        await store.hand_over(connection, view, incarnation, targets, "balanced")
        await store.tell(connection)
        view = await store.view(connection, now)
    return view


def surplus(view: View, incarnation: int) -> dict[int, int]:
    """Own partitions that the plan gives to other nodes: partition -> incarnation."""
    targets = plan(view.live, {found.partition: found.owner for found in view.partitions})
    mine = (found.partition for found in view.owned_by(incarnation))
    return {partition: targets[partition] for partition in mine if targets.get(partition, incarnation) != incarnation}


async def leave(store: NodeStore, connection: Connection, incarnation: int) -> None:
    """Hand everything over to named successors, then end: nobody waits for a lease to run out."""
    now = await store.lock(connection)
    view = await store.view(connection, now, lock=True)
    if incarnation not in view.live:
        return  # the lease has ended: others declare this node dead, or did
    others = [node for node in view.live if node != incarnation]
    targets = plan(others, {found.partition: found.owner for found in view.partitions})
    mine = {found.partition: targets[found.partition] for found in view.owned_by(incarnation) if targets}
    await store.hand_over(connection, view, incarnation, mine, "stopped")
    await store.end(connection, incarnation, "stopped", now)
    if not others:
        await store.settle(connection, now, died=False)  # nobody owns them from now on
    await store.tell(connection)
