"""Settings that a group overrides, and what the core knows about the world, besides the time.

`consumer.` is for groups of the consumer protocol, `share.` for share groups; members of classic groups bring their
own timeouts. They exist whether or not the group does, and survive its deletion. A change applies from a member's next
heartbeat in every process; running timers are left alone. All overrides of all groups are kept in memory: they are set
by hand, so there are few of them.

The core knows settings, topics, assignors and expressions. That is assembled before the transaction: its data is in
memory, and if it has to be read again first, no connection may be awaited while another is held.

Source: consumer.md 10; offsets.md 10.2; http-api.md 4.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType

import re2
import structlog

from groups import revisions
from groups.core.assignors import Assignor
from groups.core.model.commands import ApplyRegexResolution
from groups.core.model.events import EventKind, GroupEvent
from groups.core.model.turn import ResolveRegexes
from groups.core.model.types import ConsumerProtocol, Env, GroupConfig, Limits, MigrationPolicy, Millis, TopicView
from groups.kept_configs import KEPT
from groups.revisions import Subject
from groups.server_assignors import SETTING as ASSIGNORS
from groups.server_assignors import load_assignors
from groups.store.rows import Ownership
from groups.store.store import GroupStore
from groups.topics import TopicService
from kcoord.access.audit.recording import Act, record
from kcoord.config import Config
from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime, WatchedCopy
from kcoord.protocol.consumer_protocol import Assignment, decode_assignment, decode_subscription, encode_assignment
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.setting import Value
from kcoord.setting_table import BOUNDED, BY_NAME, INT_MAX

log = structlog.get_logger(__name__)

Q = queries("groups")

HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
SESSION_TIMEOUT = "consumer.session.timeout.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"
ASSIGNOR = "consumer.assignor"
SHARE_HEARTBEAT_INTERVAL = "share.heartbeat.interval.ms"
SHARE_SESSION_TIMEOUT = "share.session.timeout.ms"
SHARE_ASSIGNMENT_INTERVAL = "share.assignment.interval.ms"


@dataclass(frozen=True, slots=True)
class GroupSetting:
    """A setting that groups may override. `inherited_from`: the server's setting; `limits`: the settings that bound it,
    None: it has the bounds or choices of the server's setting.

    `least`: the smallest number that it can be, whatever the limits.
    """

    name: str
    inherited_from: str
    unit: str
    help: str
    limits: tuple[str, str] | None = None
    least: int = 1

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers; else they are names."""
        return not isinstance(BY_NAME[self.inherited_from].default, str)

    def bounds(self, config: Config) -> tuple[int, int]:
        """The smallest and the largest number that it can be on this server."""
        if self.limits is not None:
            smallest, largest = self.limits
            return config.int(smallest), config.int(largest)
        setting = BY_NAME[self.inherited_from]
        return setting.minimum or 0, INT_MAX if setting.maximum is None else setting.maximum


def _share(name: str, unit: str, help: str, *, least: int = 1) -> GroupSetting:
    limits = (f"group.share.min.{name}", f"group.share.max.{name}") if name in BOUNDED else None
    return GroupSetting(f"share.{name}", f"group.share.{name}", unit, help, limits, least)


GROUP_SETTINGS: tuple[GroupSetting, ...] = (
    GroupSetting(
        HEARTBEAT_INTERVAL,
        "group.consumer.heartbeat.interval.ms",
        "ms",
        "How often members of the group send heartbeats. Smaller than the session timeout.",
        ("group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
    ),
    GroupSetting(
        SESSION_TIMEOUT,
        "group.consumer.session.timeout.ms",
        "ms",
        "How long after its last heartbeat a member is removed. Larger than the heartbeat interval.",
        ("group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    ),
    GroupSetting(
        ASSIGNMENT_INTERVAL,
        "group.consumer.assignment.interval.ms",
        "ms",
        "Least time between two targets. 0: no limit.",
        ("group.consumer.min.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"),
        least=0,
    ),
    GroupSetting(ASSIGNOR, ASSIGNORS, "name", "Assignor to use unless the members ask for another one."),
    _share(
        "heartbeat.interval.ms",
        "ms",
        "How often members of the share group send heartbeats. Smaller than its session timeout.",
    ),
    _share(
        "session.timeout.ms",
        "ms",
        "How long after its last heartbeat a member of the share group is removed. Larger than its heartbeat interval.",
    ),
    _share("assignment.interval.ms", "ms", "Least time between two targets of the share group. 0: no limit.", least=0),
    _share("record.lock.duration.ms", "ms", "How long an acquired item is locked."),
    _share("delivery.count.limit", "deliveries", "How often an item is delivered at most. Then it is a dead letter."),
    _share("partition.max.record.locks", "items", "Most locked items of a partition."),
    _share("release.backoff.ms", "ms", "After how long a released item is due again, unless the worker says.", least=0),
    _share("release.backoff.max.ms", "ms", "Longest such back-off: each delivery makes it longer.", least=0),
    _share("release.backoff.multiplier", "times", "By how much each delivery multiplies the back-off."),
    _share("auto.offset.reset", "offset", "Where partitions begin for a group that names their topic."),
)
"""In the order in which they are checked.

Differs from Kafka: `consumer.assignor` is an addition; in Kafka a group without votes uses the first of the server's
assignors. So are the three settings of back-off. A share group begins at the `earliest` offset unless told otherwise,
so that nothing in a queue is skipped by default; `by_duration` is not served.
"""

SETTINGS: Mapping[str, GroupSetting] = {setting.name: setting for setting in GROUP_SETTINGS}


class Source(str, Enum):
    """Where a value comes from."""

    DEFAULT = "default"
    GLOBAL = "global"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Entry:
    """A setting as a group has it.

    `default` is built in; `inherited` is in force without an override; `minimum` and `maximum` are the server's limits
    of a number, `choices` what a text can be. `updated_at` (ms) and `updated_by` belong to the override, None: no
    override is in force.
    """

    name: str
    value: Value
    source: Source
    default: Value
    inherited: Value
    unit: str
    minimum: int | None
    maximum: int | None
    choices: tuple[str, ...]
    help: str
    updated_at: Millis | None
    updated_by: str | None


@dataclass(frozen=True, slots=True)
class Overrides:
    """The overrides of groups: all settings by group, for groups that override any."""

    version: int
    by_group: Mapping[str, Mapping[str, Value]]


class GroupConfigs:
    """Reads and changes the settings of groups. Raises AssignorLoadError for entries that are not assignors."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._config = runtime.config
        self._store = runtime.get(GroupStore)
        self._assignors = tuple(load_assignors(runtime.config))
        inherited = {setting.name: _inherited(setting, runtime.config, self._assignors) for setting in GROUP_SETTINGS}
        self._inherited: Mapping[str, Value] = MappingProxyType(inherited)
        self._overrides = WatchedCopy(runtime, Subject.CONFIGS.channel, self._read_all)

    async def resolved(self, group_id: str) -> Mapping[str, Value]:
        """The value in force of every group setting by name, numbers in the unit of `GROUP_SETTINGS`. Costs no query.

        It includes every change that this process was notified of. Raises ProtocolError COORDINATOR_NOT_AVAILABLE while
        such a change cannot be read.
        """
        return (await self._overrides.get()).by_group.get(group_id, self._inherited)

    def known(self, group_id: str) -> Mapping[str, Value] | None:
        """As `resolved`, without waiting; None: a change has to be read first."""
        overrides = self._overrides.known()
        return None if overrides is None else overrides.by_group.get(group_id, self._inherited)

    async def overriding(self) -> list[str]:
        """The groups that override a setting, in order; they need not exist."""
        return sorted((await self._overrides.get()).by_group)

    async def describe(self, group_id: str) -> list[Entry]:
        """Every setting of a group, as stored now. Raises ProtocolError COORDINATOR_NOT_AVAILABLE."""
        async with self._db.connection() as connection:
            return await self._entries(connection, group_id)

    async def kept(self, group_id: str) -> Mapping[str, str]:
        """Those overrides that nothing reads (`groups.kept_configs`), by name. Raises as `describe`."""
        async with self._db.connection() as connection:
            return await self._kept(connection, group_id)

    async def _kept(self, connection: Connection, group_id: str) -> dict[str, str]:
        rows = await self._db.rows(connection, Q.read_group_config, {"group_name": group_id})
        return {name: text for name, text, *_ in rows if name in KEPT}

    async def alter(
        self, group_id: str, changes: Mapping[str, object], updated_by: str, *, with_kept: bool = False
    ) -> list[Entry]:
        """Apply the given settings, all or none, removing the overrides of those given as None; returns all settings.

        `with_kept`: those of `groups.kept_configs`, too, which the answer leaves out.
        Raises ProtocolError INVALID_CONFIG naming the setting, checked in the order of offsets.md 10.2. Differs from
        Kafka: None removes an override, and the server's limits are applied only to the given settings, so that an
        override which a later limit forbids does not block other changes.
        """
        given = self.checked(changes, with_kept=with_kept)
        if not given:
            return await self.describe(group_id)
        entries = await self._db.transaction(
            lambda connection: self.alter_within(connection, group_id, given, updated_by)
        )
        self.altered(group_id, given, updated_by)
        return entries

    async def check_together(self, group_id: str, given: Mapping[str, Value | None]) -> None:
        """Are settings that were `checked` compatible with those in force? Raises ProtocolError INVALID_CONFIG."""
        _check_timeouts(self._merged(await self.describe(group_id), given), given)

    def _merged(self, entries: Iterable[Entry], given: Mapping[str, Value | None]) -> dict[str, Value]:
        after = {
            name: self._inherited[name] if value is None else value for name, value in given.items() if name in SETTINGS
        }
        return {**{entry.name: entry.value for entry in entries}, **after}

    async def alter_within(
        self,
        connection: Connection,
        group_id: str,
        given: Mapping[str, Value | None],
        updated_by: str,
        *,
        recorded: bool = False,
    ) -> list[Entry]:
        """Change settings that were `checked` in the caller's transaction; the caller calls `altered` after its commit.

        `recorded`: the audit is told of them as a part of a larger act.
        Raises ProtocolError INVALID_CONFIG, before any of them is written, if they conflict with those in force.
        """
        await revisions.lock(connection, Subject.CONFIGS)  # before reading, so that what is checked is what is stored
        entries = await self._entries(connection, group_id)
        kept = await self._kept(connection, group_id) if given.keys() & KEPT.keys() else {}
        after = self._merged(entries, given)
        _check_timeouts(after, given)
        now = await self._db.now_ms(connection)
        await self._tell(connection, group_id, {entry.name: entry.value for entry in entries}, after, updated_by, now)
        for name, value in given.items():
            parameters: dict[str, object] = {"group_name": group_id, "name": name}
            if value is None:
                await connection.execute(Q.remove_group_config.encode(), parameters)
            else:
                parameters |= {"value": str(value), "now": now, "updated_by": updated_by}
                await connection.execute(Q.set_group_config.encode(), parameters)
        await revisions.tell(connection, Subject.CONFIGS, group_id)
        if not recorded:
            overrides: dict[str, Value] = {entry.name: entry.value for entry in entries if entry.source is Source.GROUP}
            overrides |= kept
            was = {name: overrides.get(name) for name in given}
            act = Act("group.config", "group", group_id, was, dict(given), principal=updated_by)
            await record(self._db, connection, act)
        return await self._entries(connection, group_id)

    async def _tell(
        self,
        connection: Connection,
        group_id: str,
        before: Mapping[str, Value],
        after: Mapping[str, Value],
        principal: str,
        now: Millis,
    ) -> None:
        """Record what is in force from now on in the events of the group, whether the group exists or not."""
        changed = {name: [before[name], value] for name, value in after.items() if before[name] != value}
        if not changed:
            return
        generation_id = await self._db.value(connection, Q.generation_of_group, {"group_id": group_id}) or 0
        event = GroupEvent(EventKind.CONFIG_CHANGED, generation_id, None, {"settings": changed, "principal": principal})
        await self._store.append_events(connection, [(group_id, now, event)])
        await self._store.notify(connection, changed=[group_id])

    def altered(self, group_id: str, given: Mapping[str, Value | None], updated_by: str) -> None:
        """A change made with `alter_within` was committed: this process reads it at once."""
        self._overrides.hint()
        log.info("group_config_changed", group_id=group_id, changes=dict(given), updated_by=updated_by)

    def checked(self, changes: Mapping[str, object], *, with_kept: bool = False) -> dict[str, Value | None]:
        """The given settings, each converted to its type and within its limits. Raises ProtocolError INVALID_CONFIG.

        `with_kept`: those of `groups.kept_configs` are settings, too.
        """
        names = (*SETTINGS, *KEPT) if with_kept else SETTINGS
        for name in changes:
            if name not in names:
                raise invalid_config(name, f"not a group setting; the settings are {', '.join(names)}")
        given = {name: None if value is None else _typed(name, value) for name, value in changes.items()}
        for setting in GROUP_SETTINGS:
            value = given.get(setting.name)
            if value is not None:
                self._check_limits(setting, value)
        return given

    def _check_limits(self, setting: GroupSetting, value: Value) -> None:
        if not setting.is_number:
            if value not in self._choices(setting):
                known = ", ".join(self._choices(setting))
                raise invalid_config(
                    setting.name, f"{str(value)[:100]!r} is not one of {known} ({setting.inherited_from})"
                )
            return
        assert isinstance(value, int)
        smallest, largest = setting.bounds(self._config)
        by = setting.limits or (setting.inherited_from, setting.inherited_from)
        if value < smallest:
            raise invalid_config(setting.name, f"{value} {setting.unit} is less than {smallest} ({by[0]})")
        if value > largest:
            raise invalid_config(setting.name, f"{value} {setting.unit} is more than {largest} ({by[1]})")

    def _choices(self, setting: GroupSetting) -> tuple[str, ...]:
        return self._assignors if setting.name == ASSIGNOR else BY_NAME[setting.inherited_from].choices

    async def _entries(self, connection: Connection, group_id: str) -> list[Entry]:
        rows = await self._db.rows(connection, Q.read_group_config, {"group_name": group_id})
        stored = {name: (text, updated_at, updated_by) for name, text, updated_at, updated_by in rows}
        values = self._usable(group_id, ((name, text) for name, (text, *_) in stored.items()))
        return [self._entry(setting, values.get(setting.name), stored.get(setting.name)) for setting in GROUP_SETTINGS]

    def _entry(self, setting: GroupSetting, value: Value | None, stored: tuple[str, Millis, str] | None) -> Entry:
        default, inherited = _default(setting), self._inherited[setting.name]
        minimum, maximum = setting.bounds(self._config) if setting.is_number else (None, None)
        overridden = value is not None and stored is not None
        global_or_default = Source.DEFAULT if inherited == default else Source.GLOBAL
        return Entry(
            name=setting.name,
            value=inherited if value is None else value,
            source=Source.GROUP if overridden else global_or_default,
            default=default,
            inherited=inherited,
            unit=setting.unit,
            minimum=minimum,
            maximum=maximum,
            choices=() if setting.is_number else self._choices(setting),
            help=setting.help,
            updated_at=stored[1] if overridden and stored else None,
            updated_by=stored[2] if overridden and stored else None,
        )

    async def _read_all(self, known: Overrides | None) -> Overrides:
        async with self._db.snapshot() as connection:
            version = await revisions.read(self._db, connection, Subject.CONFIGS)
            if known is not None and known.version == version:
                return known
            rows = await self._db.rows(connection, Q.all_group_configs)
        stored: dict[str, list[tuple[str, str]]] = {}
        for group_id, name, text in rows:
            stored.setdefault(group_id, []).append((name, text))
        return Overrides(
            version,
            {
                group_id: MappingProxyType({**self._inherited, **self._usable(group_id, pairs)})
                for group_id, pairs in stored.items()
            },
        )

    def _usable(self, group_id: str, stored: Iterable[tuple[str, str]]) -> dict[str, Value]:
        """The stored overrides by name, except those that this server cannot use.

        Another version wrote them, or the assignor is no longer configured. As in Kafka, limits are not applied again.
        """
        values: dict[str, Value] = {}
        for name, text in stored:
            setting = SETTINGS.get(name)
            if setting is not None and setting.is_number and text.isdecimal():
                values[name] = int(text)
            elif setting is not None and not setting.is_number and text in self._choices(setting):
                values[name] = text
            elif name not in KEPT:
                log.warning("group_config_ignored", group_id=group_id, name=name, value=text)
        return values


def invalid_config(name: str, detail: str) -> ProtocolError:
    """The error for a setting with an invalid value."""
    return ProtocolError(Error.INVALID_CONFIG, f"{name[:100]}: {detail}", fields={"field": name[:100]})


def _typed(name: str, value: object) -> Value:
    """The value converted to its type. Raises ProtocolError INVALID_CONFIG."""
    if name in KEPT:
        try:
            return KEPT[name].checked(str(value))
        except ValueError as error:
            raise invalid_config(name, str(error)) from None
    setting = SETTINGS[name]
    if not setting.is_number:
        if not isinstance(value, str):
            raise invalid_config(setting.name, "must be a string; send null to remove the override")
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise invalid_config(setting.name, f"must be an integer ({setting.unit}); send null to remove the override")
    if not setting.least <= value <= INT_MAX:
        raise invalid_config(setting.name, f"must be from {setting.least} to {INT_MAX} ({setting.unit})")
    return value


def _check_timeouts(effective: Mapping[str, Value], given: Mapping[str, Value | None]) -> None:
    """A session must outlast a heartbeat interval. A given value is compared with the value in force of the other."""
    for pair in ((SESSION_TIMEOUT, HEARTBEAT_INTERVAL), (SHARE_SESSION_TIMEOUT, SHARE_HEARTBEAT_INTERVAL)):
        session, heartbeat = (effective[name] for name in pair)
        assert isinstance(session, int)
        assert isinstance(heartbeat, int)
        named = next((name for name in pair if name in given), None)
        if session <= heartbeat and named is not None:
            raise invalid_config(
                named, f"the session timeout ({session} ms) must be larger than the heartbeat interval ({heartbeat} ms)"
            )


def _default(setting: GroupSetting) -> Value:
    default = BY_NAME[setting.inherited_from].default
    return default.partition(",")[0] if isinstance(default, str) else default


def _inherited(setting: GroupSetting, config: Config, assignors: tuple[str, ...]) -> Value:
    if setting.name == ASSIGNOR:
        return assignors[0]
    return config.int(setting.inherited_from) if setting.is_number else config.str(setting.inherited_from)


def inherited_by_share_groups(config: Config) -> dict[str, Value]:
    """The settings of a share group without overrides."""
    return {s.name: _inherited(s, config, ()) for s in GROUP_SETTINGS if s.name.startswith("share.")}


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
        self.server = group_config(runtime.config)
        """The settings of the server; a group may have others."""
        self._topics = runtime.get(TopicService)
        self._configs = runtime.get(GroupConfigs)
        self.assignors = load_assignors(runtime.config)

    async def context_of(self, group_id: str) -> DecisionContext:
        """The world as this group sees it. Costs no query unless a change has to be read first.

        Raises ProtocolError COORDINATOR_NOT_AVAILABLE while a change that this process was notified of cannot be read.
        """
        settings = await self._configs.resolved(group_id)
        return self._context(settings, await self._topics.view())

    def known(self, group_id: str) -> DecisionContext | None:
        """As `context_of`, without waiting; None: a change has to be read first."""
        settings, topics = self._configs.known(group_id), self._topics.known()
        return None if settings is None or topics is None else self._context(settings, topics)

    def _context(self, settings: Mapping[str, Value], topics: TopicView) -> DecisionContext:
        config = replace(
            self.server,
            consumer_session_timeout_ms=_number(settings[SESSION_TIMEOUT]),
            consumer_heartbeat_interval_ms=_number(settings[HEARTBEAT_INTERVAL]),
            consumer_assignment_interval_ms=_number(settings[ASSIGNMENT_INTERVAL]),
            share=replace(
                self.server.share,
                session_timeout_ms=_number(settings[SHARE_SESSION_TIMEOUT]),
                heartbeat_interval_ms=_number(settings[SHARE_HEARTBEAT_INTERVAL]),
                assignment_interval_ms=_number(settings[SHARE_ASSIGNMENT_INTERVAL]),
            ),
        )
        return DecisionContext(config, topics, self._preferring(str(settings[ASSIGNOR])))

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
