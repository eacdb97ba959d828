"""Nodes, partitions and hand-overs for people and scripts, and how long their history is kept.

Reads the tables, not what this process believes: every server shows the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from groups.core.model.types import Millis
from groups.nodes.view import Node, Partition
from kcoord.database.pool import Database
from kcoord.process.runtime import Runtime
from kcoord.sql import queries

Q = queries("groups")

NODES_SHOWN = 100
CHANGES_SHOWN = 100


@dataclass(frozen=True, slots=True)
class SeenNode:
    """One run of a server process. `live`: its lease has not run out. `partitions`: those it owns, ascending.

    A node whose lease has run out keeps its partitions until another node takes them.
    """

    node_id: str
    incarnation: int
    url: str | None
    version: str
    started_at: Millis
    last_seen_at: Millis
    lease_expires_at: Millis
    live: bool
    ended_at: Millis | None
    end_reason: str | None
    partitions: Sequence[int]


@dataclass(frozen=True, slots=True)
class SeenPartition:
    """A coordinator partition. `state`: LOADING, ACTIVE, or CLOSED if no live node owns it.

    `node_id`, `incarnation`: the live node that owns it. `since`: when it came into this state. `load_ms`: how long its
    last loading took.
    """

    partition: int
    state: str
    node_id: str | None
    incarnation: int | None
    epoch: int
    gap: int
    since: Millis
    load_ms: Millis | None


@dataclass(frozen=True, slots=True)
class SeenChange:
    """A change of the owner of a partition; None: nobody. `gap_ms`: how long nobody owned it, None: not at all."""

    at: Millis
    partition: int
    epoch: int
    gap: int
    from_node_id: str | None
    to_node_id: str | None
    reason: str
    gap_ms: Millis | None


@dataclass(frozen=True, slots=True)
class Overview:
    """The instant `now` of the database's clock. Nodes: live ones first; partitions ascending; newest changes first."""

    now: Millis
    nodes: Sequence[SeenNode]
    partitions: Sequence[SeenPartition]
    changes: Sequence[SeenChange]


class NodeOverviews:
    """Reads and trims the tables of nodes."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db

    async def read(self, changes: int = CHANGES_SHOWN, nodes: int = NODES_SHOWN) -> Overview:
        """All partitions, `nodes` nodes and the last `changes` changes.

        Raises ProtocolError COORDINATOR_NOT_AVAILABLE.
        """
        async with self._db.snapshot() as connection:
            now = await self._db.now_ms(connection)
            found_nodes = await self._db.records(connection, Node, Q.recent_nodes, {"limit": nodes})
            partitions = await self._db.records(connection, Partition, Q.load_partitions)
            found = await self._db.records(connection, SeenChange, Q.recent_partition_changes, {"limit": changes})
        live = {node.id: node for node in found_nodes if node.is_live(now)}
        owned: dict[int, list[int]] = {}
        for row in partitions:
            if row.owner is not None:
                owned.setdefault(row.owner, []).append(row.partition)
        shown = [_node(node, now, owned.get(node.id, ())) for node in found_nodes]
        shown.sort(key=lambda node: (not node.live, node.ended_at is not None))  # stable: else in the given order
        known = {node.id: node for node in found_nodes}
        return Overview(now, shown, [_partition(row, live, known) for row in partitions], found)

    async def trim(self, before: Millis) -> int:
        """Delete changes and ended nodes from before an instant; returns the number deleted."""
        deleted = 0
        for statement in (Q.trim_partition_changes, Q.trim_nodes):
            async with self._db.connection() as connection:
                deleted += (await connection.execute(statement.encode(), {"before": before})).rowcount
        return deleted


def _node(node: Node, now: Millis, partitions: Sequence[int]) -> SeenNode:
    return SeenNode(
        node.node_id,
        node.id,
        node.url or None,
        node.version,
        node.started_at,
        node.renewed_at,
        node.expires_at,
        node.is_live(now),
        node.ended_at,
        node.end_reason,
        partitions,
    )


def _partition(row: Partition, live: dict[int, Node], known: dict[int, Node]) -> SeenPartition:
    owner = None if row.owner is None else live.get(row.owner)
    if owner is not None:
        return SeenPartition(
            row.partition, row.state, owner.node_id, owner.id, row.epoch, row.gap, row.state_since, row.load_ms
        )
    lapsed = None if row.owner is None else known.get(row.owner)
    since = row.state_since if lapsed is None else max(row.state_since, lapsed.expires_at)
    return SeenPartition(row.partition, "CLOSED", None, None, row.epoch, row.gap, since, row.load_ms)
