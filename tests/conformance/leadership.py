"""Leadership of coordinator partitions, for cases that elect, load and resign (classic.md 0.1, offsets.md 0).

One node, whose lease never runs out, owns every partition from the start, under epoch 1. Events change what the node
believes (`Hosting`) and the rows of partitions, as its own agent would; loading is the service's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groups.configs import DecisionContexts, group_config
from groups.core.shards import ShardState
from groups.engine.agent import Loader
from groups.engine.service import GroupService
from groups.nodes.hosting import Hosting
from groups.nodes.store import NodeStore
from kcoord.config import Config
from kcoord.database.pool import Connection
from kcoord.process.runtime import Runtime
from tests.conformance.cases import Case

EVENTS = frozenset({"Elect", "Resign", "CompleteLoad"})
LOADING = frozenset({"unload", "begin_load", "finish_load"})
FIRST_EPOCH = 1
FOR_EVER = 2**53

ADD_NODE = """
insert into groups_coordinatornode (node_id, url, version, started_at, renewed_at, expires_at)
values ('node', 'http://testserver', '', 0, 0, %s) returning id
"""
ADD_PARTITIONS = """
insert into groups_coordinatorpartition (partition, owner_id, epoch, gap, state, state_since)
select number, %s, %s, 0, 'ACTIVE', 0 from generate_series(0, %s - 1) as s (number)
"""
ELECT = """
update groups_coordinatorpartition
set owner_id = %s, epoch = %s, gap = gap + %s, state = %s
where partition = %s
"""
RESIGN = "update groups_coordinatorpartition set owner_id = null, state = 'CLOSED' where partition = %s"


def applies_to(case: Case) -> bool:
    """Whether a case is about leadership; the others have no nodes."""
    return bool(case.calls & EVENTS) or any(step.args.get("op") in LOADING for step in case.steps)


def settings_of(case: Case) -> Mapping[str, Any]:
    """Further defaults of a case: one partition, whose state requests meet if the case is about it."""
    routing = {"coordinator.routing": "owner"} if applies_to(case) else {}
    return {"offsets.topic.num.partitions": 1, **routing}


class Leadership:
    """The only node there is."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._hosting = runtime.get(Hosting)
        self._node = 0

    async def start(self) -> None:
        """Own everything, loaded."""
        count = self._runtime.config.int("offsets.topic.num.partitions")

        async def work(connection: Connection) -> None:
            row = await (await connection.execute(ADD_NODE, [FOR_EVER])).fetchone()
            assert row is not None
            self._node = row[0]
            await connection.execute(ADD_PARTITIONS, [self._node, FIRST_EPOCH, count])

        await self._runtime.db.transaction(work)
        self._hosting.is_node = True
        for partition in range(count):
            self._hosting.shards.elect(partition, FIRST_EPOCH)
            self._hosting.shards.loaded(partition, FIRST_EPOCH)

    async def coordinator(self, args: Mapping[str, Any]) -> None:
        """`Coordinator` of the classic convention, whose cases have one partition."""
        match args["op"]:
            case "unload":
                await self.resign(0, None)
            case "begin_load":
                if "config" in args:
                    self._configure(args["config"])
                await self.elect(0, await self._epoch() + 1, hold_load=True)
            case "finish_load":
                await self.complete_load(0, None)

    async def elect(self, partition: int, epoch: int, *, hold_load: bool) -> None:
        """`Elect`: the node is the owner from this epoch on, if it is newer than the one that it knows."""
        shards = self._hosting.shards
        known = shards.get(partition)
        loads = known is None or known.state is ShardState.FAILED
        shards.elect(partition, epoch)
        if known is shards[partition]:
            return
        # Sessions went on counting only where the node kept the partition.
        gaps, state = (1, "LOADING") if loads else (0, shards[partition].state.value)
        await self._execute(ELECT, [self._node, epoch, gaps, state, partition])
        if loads and not hold_load:
            await self.complete_load(partition, None)

    async def complete_load(self, partition: int, error: str | None) -> None:
        """`CompleteLoad`: the loading that was held ends."""
        shards = self._hosting.shards
        if error is not None:
            shards.load_failed(partition, shards[partition].epoch)
            return
        store, loader = self._runtime.get(NodeStore), self._runtime.get(Loader)

        async def work(connection: Connection) -> None:
            await loader.load(connection, self._node, await store.view(connection, await store.now(connection)))

        known = vars(shards)["_contexts"]
        vars(shards)["_contexts"] = {partition: known[partition]}  # a node loads all that it sees, also what is held
        await self._runtime.db.transaction(work)
        vars(shards)["_contexts"] = {**known, **shards}
        assert shards[partition].state is ShardState.ACTIVE

    async def resign(self, partition: int, epoch: int | None) -> None:
        """`Resign`: another node is the owner from this epoch on, if it is newer."""
        if self._hosting.shards.resign(partition, epoch):
            await self._execute(RESIGN, [partition])
            self._runtime.get(GroupService).refuse_waiters(partition)

    def _configure(self, config: Mapping[str, Any]) -> None:
        """The settings of the node that takes over."""
        changed = Config({name: self._runtime.config._values[name] for name in config} | dict(config))
        self._runtime.get(DecisionContexts).server = group_config(changed)
        vars(self._runtime.get(Loader))["_max_size"] = changed.int("group.max.size")

    async def _epoch(self) -> int:
        async with self._runtime.db.connection() as connection:
            found = await self._runtime.db.value(connection, "select max(epoch) from groups_coordinatorpartition")
            return int(found)

    async def _execute(self, statement: str, parameters: list[Any]) -> None:
        async with self._runtime.db.connection() as connection:
            await connection.execute(statement.encode(), parameters)
