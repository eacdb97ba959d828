"""Several nodes on one database, and what its tables say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import psycopg

from groups.engine.agent import NodeAgent
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.setting_table import LEASE

LEASE_MS = Config({}).int(LEASE)
PARTITIONS = 50


@dataclass(frozen=True)
class Cluster:
    """Nodes by name."""

    start: Callable[..., Awaitable[NodeAgent]]
    clock: VirtualClock

    async def running(self, *names: str, **settings: Any) -> list[NodeAgent]:
        """Nodes that share the partitions evenly."""
        agents = []
        for name in names:
            agents.append(await self.start(name, **settings))
            await beat(*agents)
        await beat(*agents)
        return agents


async def beat(*agents: NodeAgent) -> None:
    """Every node renews once, and once more to take in what the others gave it."""
    for _ in range(2):
        for agent in agents:
            await agent.beat()


@dataclass(frozen=True)
class Store:
    """Rows: partition -> (name of the owner, epoch, gap, state); live names; the changes in order."""

    partitions: dict[int, tuple[str | None, int, int, str]]
    nodes: dict[str, list[str | None]]
    changes: list[tuple[str, str, str]]

    @staticmethod
    def read(connection: psycopg.Connection[Any]) -> Store:
        partitions = connection.execute(
            "select p.partition, n.node_id, p.epoch, p.gap, p.state from groups_coordinatorpartition p"
            " left join groups_coordinatornode n on n.id = p.owner_id order by 1"
        ).fetchall()
        nodes: dict[str, list[str | None]] = {}
        for name, reason in connection.execute("select node_id, end_reason from groups_coordinatornode order by id"):
            nodes.setdefault(name, []).append(reason)
        changes = connection.execute(
            "select from_node, to_node, reason from groups_partitionchange order by id"
        ).fetchall()
        return Store({row[0]: (row[1], row[2], row[3], row[4]) for row in partitions}, nodes, changes)

    @property
    def shares(self) -> Counter[str | None]:
        """How many active partitions each node has."""
        return Counter(owner for owner, _, _, state in self.partitions.values() if state == "ACTIVE")

    @property
    def gaps(self) -> set[int]:
        """The different gaps of partitions."""
        return {gap for _, _, gap, _ in self.partitions.values()}

    @property
    def epochs(self) -> dict[int, int]:
        """Partition -> epoch."""
        return {partition: epoch for partition, (_, epoch, _, _) in self.partitions.items()}
