"""This process as a coordinator node: registers, renews its lease, takes over, loads, runs timers, hands over.

One task renews, on a connection of its own, so that a crowd of requests cannot hold up a renewal. A second one runs the
timers of the partitions that it owns, so that a slow group cannot delay a renewal. A lease that ended, for whatever
reason, is the end of everything held under it: the node drops what it has in memory and takes part again as another
incarnation.

Loading is what a node does with a new partition before it answers for its groups and runs their timers. Everything is
in Postgres, and groups whose sessions could not be counted start them over when somebody looks at them
(`groups.core.machine`), so the cost does not grow with the number of groups. Groups are read only if `group.max.size`
is set, to find those that are too large.

Source: architecture.md 6; offsets.md 9.2 and 9.3; classic.md 8.3.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

import psycopg
import structlog
from psycopg.rows import TupleRow

from groups.core.shards import ShardState
from groups.engine.heartbeats import Flusher, Lease
from groups.engine.service import GroupService
from groups.engine.timers import TimerService
from groups.nodes import membership
from groups.nodes.directory import NodeDirectory, kafka_address, node_name, node_url
from groups.nodes.hosting import Hosting
from groups.nodes.membership import NodeRefused
from groups.nodes.store import Identity, NodeStore
from groups.nodes.view import View
from groups.store.store import GroupStore
from kcoord import __version__
from kcoord.config import Config
from kcoord.constants import RENEWAL
from kcoord.database import sessions
from kcoord.database.liveness import Origins
from kcoord.database.notifications import NODES
from kcoord.database.pool import Connection
from kcoord.metrics import LEASES_LOST, NODE_PARTITIONS, PARTITION_LOAD_MS
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from kcoord.setting_table import INT_MAX, LEASE

LOCK_MS = 1_000
"""How long to wait for another node that changes who owns what; after that the next renewal tries again."""


class NodeConnection:
    """Opens when it is needed, and again after it was lost."""

    def __init__(self, conninfo: str, config: Config, origins: Origins | None = None) -> None:
        """`origins`: which servers not to use; None: each will do."""
        self._limit_ms = config.int("database.transaction.timeout.ms")
        self._conninfo = conninfo
        self._lease_ms = config.int(LEASE)
        self._arguments = sessions.arguments(conninfo, "kcoord-node")
        self._origins = origins or Origins(conninfo)
        self._timeline: int | None = None
        self._connection: psycopg.AsyncConnection[TupleRow] | None = None

    @asynccontextmanager
    async def transaction(self, *, long: bool = False) -> AsyncIterator[Connection]:
        """A transaction, committed at the end of the block. Raises psycopg.Error.

        Postgres ends it after `database.transaction.timeout.ms`: a node that freezes in it holds locks for no longer.
        `long`: its statements may take longer, and Postgres ends it when the node has been silent for that time.
        """
        try:
            connection = await self._open()
            stepwise = long or connection.info.server_version < sessions.PIPELINED_FROM
            pipeline: AbstractAsyncContextManager[Any] = nullcontext() if stepwise else connection.pipeline()
            async with pipeline, connection.transaction():
                if long:
                    await sessions.lift_transaction_limit(connection)
                yield connection
        except BaseException:
            # Also when the caller gave up: a connection in the middle of an exchange is of no use.
            await self.close()
            raise

    async def _open(self) -> Connection:
        connection = self._connection
        if self._origins.is_past(self._timeline):
            await self.close()
            connection = None
        if connection is None or connection.closed:
            self._timeline = None
            connection = await psycopg.AsyncConnection.connect(self._conninfo, **self._arguments)
            self._connection = connection
            await sessions.limit(
                connection,
                statement_ms=self._lease_ms,
                idle_transaction_ms=self._limit_ms,
                lock_ms=LOCK_MS,
                transaction_ms=self._limit_ms,
            )
            self._timeline = await self._origins.check(connection)
        return connection

    async def close(self) -> None:
        """Close the connection, if it is open."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


log = structlog.get_logger(__name__)


class Loader:
    """Loads the partitions that this node was given."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.get(NodeStore)
        self._hosting = runtime.get(Hosting)
        self._max_size = runtime.config.int("group.max.size")

    @property
    def has_work(self) -> bool:
        """Something loads, or its loading failed."""
        return any(shard.state is not ShardState.ACTIVE for shard in self._hosting.shards.values())

    async def load(self, connection: Connection, incarnation: int, view: View) -> None:
        """Load all partitions that are not active, in one transaction. Raises psycopg.Error.

        What failed before is loaded under a newer epoch.
        """
        shards = self._hosting.shards
        failed = [partition for partition, shard in shards.items() if shard.state is ShardState.FAILED]
        if failed:
            for partition, epoch in await self._store.retry(connection, incarnation, failed, view.now):
                shards.elect(partition, epoch)
        epochs = {partition: shard.epoch for partition, shard in shards.items() if shard.state is ShardState.LOADING}
        if not epochs:
            return
        try:
            if self._max_size < INT_MAX:
                await self._store.wake_oversized(connection, epochs, self._max_size)
            active = await self._store.activate(connection, incarnation, epochs)
        except Exception:
            for partition, epoch in epochs.items():
                shards.load_failed(partition, epoch)
            raise
        self._loaded(epochs, active, view)

    def _loaded(self, epochs: dict[int, int], active: list[tuple[int, int, int]], view: View) -> None:
        shards = self._hosting.shards
        for partition, epoch, load_ms in active:
            shards.loaded(partition, epoch)
            PARTITION_LOAD_MS.observe(load_ms)
        for partition, epoch in epochs.items():
            # It may have been active under this epoch already, when only this process forgot.
            found = view.by_partition[partition]
            if found.epoch == epoch and found.state == ShardState.ACTIVE.value:
                shards.loaded(partition, epoch)
        if active:
            log.info("partitions_loaded", partitions=len(active), slowest_ms=max(row[2] for row in active))


LEAST_PAUSE_SECONDS = 0.05
"""Between two renewals, however often other nodes report changes."""

LEAVING_SECONDS = 3.0
"""How long a node that stops may take to store its sessions, and then to hand over. After that its lease runs out."""


class NodeAgent:
    """The node of this process. `start` it once; it leaves when the process begins to stop."""

    def __init__(self, runtime: Runtime) -> None:
        config = runtime.config
        self._partitions = config.int("offsets.topic.num.partitions")
        self._lease_seconds = config.int(LEASE) / 1000
        self._renewal_seconds = config.int(RENEWAL) / 1000
        self._identity = Identity(node_name(config), node_url(config), __version__, *kafka_address(config))
        self._store = runtime.get(NodeStore)
        self._groups = runtime.get(GroupService)
        self._copies = runtime.get(GroupStore)
        self._timers = runtime.get(TimerService)
        self._directory = runtime.get(NodeDirectory)
        self._hosting = runtime.get(Hosting)
        self._loader = runtime.get(Loader)
        self._connection = NodeConnection(runtime.db.conninfo, config, runtime.db.origins)
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._timing: asyncio.Task[None] | None = None
        self._problem: str | None = None
        self.lease = runtime.get(Lease)
        self._flusher = runtime.get(Flusher)
        runtime.notifications.on(NODES, lambda _: self._changed.set())
        runtime.on_drain(self.leave)
        runtime.on_stop(self._connection.close)

    @property
    def node_id(self) -> str:
        """The name of this node."""
        return self._identity.node_id

    @property
    def problem(self) -> str | None:
        """Why this process is not a node; None: it is one, or has just lost its lease."""
        return self._problem

    @property
    def holds_lease(self) -> bool:
        """The lease surely has not run out."""
        return self.lease.runs

    @property
    def incarnation(self) -> int | None:
        """None: this process is not a node at the moment."""
        return self.lease.incarnation

    def start(self) -> None:
        """Register, and stay a node. Returns at once."""
        self._hosting.is_node = True
        self._task = asyncio.create_task(self._run(), name="kcoord-node")

    async def leave(self) -> None:
        """Stop being a node: successors are named and told. Idempotent."""
        if self._task is None:
            return
        is_stored = await self._stored()  # on a busy machine this takes a while: the lease is still renewed
        for task in (self._task, self._timing):
            if task is not None:
                task.cancel()
        await asyncio.gather(self._task, *filter(None, (self._timing,)), return_exceptions=True)
        self._task = self._timing = None
        incarnation, self.lease.incarnation = self.lease.incarnation, None
        self._resign_all()
        if incarnation is None:
            return
        if not is_stored:
            log.warning("node_left_without_hand_over", node=self._identity.node_id, reason="sessions are not stored")
            return  # the lease runs out, and sessions start over
        try:
            async with asyncio.timeout(LEAVING_SECONDS), self._connection.transaction() as connection:
                await membership.leave(self._store, connection, incarnation)
        except (psycopg.Error, TimeoutError) as error:
            log.warning("node_left_without_hand_over", node=self._identity.node_id, reason=_reason(error))
        else:
            log.info("node_left", node=self._identity.node_id, incarnation=incarnation)

    async def _stored(self) -> bool:
        """Whether the sessions that this process renewed in memory are stored. None is renewed from now on."""
        try:
            async with asyncio.timeout(LEAVING_SECONDS):
                return await self._flusher.close()
        except TimeoutError:
            return False

    async def _run(self) -> None:
        while True:
            began = time.monotonic()
            self._changed.clear()
            try:
                async with asyncio.timeout(self._lease_seconds):
                    await self.beat()
                self._start_timers()
            except NodeRefused as refusal:
                self._complain(str(refusal))
            except (psycopg.Error, TimeoutError, ProtocolError) as error:
                self._complain(f"the database is not available: {_reason(error)}")
            except Exception:
                log.exception("node_failed", node=self._identity.node_id)
            if not self.holds_lease:
                self._resign_all()  # nobody may believe that this node still owns anything
            await asyncio.sleep(LEAST_PAUSE_SECONDS)
            # Not all at once: nodes that started together would renew together.
            left = self._renewal_seconds * random.uniform(0.9, 1) - (time.monotonic() - began)  # noqa: S311 - no secret
            with contextlib.suppress(TimeoutError):
                # Not wait_for: before Python 3.12 it takes a change for the answer to a cancellation.
                async with asyncio.timeout(max(left, 0)):
                    await self._changed.wait()

    async def beat(self) -> None:
        """Renew the lease, or register; look around, and do what follows. The task of this node calls it.

        Raises NodeRefused, psycopg.Error.
        """
        sent = time.monotonic()
        view = await self._renewed()
        if view is None:
            sent = time.monotonic()
            view = await self._register()
        self.lease.until = sent + self._lease_seconds
        assert self.incarnation is not None
        if view.needs_care:
            async with self._connection.transaction() as connection:
                view = await membership.care(self._store, connection)
        if membership.surplus(view, self.incarnation) and await self._timers_rest():
            async with self._connection.transaction() as connection:
                view = await membership.balance(self._store, connection, self.incarnation)
        await self._adopt(view)

    async def _renewed(self) -> View | None:
        """Nodes and partitions after the lease was renewed; None: this process has to register."""
        if self.incarnation is None:
            return None
        async with self._connection.transaction() as connection:
            view = await membership.renew(self._store, connection, self.incarnation)
        if view is None:
            log.warning("lease_lost", node=self._identity.node_id, incarnation=self.incarnation)
            LEASES_LOST.inc()
            self.lease.incarnation = None
            self._resign_all()
            self._copies.forget_all()
        return view

    async def _register(self) -> View:
        async with self._connection.transaction() as connection:
            registered = await membership.register(self._store, connection, self._identity, self._partitions)
        self.lease.incarnation = registered.incarnation
        self._problem = None
        log.info(
            "node_registered", node=self._identity.node_id, incarnation=self.incarnation, url=self._identity.url or None
        )
        return registered.view

    async def _adopt(self, view: View) -> None:
        """Host what this node owns, and nothing else."""
        assert self.incarnation is not None
        self._problem = None
        self._directory.adopt(view)
        shards = self._hosting.shards
        for found in view.partitions:
            known = shards.get(found.partition)
            # Also if it went to another node and came back between two looks: it has to be loaded again.
            if known is not None and known.epoch < found.epoch and shards.resign(found.partition, found.epoch):
                self._groups.refuse_waiters(found.partition)
            if found.owner == self.incarnation:
                shards.elect(found.partition, found.epoch)
        if self._loader.has_work:
            # Long: a look for groups that are too large reads all members.
            async with self._connection.transaction(long=True) as connection:
                await self._loader.load(connection, self.incarnation, view)
        NODE_PARTITIONS.set(len(shards))

    def _resign_all(self) -> None:
        for partition in self._hosting.shards:
            self._hosting.shards.resign(partition, None)
            self._groups.refuse_waiters(partition)
        NODE_PARTITIONS.set(0)

    def _start_timers(self) -> None:
        if self._timing is None or self._timing.done():
            self._timing = asyncio.create_task(self.run_timers(), name="kcoord-node-timers")

    async def _timers_rest(self) -> bool:
        """Whether no timers run: a hand-over ends the epochs that they act under. While they run, it is put off."""
        if self._timing is not None:
            await asyncio.wait({self._timing}, timeout=self._renewal_seconds / 2)
        return self._timing is None or self._timing.done()

    async def run_timers(self) -> None:
        """Expire what is overdue in the groups of own partitions, under the epochs known now."""
        if self.incarnation is None:
            return
        epochs = {partition: shard.epoch for partition, shard in self._hosting.shards.items()}
        try:
            await self._timers.tick_owned_groups(self.incarnation, epochs)
        except ProtocolError as error:
            log.info("node_timers_skipped", reason=error.detail)
        except Exception:
            log.exception("node_timers_failed")

    def _complain(self, problem: str) -> None:
        """One line for a problem, however often it is met."""
        if problem != self._problem:
            log.warning("not_a_node", node=self._identity.node_id, problem=problem)
        self._problem = problem


def _reason(error: Exception) -> str:
    return str(error).strip() or type(error).__name__
