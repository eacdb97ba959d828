"""Nodes, partitions and hand-overs for people and scripts, and how long their history is kept.

Reads the tables, not what this process believes: every server shows the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from groups.core.model.types import Millis
from groups.nodes.view import Node, Partition
from kcoord.control.rest.answers import Instant, Natural, Natural32, doc, one_of
from kcoord.database.pool import Database
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime

Q = queries("groups")

NODES_SHOWN = 100
CHANGES_SHOWN = 100
END_REASONS = ("stopped", "lapsed")
CHANGE_REASONS = ("taken", "lapsed", "stopped", "balanced")
"""Those of the models, which a server must not import before Django is set up."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """One run of a server process as a coordinator node."""

    node_id: Annotated[str, doc("The server's name; it keeps it over restarts.")]
    incarnation: Annotated[int, doc("Number of this run; a restart has a higher one.")]
    url: Annotated[str | None, doc("Where clients reach it; null: at the address by which their requests come.")]
    version: Annotated[str, doc("The release it runs.")]
    started_at: Annotated[Instant, doc("When it registered.")]
    last_seen_at: Annotated[Instant, doc("When it last renewed its lease.")]
    lease_expires_at: Annotated[Instant, doc("When its lease runs out, or did, unless it is renewed.")]
    live: Annotated[bool, doc("Its lease has not run out.")]
    ended_at: Annotated[Instant | None, doc("When it left, or was declared dead; null: it is registered.")]
    end_reason: Annotated[
        Annotated[str, one_of(END_REASONS)] | None,
        doc("stopped: it left. lapsed: its lease ran out."),
    ]
    partitions: Annotated[Sequence[Natural32], doc("The coordinator partitions that it owns, ascending.")]


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
class PartitionChangeView:
    """A change of the owner of a coordinator partition."""

    at: Instant
    partition: Natural32
    epoch: Annotated[int, doc("The epoch that began.")]
    gap: int
    from_node_id: Annotated[str | None, doc("null: nobody owned it.")]
    to_node_id: Annotated[str | None, doc("null: nobody owns it.")]
    reason: Annotated[
        str,
        one_of(
            CHANGE_REASONS,
            "taken: nobody owned it. lapsed, stopped: how its owner ended. balanced: handed over to spread partitions "
            "evenly.",
        ),
    ]
    gap_ms: Annotated[Natural | None, doc("How long nobody owned it, in ms; null: it was handed over directly.")]


@dataclass(frozen=True, slots=True)
class Overview:
    """The instant `now` of the database's clock. Nodes: live ones first; partitions ascending; newest changes first."""

    now: Millis
    nodes: Sequence[NodeView]
    partitions: Sequence[SeenPartition]
    changes: Sequence[PartitionChangeView]


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
            found = await self._db.records(
                connection, PartitionChangeView, Q.recent_partition_changes, {"limit": changes}
            )
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


def _node(node: Node, now: Millis, partitions: Sequence[int]) -> NodeView:
    return NodeView(
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
