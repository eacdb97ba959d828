"""What nodes read and write. Every method runs in the transaction of its caller.

Source: docs/decisions/coordinator-nodes.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from groups.core.model.types import Millis
from groups.nodes.view import Node, Partition, View, plan
from kcoord.database.notifications import NODES
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.setting_table import LEASE

Q = queries("groups")
log = structlog.get_logger(__name__)

LOCK_KEY = 0x6B636F6E6F6465
"""Advisory lock of changes of ownership: "kconode" in ASCII."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a server process says of itself. `url` "": clients reach it by the address that they came by.

    `kafka_host` and `kafka_port`: the same for Kafka clients; port 0: it does not listen for them.
    """

    node_id: str
    url: str
    version: str
    kafka_host: str = ""
    kafka_port: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """One partition gets another owner; None: nobody. `gaps`: by how much its gap grows."""

    partition: int
    owner: int | None
    gaps: int
    from_node: str
    to_node: str
    reason: str
    gap_ms: Millis | None


GapHook = Callable[[Connection, Millis], Awaitable[None]]

_gap_hooks: list[GapHook] = []


def on_gap(hook: GapHook) -> None:
    """Call `hook` in each transaction in which gaps grow: what members renew could not be renewed for a while. For
    `AppConfig.ready`.
    """
    if hook not in _gap_hooks:
        _gap_hooks.append(hook)


class NodeStore:
    """Rows of nodes and partitions."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db
        self._partitions = runtime.config.int("offsets.topic.num.partitions")
        self._lease_ms = runtime.config.int(LEASE)

    async def lock(self, connection: Connection) -> Millis:
        """Wait until no other node changes who owns what; returns the time."""
        await connection.execute(Q.lock_nodes.encode(), {"key": LOCK_KEY})
        return await self.now(connection)

    async def now(self, connection: Connection) -> Millis:
        """The time."""
        row = await self._db.one(connection, Q.node_clock, {"override": self._db.clock.override_ms})
        return int(row[0])

    async def renew(self, connection: Connection, incarnation: int) -> Millis | None:
        """Renew a lease; returns when, by the database's clock. None: the lease ended, and cannot be renewed."""
        await connection.execute(Q.renewals_need_no_flush.encode())
        await connection.execute(Q.lock_node.encode(), {"id": incarnation})
        parameters = {"id": incarnation, "lease_ms": self._lease_ms, "override": self._db.clock.override_ms}
        found: Millis | None = await self._db.value(connection, Q.renew_node, parameters)
        return found

    async def view(self, connection: Connection, now: Millis, *, lock: bool = False) -> View:
        """All registered nodes and all partitions. `lock`: no partition changes until the transaction ends."""
        nodes = await self._db.records(connection, Node, Q.load_nodes)
        statement = Q.lock_partitions if lock else Q.load_partitions
        return View(now, nodes, await self._db.records(connection, Partition, statement))

    async def create_partitions(self, connection: Connection, now: Millis) -> None:
        """Insert the missing rows of partitions."""
        await connection.execute(Q.create_partitions.encode(), {"now": now, "partitions": self._partitions})

    async def insert(self, connection: Connection, identity: Identity, now: Millis) -> int:
        """Register a node with a lease; returns its incarnation."""
        parameters = {
            "node_id": identity.node_id,
            "url": identity.url,
            "version": identity.version,
            "kafka_host": identity.kafka_host,
            "kafka_port": identity.kafka_port,
            "now": now,
            "lease_ms": self._lease_ms,
        }
        return int((await self._db.one(connection, Q.insert_node, parameters))[0])

    async def end_lapsed(self, connection: Connection, now: Millis) -> bool:
        """Declare the nodes dead whose leases have run out; returns whether there were any."""
        died = await self._db.column(connection, Q.end_lapsed_nodes, {"now": now})
        for node_id in died:
            log.warning("node_lapsed", node=node_id)
        return bool(died)

    async def end(self, connection: Connection, incarnation: int, reason: str, now: Millis) -> None:
        """End one node, if it is still registered."""
        await connection.execute(Q.end_node.encode(), {"id": incarnation, "reason": reason, "now": now})

    async def settle(self, connection: Connection, now: Millis, *, died: bool) -> bool:
        """Give partitions without a live owner to live nodes; returns whether anything changed.

        `died`: nodes were declared dead in this transaction. What a dead node had not written yet of renewed sessions
        is lost in all partitions, not only in its own, so sessions start over everywhere.
        """
        if died:
            await connection.execute(Q.raise_gaps.encode())
        view = await self.view(connection, now, lock=True)
        orphans = [found for found in view.partitions if found.owner not in view.live]
        targets = plan(view.live, {found.partition: found.owner for found in view.partitions})
        former = await self._former(connection, {found.owner for found in orphans if found.owner is not None})
        changes = []
        for found in orphans:
            owner = targets.get(found.partition)
            if owner is None and found.owner is None:
                continue  # nobody had it, and nobody is there to take it
            before, expired_at, reason = former.get(found.owner, ("", found.state_since, "taken"))
            to_node = view.live[owner].node_id if owner is not None else ""
            gap_ms = max(now - expired_at, 0)
            changes.append(Change(found.partition, owner, int(not died), before, to_node, reason, gap_ms))
        await self.give(connection, changes, now)
        if died or changes:
            for hook in _gap_hooks:
                await hook(connection, now)
        return died or bool(changes)

    async def _former(
        self, connection: Connection, incarnations: Iterable[int]
    ) -> dict[int | None, tuple[str, Millis, str]]:
        rows = await self._db.rows(connection, Q.name_nodes, {"ids": list(incarnations)})
        return {pk: (node_id, expires_at, reason or "lapsed") for pk, node_id, expires_at, reason in rows}

    async def hand_over(
        self, connection: Connection, view: View, incarnation: int, targets: Mapping[int, int], reason: str
    ) -> None:
        """Give own partitions to live nodes (partition -> incarnation): sessions go on counting, so no gap grows."""
        own = view.live[incarnation].node_id if incarnation in view.live else ""
        mine = {found.partition for found in view.owned_by(incarnation)}
        changes = [
            Change(partition, target, 0, own, view.live[target].node_id, reason, None)
            for partition, target in sorted(targets.items())
            if partition in mine and target in view.live
        ]
        await self.give(connection, changes, view.now)

    async def give(self, connection: Connection, changes: Sequence[Change], now: Millis) -> None:
        """Change owners, and write down why. The new owner has to load what it gets."""
        if not changes:
            return
        columns: dict[str, Any] = {
            name: [getattr(change, name) for change in changes]
            for name in ("partition", "owner", "gaps", "from_node", "to_node", "reason", "gap_ms")
        }
        columns["state"] = ["CLOSED" if change.owner is None else "LOADING" for change in changes]
        await connection.execute(Q.give_partitions.encode(), {**columns, "now": now})
        await connection.execute(Q.insert_partition_changes.encode(), {**columns, "now": now})

    async def activate(
        self, connection: Connection, incarnation: int, epochs: Mapping[int, int]
    ) -> list[tuple[int, int, Millis]]:
        """Own partitions are loaded (partition -> epoch); returns (partition, epoch, how long it took) of the active.

        One that was given to another node meanwhile is not among them.
        """
        parameters = {
            "partition": list(epochs),
            "epoch": list(epochs.values()),
            "owner": incarnation,
            "override": self._db.clock.override_ms,
        }
        return [(row[0], row[1], row[2]) for row in await self._db.rows(connection, Q.activate_partitions, parameters)]

    async def retry(
        self, connection: Connection, incarnation: int, partitions: Iterable[int], now: Millis
    ) -> list[tuple[int, int]]:
        """Own partitions are to be loaded once more; returns (partition, epoch), for those that are still own."""
        parameters = {"partition": list(partitions), "owner": incarnation, "now": now}
        return [(row[0], row[1]) for row in await self._db.rows(connection, Q.retry_partitions, parameters)]

    async def wake_oversized(self, connection: Connection, partitions: Iterable[int], max_size: int) -> None:
        """Make the groups of these partitions due that have more than `max_size` members (classic.md 8.3)."""
        parameters = {
            "partition": list(partitions),
            "max_size": max_size,
            "override": self._db.clock.override_ms,
        }
        await connection.execute(Q.wake_oversized_groups.encode(), parameters)

    async def tell(self, connection: Connection) -> None:
        """Tell the other nodes, once it is committed."""
        await connection.execute(Q.notify.encode(), {"channel": [NODES], "group_id": [""]})
