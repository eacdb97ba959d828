"""`--through core`: the pure core alone, with groups in a dictionary and parked requests in a list.

What sits above the core is played here: a stopped service, describing a group, fixtures.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from groups.core import machine
from groups.core.machine import check_request
from groups.core.model.commands import Command, CommitOffsets, DeleteGroup, ParkKind, Tick
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.group import Group, wake_at
from groups.core.model.replies import CommitReply, Parked, Reply
from groups.core.model.turn import Effect, WakeMembers
from groups.core.model.types import ClassicGroup, Env, GroupConfig, GroupState, Millis, TopicView
from groups.core.shards import Shards
from kcoord.protocol.errors import Error, ProtocolError
from tests.conformance import consumer_terms, core_admin, core_terms, fixtures
from tests.conformance.cases import Case, Suite
from tests.conformance.core_offsets import CoreOffsets
from tests.conformance.core_retention import CoreRetention
from tests.conformance.driver import BrokenPromise, Call, NoDriver, Response
from tests.conformance.fixtures_consumer import consumer_group

START_MS: Millis = 1_700_000_000_000
MOST_TICKS = 10_000
"""More timers than any case has: a bound for a core whose deadlines never move."""

AT_DEADLINE = "timers at their deadlines"
AFTER_JUMP = "timers after the clock jumped"
ON_DEMAND = "timers when the next request comes"


class CoreBackend:
    """Makes core drivers; nothing is shared between cases."""

    name = "core"
    modes: tuple[str, ...] = (AT_DEADLINE, AFTER_JUMP, ON_DEMAND)

    async def __aenter__(self) -> CoreBackend:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None

    async def open(self, case: Case, mode: str) -> CoreDriver:
        """A coordinator without groups and with the settings of `case`."""
        if case.suite is Suite.CONSUMER:
            from tests.conformance.consumer_core import ConsumerCoreDriver  # it builds on this module

            return ConsumerCoreDriver(case, mode)
        return CoreDriver(case, mode)


def group_config(config: Mapping[str, Any]) -> GroupConfig:
    """The core's settings under their Kafka names; settings the core does not read are left alone."""
    names = {
        "group.min.session.timeout.ms": "min_session_timeout_ms",
        "group.max.session.timeout.ms": "max_session_timeout_ms",
        "group.initial.rebalance.delay.ms": "initial_rebalance_delay_ms",
        "group.max.size": "max_size",
        "group.consumer.session.timeout.ms": "consumer_session_timeout_ms",
    }
    return GroupConfig(**{names[name]: value for name, value in config.items() if name in names})


class CoreDriver:
    """Groups by id, the time, and who waits for what."""

    def __init__(self, case: Case, mode: str) -> None:
        self._settings = case.config
        self._config = group_config(case.config)
        self._offsets = CoreOffsets(case)
        self._retention = CoreRetention(case, self._offsets, START_MS)
        self._mode = mode
        self._now = START_MS
        self._groups: dict[str, Group] = {}
        self._waiting: dict[tuple[str, ParkKind, str], list[Call]] = {}
        self._counter = itertools.count(1)
        self._running = True
        # One partition, hosted here from the start; its gap grows when it is loaded after it was not.
        self._shards = Shards()
        self._shards.elect(0, 1)
        self._shards.loaded(0, 1)
        self._gap = 0

    async def call(self, name: str, args: Mapping[str, Any]) -> Call:
        """Decide one command, or answer for the layers above the core."""
        if name == "Coordinator":
            return self._coordinator(args)
        if not self._running:
            return Call(core_terms.refused(name, args, "COORDINATOR_NOT_AVAILABLE"))
        error = self._shards.answer(0)
        if error is not Error.NONE:
            return Call(self._elsewhere(name, args, error))
        answered = self._above_the_core(name, args)
        if answered is not None:
            return Call(answered)
        call, command = Call(), self._command(name, args)
        self._decide(command.group_id, command, call)
        return call

    def _elsewhere(self, name: str, args: Mapping[str, Any], error: Error) -> Response:
        """What a call is answered that meets `error` instead of its group."""
        try:
            command = self._command(name, args)
            check_request(command, self._config, self._env(command.group_id).assignors)
        except ProtocolError as refusal:
            return core_terms.refused(name, args, refusal.error.name)
        except NoDriver:  # no command of the core
            pass
        if error is Error.COORDINATOR_LOAD_IN_PROGRESS and name == "Heartbeat":
            return {"error": "NONE"}
        return core_terms.refused(name, {**args, "member_id": ""}, error.name)

    def _command(self, name: str, args: Mapping[str, Any]) -> Command:
        """The command of a call. Raises NoDriver when the core has none."""
        if name == "ConsumerGroupHeartbeat":
            return consumer_terms.command(name, args, str)  # no topic exists here
        return core_terms.command(name, args)

    def _response(self, reply: Reply) -> Response:
        """A reply in the terms of the convention."""
        return core_terms.response(reply)

    def _env(self, group_id: str) -> Env:
        """The world as a decision about the group sees it."""
        active = self._shards.answer(0) is Error.NONE
        codec = consumer_terms.CODEC
        return Env(self._now, self._fresh_id, self._config, consumer_protocol=codec, may_expire=active, gap=self._gap)

    def _fresh_id(self, prefix: str) -> str:
        return f"{prefix}-{next(self._counter):08}"

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        """Do what a decision asked for beside its records. Nobody's heartbeat waits here, so nobody is woken."""
        assert all(isinstance(effect, WakeMembers) for effect in effects), effects

    def _classic(self, group_id: str) -> ClassicGroup | None:
        """The group, where it is a classic one."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def _above_the_core(self, name: str, args: Mapping[str, Any]) -> Response | None:
        match name:
            case "DescribeGroup":
                self._tick_overdue()
                return core_terms.described(self._classic(args["group_id"]))
            case "GivenClassicGroup":
                self._groups[args["group_id"]] = fixtures.classic_group(args, self._now)
                return {}
            case "ForceState" if args["state"] != GroupState.DEAD.value:
                group = self._classic(args["group_id"])
                assert group is not None
                self._groups[group.group_id] = fixtures.forced(group, GroupState(args["state"]), self._now)
                return {}
            case "Deny":
                self._offsets.deny(args)
                return {}
            case "RunExpiration":
                return self._expire()
            case "OffsetCommit" if "offsets" in args:
                return self._offsets.commit(args, self._may_commit, self._now)
            case "OffsetFetch" if "groups" in args:
                return self._offsets.fetch(args, self._groups.get)
            case "OffsetDelete":
                return self._offsets.delete(args, self._reply_of)
            case "DeleteGroups":
                return core_admin.delete_groups(args, self._reply_of, self._offsets.is_denied)
            case "DescribeGroups":
                self._tick_overdue()
                return core_admin.describe_groups(args, self._classic, self._offsets.is_denied)
            case "LeaveGroup" if "members" not in args:
                return core_admin.leave(args, self._reply_of)
            case "TxnOffsetCommit":
                return self._offsets.txn_commit(args, self._may_commit, self._now)
            case "EndTxn":
                return self._offsets.end_txn(args)
            case "GivenConsumerGroup":
                timeout_ms = self._config.consumer_session_timeout_ms
                self._groups[args["group_id"]] = consumer_group(args, timeout_ms, TopicView(), self._now)
                return {}
            case _:
                return None

    def _expire(self) -> Response:
        """A pass of retention. Groups are as of now in it."""
        self._tick_overdue()

        def delete(group_id: str) -> None:
            self._decide(group_id, DeleteGroup(group_id), Call())

        return self._retention.run(self._groups, delete, self._now)

    def _check_retention(self) -> None:
        if self._running and self._retention.is_due(self._now):
            self._expire()

    def _reply_of(self, command: Command) -> Reply | Parked:
        return self._decide(command.group_id, command, Call())

    def _may_commit(self, command: CommitOffsets) -> Error:
        reply = self._decide(command.group_id, command, Call())
        assert isinstance(reply, CommitReply)
        return reply.error

    async def advance(self, ms: int) -> None:
        """Move the clock, and fire timers as the mode says."""
        self._tick_overdue()
        target = self._now + ms
        if self._mode == AT_DEADLINE:
            self._fire_until(target)
        self._now = target
        if self._mode == AFTER_JUMP:
            self._tick_overdue()
        self._check_retention()

    async def inspect(self, group_id: str) -> Response:
        """The group, as of now."""
        self._tick_overdue()
        group, pending = self._groups.get(group_id), len(self._offsets.transactions.of(group_id))
        if isinstance(group, ConsumerGroup):
            shown = {"state": group.state.value, "member_count": len(group.members), "group_epoch": group.group_epoch}
            return {"exists": True, "type": "consumer", **shown, "pending_offsets": pending}
        return {**core_terms.inspected(self._classic(group_id)), "pending_offsets": pending}

    async def look(self) -> None:
        """Fire what is overdue, which only the on-demand mode leaves."""
        self._tick_overdue()

    async def metrics(self) -> Response:
        """What commits have stored."""
        return self._offsets.metrics()

    async def control(self, kind: str, args: Any) -> None:
        """The core has no topics and no settings of a group."""
        raise NoDriver(f"no driver for step {kind} through core")

    async def close(self) -> None:
        """Nothing to let go of."""

    def _coordinator(self, args: Mapping[str, Any]) -> Call:
        match args["op"]:
            case "stop":
                self._running = False
            case "unload":
                self._unload()
            case "begin_load":
                self._config = group_config(args.get("config", self._settings))
                self._gap += 1
                self._shards.elect(0, self._gap + 1)
            case "finish_load":
                self._shards.loaded(0, self._gap + 1)
                for group_id in list(self._groups):
                    self._decide(group_id, Tick(group_id), Call())
            case op:
                raise NoDriver(f"no driver for call Coordinator {op} through core")
        return Call({})

    def _unload(self) -> None:
        """Requests that wait are answered; the groups stay as they are."""
        self._shards.resign(0, None)
        for (_, kind, member_id), calls in self._waiting.items():
            name = "JoinGroup" if kind is ParkKind.JOIN else "SyncGroup"
            for call in calls:
                call.response = core_terms.refused(name, {"member_id": member_id}, Error.NOT_COORDINATOR.name)
        self._waiting.clear()

    def _fire_until(self, target: Millis) -> None:
        """Fire every timer that is due by `target`, each at its own deadline, the earliest first."""
        if self._shards.answer(0) is not Error.NONE:
            return
        for _ in range(MOST_TICKS):
            due = [(at, group_id) for group_id, group in self._groups.items() if (at := wake_at(group)) is not None]
            at, group_id = min(due, default=(target + 1, ""))
            check_at = self._retention.next_at
            if check_at is not None and check_at <= target and check_at < at:
                self._now = max(self._now, check_at)
                self._check_retention()
                continue
            if at > target:
                return
            self._now = max(self._now, at)
            self._decide(group_id, Tick(group_id), Call())
        raise BrokenPromise(f"{MOST_TICKS} timers fired and another is due: a deadline does not move")

    def _tick_overdue(self) -> None:
        """Tick the groups that are overdue now. One tick must be enough: no deadline lies in the past after it."""
        if self._shards.answer(0) is not Error.NONE:
            return  # nothing expires
        for group_id, group in list(self._groups.items()):
            at = wake_at(group)
            if at is not None and at <= self._now:
                self._decide(group_id, Tick(group_id), Call())

    def _decide(self, group_id: str, command: Command, caller: Call) -> Reply | Parked:
        decision = machine.decide(self._groups.get(group_id), command, self._env(group_id))
        if decision.group is None:
            self._groups.pop(group_id, None)
            self._offsets.forget(group_id)
        else:
            self._groups[group_id] = decision.group
            at = wake_at(decision.group)
            if at is not None and at <= self._now and self._env(group_id).may_expire:
                raise BrokenPromise(f"after {command} a deadline lies {self._now - at} ms in the past")
        for answer in decision.answers:
            waiting = self._waiting.pop((group_id, answer.kind, answer.member_id), None)
            if waiting is None and answer.reply is not decision.reply:
                raise BrokenPromise(f"an answer for a request that does not wait: {answer}")
            for call in waiting or ():
                call.response = self._response(answer.reply)
        if isinstance(decision.reply, Parked):
            key = (group_id, decision.reply.kind, decision.reply.member_id)
            self._waiting.setdefault(key, []).append(caller)
        else:
            caller.response = self._response(decision.reply)
        self._carry_out(decision.effects)
        return decision.reply
