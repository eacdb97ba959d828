"""One coordinator behind the HTTP application, under virtual time."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prometheus_client.metrics import MetricWrapperBase
from psycopg import sql

from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.types import ClassicGroup, GroupState
from groups.engine.availability import CoordinatorAvailability
from groups.engine.service import GroupService
from groups.engine.timers import TimerService
from groups.store.rows import Change
from groups.store.store import GroupStore
from groups.topics import TopicService
from kcoord.access.tokens import Rule, create_token
from kcoord.database import counters
from kcoord.database.clock import VirtualClock
from kcoord.database.counters import Counted
from kcoord.database.pool import Connection
from kcoord.metrics import OFFSETS_COMMITTED, OFFSETS_DELETED, PARKED
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.setting_table import SESSION_TIMEOUT
from tests.conformance import (
    core_terms,
    denials,
    fixtures,
    http_admin,
    http_membership,
    http_offset_delete,
    http_offsets,
    http_retention,
    leadership,
)
from tests.conformance.cases import Case, Suite
from tests.conformance.core_driver import MOST_TICKS
from tests.conformance.driver import BrokenPromise, Call, NoDriver, Response
from tests.conformance.fixtures_consumer import consumer_group
from tests.conformance.http_consumer_terms import TopicNames, by_group, describe, heartbeat
from tests.conformance.http_offsets import PROBE_TOPIC
from tests.conformance.http_retention import RetentionChecks
from tests.conformance.http_terms import Exchange, HttpAnswer, HttpRequest
from tests.conformance.http_transactions import Transactions
from tests.conformance.leadership import Leadership
from tests.groups.lane.support import register
from tests.support.api import client_of

EXCHANGES: Mapping[str, Exchange] = {
    **http_membership.EXCHANGES,
    **http_offsets.EXCHANGES,
    **http_offset_delete.EXCHANGES,
    **http_admin.EXCHANGES,
    **http_retention.EXCHANGES,
}

REST_SECONDS = 30.0
"""A service that is not at rest after this long is stuck: the case fails."""

LOOK_SECONDS = 0.001

NEXT_WAKE_AT = """
select min(g.wake_at) from groups_group g left join groups_coordinatorpartition p on p.partition = g.partition
where p.partition is null or p.state = 'ACTIVE'
"""
OFFSETS_TABLE, DROPPED_TABLE = "offsets_committedoffset", "offsets_committedoffset_dropped"
COUNT_OFFSETS = "select count(*) from offsets_committedoffset"
COUNT_PENDING = """
select count(*) from offsets_pendingoffset o join groups_group g on g.id = o.group_id where g.group_id = %(group_id)s
"""


class HttpDriver:
    """Requests are tasks. The service is at rest when every open request is parked and no transaction runs."""

    def __init__(self, case: Case, runtime: Runtime, clock: VirtualClock, secret: str) -> None:
        self._case = case
        self._runtime = runtime
        self._clock = clock
        self._client = client_of(None)
        self._authorize(secret)
        self._topics = TopicNames()
        self._exchanges: Mapping[str, Exchange] = {
            **EXCHANGES,
            **Transactions(case).exchanges,
            "ConsumerGroupHeartbeat": heartbeat(self._topics),
            "ConsumerGroupDescribe": describe(self._topics, by_group),
        }
        self._open: set[asyncio.Task[None]] = set()
        self._errors: list[BaseException] = []
        self._denials: list[denials.Denial] = []
        self._committed_before = _total(OFFSETS_COMMITTED)
        self._deleted_before = _total(OFFSETS_DELETED)
        self._expired_before = 0
        # In the consumer convention there is no retention: groups stay.
        self._checks = RetentionChecks(runtime, clock) if case.suite is not Suite.CONSUMER else None
        self._dropped = False
        self._leadership: Leadership | None = None

    async def start(self) -> None:
        """Start the runtime, and make the topics that the case counts on."""
        await self._runtime.start()
        runtimes.use(self._runtime)
        await self._runtime.notifications.wait_listening()
        self._expired_before = await self._expired()
        if leadership.applies_to(self._case):
            self._leadership = Leadership(self._runtime)
            await self._leadership.start()
        else:
            await self._answer_from_memory()
        topics = dict(self._case.topics)
        if self._case.suite is Suite.CLASSIC and "OffsetCommit" in self._case.calls:
            topics[PROBE_TOPIC] = 1
        for name, partitions in topics.items():
            await self.control("create_topic", {"name": name, "partitions": partitions})

    async def _answer_from_memory(self) -> None:
        """As a node does; its sessions are stored before anything is looked at that is due."""
        process = register(self._runtime, self._runtime.db.conninfo, "conformance")
        await process.open()

    async def call(self, name: str, args: Mapping[str, Any]) -> Call:
        """Send a request and wait until it is answered or parked; fixtures go to the service."""
        call = Call()
        exchange = self._exchanges.get(name)
        if exchange is None:
            call.response = await self._arrange(name, args)
            return call
        try:
            requests = exchange.requests(args)
        except KeyError as error:
            raise NoDriver(f"no driver for call {name} without {error} through http") from error
        task = asyncio.create_task(self._exchange(exchange, requests, args, call))
        self._open.add(task)
        task.add_done_callback(self._ended)
        await self._rest()
        return call

    async def advance(self, ms: int) -> None:
        """Move the clock; the ticks that Celery would run come at the instants at which something is due."""
        await self.look()
        target = self._clock.now_ms() + ms
        await self._fire_until(target)
        self._clock.move_to(target)
        await self._check_retention()

    async def look(self) -> None:
        """Run the timers as Celery's tick does, and wait for what they cause."""
        await self._runtime.get(TimerService).tick_due_groups()
        await self._rest()

    async def inspect(self, group_id: str) -> Response:
        """The group as its rows say: a store without memory reads them."""
        await self.look()
        group = (await GroupStore(self._runtime).read(group_id)).group
        async with self._runtime.db.connection() as connection:
            pending = await self._runtime.db.value(connection, COUNT_PENDING, {"group_id": group_id})
        if isinstance(group, ConsumerGroup):
            state, members = group.state.value, len(group.members)
            shown = {"exists": True, "type": "consumer", "state": state, "member_count": members}
            return {**shown, "group_epoch": group.group_epoch, "pending_offsets": pending}
        return {**core_terms.inspected(group), "pending_offsets": pending}

    async def metrics(self) -> Response:
        """What operators are told, since the case began; NumOffsets from the table."""
        async with self._runtime.db.connection() as connection:
            stored = await self._runtime.db.value(connection, COUNT_OFFSETS)
        return {
            "NumOffsets": stored,
            "offset-commit-count": _total(OFFSETS_COMMITTED) - self._committed_before,
            "offset-deletion-count": _total(OFFSETS_DELETED) - self._deleted_before,
            "offset-expiration-count": await self._expired() - self._expired_before,
        }

    async def _expired(self) -> int:
        return (await counters.read(self._runtime.db))[Counted.OFFSETS_EXPIRED]

    async def control(self, kind: str, args: Any) -> None:
        """Topics are made through the API. Raises NoDriver for every other step."""
        if kind != "create_topic":
            raise NoDriver(f"no driver for step {kind} through http")
        body = {"name": args["name"], "partitions": args["partitions"], "labels": {}}
        answer = await self._send(HttpRequest("POST", "/v1/topics", body))
        if answer.error != "NONE":
            raise BrokenPromise(f"topic {args['name']} could not be made: {answer.body!r}")
        self._topics.remember(answer.body["topic_id"], args["name"])

    async def close(self) -> None:
        """Drop open requests, as a client that goes away, and stop the runtime.

        Raises BrokenPromise when requests are counted as parked that nobody has sent.
        """
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        if self._dropped:
            await self._rename(DROPPED_TABLE, OFFSETS_TABLE)  # the next case has the same database
        await self._client.aclose()
        runtimes.use(None)
        await self._runtime.stop()
        if _parked():
            raise BrokenPromise(f"{_parked():g} requests count as parked after all of them ended")

    async def _arrange(self, name: str, args: Mapping[str, Any]) -> Response:
        """Fixtures and controls, which have no request."""
        service = self._runtime.get(GroupService)
        match name:
            case "GivenClassicGroup":
                await service.put(fixtures.classic_group(args, self._clock.now_ms()))
            case "GivenConsumerGroup":
                topics = await self._runtime.get(TopicService).view()
                session_timeout_ms = self._runtime.config.int(SESSION_TIMEOUT)
                await service.put(consumer_group(args, session_timeout_ms, topics, self._clock.now_ms()))
            case "ForceState" if args["state"] == GroupState.DEAD.value:
                await service.force_state(args["group_id"], GroupState.DEAD)
            case "ForceState":
                await self._force_state(args["group_id"], GroupState(args["state"]))
            case "Deny":
                self._denials.append(denials.denial(args))
                rules = denials.rules_without(self._denials, self._case)
                self._authorize(await asyncio.to_thread(make_token, rules))
            case "Coordinator" if args["op"] in ("stop", "start"):
                service.active = args["op"] == "start"
            case "Coordinator" if self._leadership is not None:
                await self._leadership.coordinator(args)
                await self.look()
            case "Elect" if self._leadership is not None:
                hold_load = args.get("hold_load", False)
                await self._leadership.elect(args["partition"], args["epoch"], hold_load=hold_load)
                await self.look()
            case "CompleteLoad" if self._leadership is not None:
                await self._leadership.complete_load(args["partition"], args["error"])
                await self.look()
            case "Resign" if self._leadership is not None:
                await self._leadership.resign(args["partition"], args["epoch"])
                await self._rest()
            case "RunExpiration" if self._checks is not None:
                return await self._checks.run()
            case "DropOffsetsTopic":
                await self._rename(OFFSETS_TABLE, DROPPED_TABLE)
                vars(self._runtime.get(CoordinatorAvailability))["_seen_until"] = 0.0  # it takes ten real seconds
                self._dropped = True
            case _:
                raise NoDriver(f"no driver for call {name} through http")
        return {}

    async def _rename(self, table: str, name: str) -> None:
        statement = sql.SQL("alter table {} rename to {}").format(sql.Identifier(table), sql.Identifier(name))
        async with self._runtime.db.connection() as connection:
            await connection.execute(statement)

    async def _force_state(self, group_id: str, state: GroupState) -> None:
        """Write the group in another state over its row, so that its offsets stay."""
        store = self._runtime.get(GroupStore)

        async def work(connection: Connection) -> None:
            before, found = (await store.lock(connection, [group_id]))[group_id]
            assert isinstance(before.group, ClassicGroup)
            after = fixtures.forced(before.group, state, found.now)
            await store.persist(connection, [Change(before, after, found.now)])

        await self._runtime.db.transaction(work)
        store.forget(group_id)

    def _authorize(self, secret: str) -> None:
        self._client.headers["Authorization"] = f"Bearer {secret}"

    async def _exchange(
        self, exchange: Exchange, requests: Sequence[HttpRequest], args: Mapping[str, Any], call: Call
    ) -> None:
        answers = [await self._send(request) for request in requests]
        call.response = exchange.read(answers, args)

    async def _send(self, request: HttpRequest) -> HttpAnswer:
        response = await self._client.request(request.method, request.path, json=request.body)
        if not response.content:
            return HttpAnswer(response.status_code, {})
        try:
            body = response.json()
        except ValueError:
            raise BrokenPromise(f"{request.method} {request.path}: {response.status_code} without JSON") from None
        return HttpAnswer(response.status_code, body)

    async def _check_retention(self) -> None:
        if self._checks is not None and self._runtime.get(GroupService).active:
            await self._checks.look()
            await self._rest()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._open.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._errors.append(error)

    async def _rest(self) -> None:
        """Return when every open request is parked and nothing runs. Raises what a request raised."""
        try:
            async with asyncio.timeout(REST_SECONDS):
                while not self._resting():
                    if self._open:
                        await asyncio.wait(self._open, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                    else:
                        await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            raise BrokenPromise(
                f"not at rest after {REST_SECONDS:g} s: {len(self._open)} requests are open, {_parked():g} are parked"
            ) from None
        if self._errors:
            raise self._errors.pop(0)

    def _resting(self) -> bool:
        return not self._runtime.get(GroupService).busy and len(self._open) == _parked()

    async def _fire_until(self, target: int) -> None:
        """Tick at each instant at which something is due, the earliest first."""
        for _ in range(MOST_TICKS):
            async with self._runtime.db.connection() as connection:
                due = [await self._runtime.db.value(connection, NEXT_WAKE_AT)]
            due += [self._checks.next_at] if self._checks is not None else []
            at = min((at for at in due if at is not None), default=target + 1)
            if at > target:
                return
            self._clock.move_to(max(at, self._clock.now_ms()))
            await self.look()
            await self._check_retention()
        raise BrokenPromise(f"{MOST_TICKS} timers fired and another is due: a deadline does not move")


def _parked() -> float:
    """How many requests wait."""
    return _total(PARKED)


def _total(metric: MetricWrapperBase) -> float:
    """The value of a metric of this process, over all its labels, as operators are told it."""
    return sum(sample.value for family in metric.collect() for sample in family.samples)


def make_token(rules: Iterable[Rule]) -> str:
    """A new token with these rules; its secret. Called on a thread without an event loop."""
    from django.db import connections

    try:
        return create_token(f"conformance-{uuid.uuid4()}", rules).secret
    finally:
        connections.close_all()
