"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources, of groups and topics.

A group has the settings of `groups.configs`, whose names are Kafka's, and those of `groups.kept_configs`.
Differs from Kafka: a topic or broker has no settings that a client could see or change. They are described as empty,
so that tools which ask for them work.
Source: KIP-226, 339, 848, 1142 for the versions; the rules are those of `groups.configs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from groups.api.kafka.brokers import brokers
from groups.configs import SETTINGS, Entry, GroupConfigs, Source, invalid_config
from groups.kept_configs import KEPT, KeptSetting, Kind
from groups.topics import TopicService, check_topic_name, unknown_topic
from kcoord.access.rights import Operation, Principal
from kcoord.door.http.paths import check_group_id
from kcoord.door.kafka.api import UNSUPPORTED_VERSION, Answer, Call
from kcoord.door.kafka.codec import Fields
from kcoord.protocol.errors import Error, ProtocolError

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""Kinds of resources (`ConfigResource.Type`)."""

SET, DELETE = 0, 1
"""Operations on a setting (`AlterConfigOp.OpType`); a broker refuses to append and to subtract, too."""

_SOURCES = {Source.GROUP: 8, Source.GLOBAL: 4, Source.DEFAULT: 5}
"""Where a value comes from (`ConfigEntry.ConfigSource`): of the group, of the server's settings, built in."""


async def describe_configs(call: Call, request: Fields) -> Answer:
    """DescribeConfigs 1 to 4."""

    async def described(resource: Fields) -> Answer:
        try:
            configs = await _describe(call, resource)
        except ProtocolError as refusal:
            return {**_named(resource), **_error(refusal), "configs": ()}
        wanted = resource.configuration_keys
        shown = [config for config in configs if wanted is None or config["name"] in wanted]
        if not request.include_synonyms:
            shown = [{**config, "synonyms": ()} for config in shown]
        return {**_named(resource), "error_code": 0, "configs": shown}

    return {"results": [await described(resource) for resource in request.resources]}


async def _describe(call: Call, resource: Fields) -> list[dict[str, Any]]:
    kind, name, principal = resource.resource_type, resource.resource_name, call.principal
    if kind == GROUP:
        principal.require_group(Operation.DESCRIBE, check_group_id(name))
        configs = call.runtime.get(GroupConfigs)
        kept = await configs.kept(name)
        return [
            *map(_config, await configs.describe(name)),
            *(_kept_config(setting, kept.get(setting.name)) for setting in KEPT.values()),
        ]
    if kind == TOPIC:
        check_topic_name(name)
        principal.require_described(name)
        if name not in (await call.runtime.get(TopicService).find(names=[name])).by_name:
            raise unknown_topic(name)
    elif kind in (BROKER, BROKER_LOGGER):
        _require_cluster(principal, Operation.DESCRIBE)
    else:
        raise _unknown_kind(kind)
    return []


def _config(entry: Entry) -> dict[str, Any]:
    """A setting, and as its synonyms the values of the group, of the server and built in, as far as they are set."""
    inherited_from = SETTINGS[entry.name].inherited_from
    values = [(inherited_from, entry.default, Source.DEFAULT)]
    if entry.inherited != entry.default:
        values.insert(0, (inherited_from, entry.inherited, Source.GLOBAL))
    if entry.source is Source.GROUP:
        values.insert(0, (entry.name, entry.value, Source.GROUP))
    kind = Kind.STRING if isinstance(entry.value, str) else Kind.INTEGER
    return _shown(entry.name, kind, entry.help, values)


def _kept_config(setting: KeptSetting, value: str | None) -> dict[str, Any]:
    """A setting that nothing reads; `value` None: the group does not override it."""
    overridden = [] if value is None else [(setting.name, value, Source.GROUP)]
    return _shown(
        setting.name, setting.kind, setting.help, [*overridden, (setting.synonym, setting.default, Source.DEFAULT)]
    )


def _shown(name: str, kind: Kind, help: str, values: Iterable[tuple[str, object, Source]]) -> dict[str, Any]:
    """`values`: names, values and sources; the first is in force."""
    synonyms = [{"name": by, "value": str(value), "source": _SOURCES[source]} for by, value, source in values]
    return {
        "name": name,
        "value": synonyms[0]["value"],
        "read_only": False,
        "config_source": synonyms[0]["source"],
        "is_sensitive": False,
        "synonyms": synonyms,
        "config_type": kind.value,
        "documentation": help,
    }


async def incremental_alter_configs(call: Call, request: Fields) -> Answer:
    """IncrementalAlterConfigs 0 to 1: all settings of a resource, or none."""

    return await _altered(call, request, replaces=False)


async def alter_configs(call: Call, request: Fields) -> Answer:
    """AlterConfigs 0 to 2: a resource has the given settings afterwards, and overrides no other."""
    return await _altered(call, request, replaces=True)


async def _altered(call: Call, request: Fields, *, replaces: bool) -> Answer:
    async def altered(resource: Fields) -> Answer:
        try:
            await _alter(call, resource, replaces=replaces, validate_only=request.validate_only)
        except ProtocolError as refusal:
            return {**_named(resource), **_error(refusal)}
        return {**_named(resource), "error_code": 0}

    return {"responses": [await altered(resource) for resource in request.resources]}


async def _alter(call: Call, resource: Fields, *, replaces: bool, validate_only: bool) -> None:
    kind, name, principal = resource.resource_type, resource.resource_name, call.principal
    if kind == TOPIC:
        check_topic_name(name)
        if not principal.may_topic(Operation.ADMIN, name):
            principal.require_described(name)
            raise ProtocolError(Error.TOPIC_AUTHORIZATION_FAILED, f"{principal.said} may not ADMIN topic {name!r}")
        raise ProtocolError(Error.INVALID_CONFIG, "topics have no settings here")
    if kind in (BROKER, BROKER_LOGGER):
        _require_cluster(principal, Operation.ADMIN)
        raise ProtocolError(Error.INVALID_CONFIG, "settings of the server are read when it starts; see the README")
    if kind != GROUP:
        raise _unknown_kind(kind)
    principal.require_group(Operation.ADMIN, check_group_id(name))
    configs = call.runtime.get(GroupConfigs)
    changes = _changes(resource.configs)
    if replaces:
        overriding = [entry.name for entry in await configs.describe(name) if entry.source is Source.GROUP]
        changes = dict.fromkeys([*overriding, *await configs.kept(name)]) | changes
    if validate_only:
        await configs.check_together(name, configs.checked(changes, with_kept=True))
    else:
        await configs.alter(name, changes, updated_by=principal.name, with_kept=True)


def _changes(given: Iterable[Fields]) -> dict[str, object]:
    """The settings to change, None: remove the override. Raises INVALID_REQUEST, INVALID_CONFIG."""
    changes: dict[str, object] = {}
    for config in given:
        if config.name in changes:
            raise ProtocolError(Error.INVALID_REQUEST, f"{config.name[:100]}: named twice in the request")
        operation = config.get("config_operation", SET)
        if operation == DELETE:
            changes[config.name] = None
        elif operation != SET:
            raise invalid_config(config.name, "it can only be set or deleted")
        elif config.value is None:
            raise ProtocolError(Error.INVALID_REQUEST, f"{config.name[:100]}: no value to set")
        else:
            changes[config.name] = _typed(config.name, config.value)
    return changes


def _typed(name: str, text: str) -> object:
    """A number where the setting is one, without spaces around it; anything else is left for the service to refuse."""
    setting, digits = SETTINGS.get(name), text.strip()
    is_number = setting is not None and setting.is_number
    return int(digits) if is_number and digits.isascii() and digits.isdecimal() and len(digits) <= 19 else text


def _require_cluster(principal: Principal, operation: Operation) -> None:
    if not principal.may_cluster(operation):
        raise ProtocolError(
            Error.CLUSTER_AUTHORIZATION_FAILED,
            f"{principal.said} may not {operation.value.upper()} the cluster",
        )


def _unknown_kind(kind: int) -> ProtocolError:
    return ProtocolError(Error.INVALID_REQUEST, f"resources of type {kind} have no settings here")


def _named(resource: Fields) -> dict[str, Any]:
    return {"resource_type": resource.resource_type, "resource_name": resource.resource_name}


def _error(refusal: ProtocolError) -> dict[str, Any]:
    return {"error_code": refusal.error.code, "error_message": refusal.detail or refusal.error.value.help}


async def list_config_resources(call: Call, request: Fields) -> Answer:
    """ListConfigResources 0 to 1: what DescribeConfigs can be asked about; version 0 asks for client metrics alone.

    Of groups, those that override a setting, as in Kafka. What the caller may not describe is left out.
    """
    principal = call.principal
    _require_cluster(principal, Operation.DESCRIBE)
    known = {GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC}
    wanted = set(request.get("resource_types", (CLIENT_METRICS,))) or known
    if not wanted <= known:
        return {"error_code": UNSUPPORTED_VERSION, "config_resources": ()}
    found: list[tuple[int, str]] = []
    if GROUP in wanted:
        groups = await call.runtime.get(GroupConfigs).overriding()
        found += [(GROUP, name) for name in groups if principal.may_group(Operation.DESCRIBE, name)]
    if wanted & {BROKER, BROKER_LOGGER}:
        ids = [str(broker.id) for broker in (await brokers(call)).values()]
        found += [(kind, name) for kind in (BROKER_LOGGER, BROKER) if kind in wanted for name in ids]
    if TOPIC in wanted:
        topics = sorted((await call.runtime.get(TopicService).view()).by_name)
        found += [(TOPIC, name) for name in topics if principal.may_topic(Operation.DESCRIBE, name)]
    return {
        "error_code": 0,
        "config_resources": [{"resource_type": kind, "resource_name": name} for kind, name in found],
    }


def refused_description(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer to DescribeConfigs with the same error for every resource."""
    return {"results": [_refused(resource, code, detail) for resource in request.resources]}


def refused_change(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer to AlterConfigs and IncrementalAlterConfigs with the same error for every resource."""
    return {"responses": [_refused(resource, code, detail) for resource in request.resources]}


def _refused(resource: Fields, code: int, detail: str) -> Answer:
    return {**_named(resource), "error_code": code, "error_message": detail}
