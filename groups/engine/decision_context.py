"""What the core knows about the world, besides the time: group settings, topics, assignors, expressions.

It is assembled before the transaction: its data is in memory, and if that has to be read again first, no connection may
be awaited while another is held.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import re2

from groups.catalogue.topics import TopicService
from groups.configs import (
    ASSIGNMENT_INTERVAL,
    ASSIGNOR,
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
    SHARE_ASSIGNMENT_INTERVAL,
    SHARE_HEARTBEAT_INTERVAL,
    SHARE_SESSION_TIMEOUT,
    GroupConfigs,
)
from groups.core.assignors import Assignor
from groups.core.model.commands import ApplyRegexResolution
from groups.core.model.turn import ResolveRegexes
from groups.core.model.types import ConsumerProtocol, Env, GroupConfig, Limits, MigrationPolicy, TopicView
from groups.server_assignors import load_assignors
from groups.store.rows import Ownership
from kcoord.config import Config
from kcoord.process.runtime import Runtime
from kcoord.protocol.consumer_protocol import Assignment, decode_assignment, decode_subscription, encode_assignment
from kcoord.setting import Value

MAX_REGEX_LENGTH = 4_096
"""Longest regular expression, in characters; our own limit, which bounds the work of compiling one."""

_QUIET = re2.Options()
_QUIET.log_errors = False


def group_config(config: Config) -> GroupConfig:
    """The server's settings that the core reads."""
    return GroupConfig(
        min_session_timeout_ms=config.int("group.min.session.timeout.ms"),
        max_session_timeout_ms=config.int("group.max.session.timeout.ms"),
        initial_rebalance_delay_ms=config.int("group.initial.rebalance.delay.ms"),
        max_size=config.int("group.max.size"),
        consumer_session_timeout_ms=config.int("group.consumer.session.timeout.ms"),
        consumer_heartbeat_interval_ms=config.int("group.consumer.heartbeat.interval.ms"),
        consumer_max_size=config.int("group.consumer.max.size"),
        consumer_migration_policy=MigrationPolicy(config.str("group.consumer.migration.policy").lower()),
        consumer_assignment_interval_ms=config.int("group.consumer.assignment.interval.ms"),
        consumer_regex_refresh_interval_ms=config.int("group.consumer.regex.refresh.interval.ms"),
        share=Limits(
            session_timeout_ms=config.int("group.share.session.timeout.ms"),
            heartbeat_interval_ms=config.int("group.share.heartbeat.interval.ms"),
            assignment_interval_ms=config.int("group.share.assignment.interval.ms"),
            max_size=config.int("group.share.max.size"),
        ),
    )


def regex_error(pattern: str) -> str | None:
    """What is wrong with a regular expression in RE2's syntax, None if it is valid."""
    if len(pattern) > MAX_REGEX_LENGTH:
        return f"the regular expression has {len(pattern)} characters; at most {MAX_REGEX_LENGTH} are allowed"
    try:
        re2.compile(pattern, options=_QUIET)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        return f"RE2 cannot read it: {reason.decode(errors='replace') if isinstance(reason, bytes) else reason}"
    return None


def _encode_assignment(partitions: Mapping[str, tuple[int, ...]], version: int) -> bytes:
    return encode_assignment(Assignment(partitions, version=version))


CONSUMER_PROTOCOL = ConsumerProtocol(decode_subscription, decode_assignment, _encode_assignment)


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """Everything in an `Env` but the time."""

    config: GroupConfig
    topics: TopicView
    assignors: Mapping[str, Assignor]

    def at(self, now: int, ownership: Ownership) -> Env:
        """The world at an instant (ms), with what may expire in it."""
        return Env(
            now=now,
            fresh_id=fresh_member_id,
            config=self.config,
            topics=self.topics,
            assignors=self.assignors,
            regex_error=regex_error,
            consumer_protocol=CONSUMER_PROTOCOL,
            may_expire=ownership.active,
            gap=ownership.gap,
            sessions_known_until=ownership.sessions_known_until,
        )


class DecisionContexts:
    """Assembles the world for a group. Raises AssignorLoadError for entries that are not assignors."""

    def __init__(self, runtime: Runtime) -> None:
        self._config = group_config(runtime.config)
        self._topics = runtime.get(TopicService)
        self._configs = runtime.get(GroupConfigs)
        self.assignors = load_assignors(runtime.config)

    async def context_of(self, group_id: str) -> DecisionContext:
        """The world as this group sees it. Costs no query unless a change has to be read first.

        Raises ProtocolError COORDINATOR_NOT_AVAILABLE while a change that this process was notified of cannot be read.
        """
        settings = await self._configs.resolved(group_id)
        config = replace(
            self._config,
            consumer_session_timeout_ms=_number(settings[SESSION_TIMEOUT]),
            consumer_heartbeat_interval_ms=_number(settings[HEARTBEAT_INTERVAL]),
            consumer_assignment_interval_ms=_number(settings[ASSIGNMENT_INTERVAL]),
            share=replace(
                self._config.share,
                session_timeout_ms=_number(settings[SHARE_SESSION_TIMEOUT]),
                heartbeat_interval_ms=_number(settings[SHARE_HEARTBEAT_INTERVAL]),
                assignment_interval_ms=_number(settings[SHARE_ASSIGNMENT_INTERVAL]),
            ),
        )
        return DecisionContext(config, await self._topics.view(), self._preferring(str(settings[ASSIGNOR])))

    def _preferring(self, name: str) -> Mapping[str, Assignor]:
        if name not in self.assignors or next(iter(self.assignors)) == name:
            return self.assignors
        return {name: self.assignors[name], **self.assignors}

    async def resolve(self, effect: ResolveRegexes) -> ApplyRegexResolution:
        """Match regular expressions against the whole names of all topics that the rights allow, off the event loop."""
        view = await self._topics.view()
        names = [name for name in view.by_name if effect.rights.may_describe(name)]
        topics = await asyncio.to_thread(_match, effect.patterns, names)
        return ApplyRegexResolution(effect.group_id, topics, view.version, effect.started_at, effect.rights.key)


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _match(patterns: Iterable[str], names: Sequence[str]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for pattern in patterns:
        compiled = re2.compile(pattern, options=_QUIET)
        found[pattern] = frozenset(name for name in names if compiled.fullmatch(name))
    return found


def fresh_member_id(prefix: str) -> str:
    """`<prefix>-<uuid4>` (classic.md 2.3)."""
    return f"{prefix}-{uuid.uuid4()}"
