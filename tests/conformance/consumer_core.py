"""Consumer cases through the core alone: topics, settings of groups and background work are played here."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from groups.core.assignors import BUILT_IN
from groups.core.consumer.target import preferred_assignor
from groups.core.model.commands import ApplyRegexResolution, Command
from groups.core.model.consumer_group import ConsumerGroup, EpochGroup, ShareGroup
from groups.core.model.replies import LeaveReply, Reply
from groups.core.model.turn import ComputeTarget, Effect, ResolveRegexes
from groups.core.model.types import ClassicGroup, Env, GroupConfig, MigrationPolicy, Topic, TopicView
from kcoord.protocol.errors import Error
from tests.conformance import consumer_terms as terms
from tests.conformance import core_admin
from tests.conformance.cases import Case
from tests.conformance.core_driver import CoreDriver, group_config
from tests.conformance.driver import Call, NoDriver, Response

Args = Mapping[str, Any]

_SETTINGS = {
    "group.consumer.session.timeout.ms": "consumer_session_timeout_ms",
    "group.consumer.heartbeat.interval.ms": "consumer_heartbeat_interval_ms",
    "group.consumer.max.size": "consumer_max_size",
    "group.consumer.assignment.interval.ms": "consumer_assignment_interval_ms",
    "group.consumer.regex.refresh.interval.ms": "consumer_regex_refresh_interval_ms",
}
_SHARE_SETTINGS = {
    "group.share.session.timeout.ms": "session_timeout_ms",
    "group.share.heartbeat.interval.ms": "heartbeat_interval_ms",
    "group.share.assignment.interval.ms": "assignment_interval_ms",
    "group.share.max.size": "max_size",
}
_UNKNOWN_ID = "no-topic:"


def consumer_config(config: Mapping[str, Any]) -> GroupConfig:
    """The core's settings under their Kafka names. Everything is computed at once, as the convention has it."""
    policy = MigrationPolicy(config.get("group.consumer.migration.policy", "bidirectional").lower())
    known: dict[str, Any] = {_SETTINGS[name]: value for name, value in config.items() if name in _SETTINGS}
    share = {_SHARE_SETTINGS[name]: value for name, value in config.items() if name in _SHARE_SETTINGS}
    known["share"] = replace(GroupConfig().share, **{"assignment_interval_ms": 0, **share})
    return replace(
        group_config(config), consumer_migration_policy=policy, consumer_assignment_inline_limit=None, **known
    )


class ConsumerCoreDriver(CoreDriver):
    """As `CoreDriver`, with topics."""

    def __init__(self, case: Case, mode: str) -> None:
        super().__init__(case, mode)
        self._config = consumer_config(case.config)
        names = case.config.get("group.consumer.assignors", tuple(BUILT_IN))
        self._assignors = {name: BUILT_IN[name] for name in names}
        self._overrides: dict[str, Mapping[str, Any]] = {}
        self._resolutions: dict[str, ResolveRegexes] = {}
        self._topic_ids = itertools.count(1)
        self._names: dict[str, str] = {}
        self._topics = TopicView()
        for name, partitions in case.topics.items():
            self._put_topic(Topic(f"{name}-{next(self._topic_ids)}", name, partitions))

    async def inspect(self, group_id: str) -> Response:
        """The consumer or share group, as of now; one that went on as a classic group does not exist as such."""
        await self.look()
        group = self._groups.get(group_id)
        return terms.inspected(group, self._topic_name) if isinstance(group, EpochGroup) else {"exists": False}

    async def control(self, kind: str, args: Any) -> None:
        """Topics, settings of a group, and the resolution of regular expressions."""
        match kind:
            case "create_topic":
                self._put_topic(Topic(f"{args['name']}-{next(self._topic_ids)}", args["name"], args["partitions"]))
            case "alter_topic":
                self._put_topic(replace(self._topics.by_name[args["name"]], partitions=args["partitions"]))
            case "delete_topic":
                self._store_topics(
                    {name: topic for name, topic in self._topics.by_name.items() if name != args["name"]}
                )
            case "set_group_config":
                named = {f"group.{name}": value for name, value in args["config"].items()}
                overrides = {**self._overrides.get(args["group_id"], {}), **named}
                self._overrides[args["group_id"]] = {k: v for k, v in overrides.items() if v is not None}
            case "await_regex_resolution":
                self._resolve_regexes(args["group_id"])
            case _:
                raise NoDriver(f"no driver for step {kind} through core")

    def _put_topic(self, topic: Topic) -> None:
        self._names[topic.topic_id] = topic.name
        self._store_topics({**self._topics.by_name, topic.name: topic})

    def _store_topics(self, by_name: Mapping[str, Topic]) -> None:
        by_id = {topic.topic_id: topic for topic in by_name.values()}
        self._topics = TopicView(self._topics.version + 1, by_name, by_id)
        self._offsets.topics = {name: topic.partitions for name, topic in by_name.items()}

    def _topic_id(self, name: str) -> str:
        """The id of the newest topic of that name, which may be deleted."""
        return next(
            (topic_id for topic_id in reversed(self._names) if self._names[topic_id] == name), _UNKNOWN_ID + name
        )

    def _topic_name(self, topic_id: str) -> str:
        return self._names.get(topic_id) or topic_id.removeprefix(_UNKNOWN_ID)

    def _resolve_regexes(self, group_id: str) -> None:
        asked = self._resolutions.pop(group_id, None)
        if asked is None:
            return
        topics = {pattern: terms.matches(pattern, self._topics.by_name) for pattern in asked.patterns}
        result = ApplyRegexResolution(group_id, topics, self._topics.version, asked.started_at)
        self._decide(group_id, result, Call())

    def _env(self, group_id: str) -> Env:
        return replace(
            super()._env(group_id),
            config=consumer_config({**self._settings, **self._overrides.get(group_id, {})}),
            topics=self._topics,
            assignors=self._assignors,
            regex_error=terms.regex_error,
            consumer_protocol=terms.CODEC,
        )

    def _command(self, name: str, args: Args) -> Command:
        return terms.command(name, args, self._topic_id)

    def _response(self, reply: Reply) -> Response:
        return terms.response(reply, self._topic_name)

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            assert not isinstance(effect, ComputeTarget), "every target is computed at once"
            if isinstance(effect, ResolveRegexes):
                self._resolutions[effect.group_id] = effect

    def _above_the_core(self, name: str, args: Args) -> Response | None:
        self._tick_overdue()
        match name:
            case "OffsetCommit":
                return super()._above_the_core(name, terms.commit(args))
            case "OffsetFetch":
                return terms.fetched(self._offsets.fetch(terms.fetch(args), self._groups.get), args)
            case "OffsetDelete":
                return super()._above_the_core(name, args)
            case "DeleteGroups":
                return super()._above_the_core(name, terms.deletions(args))
            case "ListGroups":
                return self._list(args)
            case "LeaveGroup":
                return terms.of_one(self._response(self._leave(self._command(name, args))), args)
            case "DescribeGroups":
                described = core_admin.describe_groups(terms.group_ids(args), self._classic, self._offsets.is_denied)
                return terms.described_groups(described, args)
            case "ConsumerGroupDescribe":
                return {"groups": [self._describe(group_id, ConsumerGroup) for group_id in args["group_ids"]]}
            case "ShareGroupDescribe":
                return {"groups": [self._describe(group_id, ShareGroup) for group_id in args["group_ids"]]}
            case _:
                return None

    def _leave(self, command: Command) -> LeaveReply:
        reply = self._decide(command.group_id, command, Call())
        assert isinstance(reply, LeaveReply)
        return reply

    def _list(self, args: Args) -> Response:
        states = [state.strip().lower() for state in args.get("states_filter", ())]
        types = [kind.strip().lower() for kind in args.get("types_filter", ())]
        entries = [self._entry(group_id) for group_id in sorted(self._groups)]
        return {
            "groups": [
                entry
                for entry in entries
                if (not states or entry["group_state"].lower() in states)
                and (not types or entry["group_type"] in types)
            ]
        }

    def _entry(self, group_id: str) -> Response:
        group = self._groups[group_id]
        kind = {ClassicGroup: "classic", ConsumerGroup: "consumer", ShareGroup: "share"}[type(group)]
        return {
            "group_id": group_id,
            "protocol_type": (group.protocol_type or "") if isinstance(group, ClassicGroup) else kind,
            "group_state": group.state.value,
            "group_type": kind,
        }

    def _describe(self, group_id: str, kind: type[EpochGroup]) -> Response:
        group = self._groups.get(group_id)
        if not isinstance(group, kind):
            refused = Error.GROUP_ID_NOT_FOUND if group_id else Error.INVALID_GROUP_ID
            return {"group_id": group_id, "error": refused.name}
        assignor = "simple" if isinstance(group, ShareGroup) else preferred_assignor(group, self._assignors)
        return terms.described(group_id, group, assignor, self._topics.by_id)
