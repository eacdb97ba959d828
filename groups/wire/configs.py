"""DescribeConfigs, IncrementalAlterConfigs and ListConfigResources, of groups and topics.

A group has the settings of `groups.configs`, whose names are Kafka's.
Differs from Kafka: a topic or broker has no settings that a client could see or change. They are described as empty,
so that tools which ask for them work.
Source: KIP-226, 339, 848, 1142 for the versions; the rules are those of `groups.configs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from groups.catalogue.topics import TopicService, check_topic_name, unknown_topic
from groups.configs import SETTINGS, Entry, GroupConfigs, Source, invalid_config
from groups.wire.brokers import brokers
from kcoord.access.rights import Operation, Principal
from kcoord.http.paths import check_group_id
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.wire.api import Answer, Call
from kcoord.wire.codes import UNSUPPORTED_VERSION
from kcoord.wire.reading import Fields

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""Kinds of resources (`ConfigResource.Type`)."""

SET, DELETE = 0, 1
"""Operations on a setting (`AlterConfigOp.OpType`); to append or subtract is for lists, which no setting is."""

STRING, INTEGER = 2, 3
"""Kinds of settings (`ConfigEntry.ConfigType`)."""

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
        shown = [config for config in configs if wanted is None or config.name in wanted]
        return {
            **_named(resource),
            "error_code": 0,
            "configs": [_config(config, request.include_synonyms) for config in shown],
        }

    return {"results": [await described(resource) for resource in request.resources]}


async def _describe(call: Call, resource: Fields) -> list[Entry]:
    kind, name, principal = resource.resource_type, resource.resource_name, call.principal
    if kind == GROUP:
        principal.require_group(Operation.DESCRIBE, check_group_id(name))
        return await call.runtime.get(GroupConfigs).describe(name)
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


def _config(entry: Entry, with_synonyms: bool) -> Answer:
    """A setting, with the values that were in force without the one above them if the client asks for them."""
    source = _SOURCES[entry.source]
    synonyms = [(entry.value, source)] if entry.source is not Source.DEFAULT else []
    if entry.source is Source.GROUP and entry.inherited != entry.default:
        synonyms.append((entry.inherited, _SOURCES[Source.GLOBAL]))
    synonyms.append((entry.default, _SOURCES[Source.DEFAULT]))
    return {
        "name": entry.name,
        "value": str(entry.value),
        "read_only": False,
        "config_source": source,
        "is_sensitive": False,
        "synonyms": [{"name": entry.name, "value": str(v), "source": s} for v, s in synonyms] if with_synonyms else (),
        "config_type": STRING if isinstance(entry.value, str) else INTEGER,
        "documentation": entry.help,
    }


async def incremental_alter_configs(call: Call, request: Fields) -> Answer:
    """IncrementalAlterConfigs 0 to 1: all settings of a resource, or none."""

    async def altered(resource: Fields) -> Answer:
        try:
            await _alter(call, resource, validate_only=request.validate_only)
        except ProtocolError as refusal:
            return {**_named(resource), **_error(refusal)}
        return {**_named(resource), "error_code": 0}

    return {"responses": [await altered(resource) for resource in request.resources]}


async def _alter(call: Call, resource: Fields, *, validate_only: bool) -> None:
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
    changes = _changes(resource.configs)
    configs = call.runtime.get(GroupConfigs)
    if validate_only:
        await configs.check_together(name, configs.checked(changes))
    else:
        await configs.alter(name, changes, updated_by=principal.name)


def _changes(given: Iterable[Fields]) -> dict[str, object]:
    """The settings to change, None: remove the override. Raises INVALID_REQUEST, INVALID_CONFIG."""
    changes: dict[str, object] = {}
    for config in given:
        if config.name in changes:
            raise ProtocolError(Error.INVALID_REQUEST, f"{config.name[:100]}: named twice in the request")
        if config.config_operation == DELETE:
            changes[config.name] = None
        elif config.config_operation != SET:
            raise invalid_config(config.name, "not a list: it can only be set or deleted")
        elif config.value is None:
            raise ProtocolError(Error.INVALID_REQUEST, f"{config.name[:100]}: no value to set")
        else:
            changes[config.name] = _typed(config.name, config.value)
    return changes


def _typed(name: str, text: str) -> object:
    """A number where the setting is one; what is no number is left to the service to refuse."""
    setting = SETTINGS.get(name)
    is_number = setting is not None and setting.limits is not None
    return int(text) if is_number and text.isascii() and text.isdecimal() and len(text) <= 19 else text


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
    """The answer to IncrementalAlterConfigs with the same error for every resource."""
    return {"responses": [_refused(resource, code, detail) for resource in request.resources]}


def _refused(resource: Fields, code: int, detail: str) -> Answer:
    return {**_named(resource), "error_code": code, "error_message": detail}
