"""The heartbeats with epochs: one call each to join, stay in, and leave a consumer group or a share group, in JSON.

A topic that the caller may not describe appears not to exist, unless the member has it.
Source: http-api.md "consumer-heartbeat" and "share-heartbeat"; consumer.md 2, 2.1, 4.5 and 4.6; share.md 2.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from groups.api import wire
from groups.api.endpoints import GROUP
from groups.api.handlers import CONSUMER, SHARE, admit_member, raise_for_error
from groups.api.wire import ConsumerHeartbeatResponse, ShareHeartbeatRequest
from groups.core.assignors import Partitions
from groups.core.model.commands import ConsumerHeartbeat, ShareHeartbeat
from groups.core.model.replies import ConsumerHeartbeatReply
from groups.core.model.types import Topic, TopicRights, TopicView
from groups.core.share import check_member_id
from groups.engine.service import GroupService
from groups.readmodel import GroupReads, Holdings
from groups.topics import TopicService, unknown_partition
from kcoord.access.rights import Operation, Permission, Resource
from kcoord.door.http.problem import invalid
from kcoord.door.http.serving import Call, Endpoint, serve
from kcoord.door.http.types import rfc3339
from kcoord.process.off_loop import settled, then
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.setting_table import REBALANCE_PROTOCOLS

Beat = Call[wire.ConsumerHeartbeatRequest]

DISABLED = f"the consumer protocol is disabled on this server; enable it with the setting {REBALANCE_PROTOCOLS}"


def describable(call: Call[Any], name: str) -> bool:
    """May the caller describe the topic of this name?"""
    return call.principal.may_topic(Operation.DESCRIBE, name)


async def reported(call: Beat) -> Partitions | None:
    """What the member reports to have, by topic id; None: it does not report.

    Raises INVALID_REQUEST, UNKNOWN_TOPIC_ID or UNKNOWN_TOPIC_OR_PARTITION naming the entry. What the member was given
    is always accepted: otherwise it could not give up a deleted topic. If the core refuses the request because of its
    member or epoch, the topics are not checked: the member has to learn that it must rejoin.

    Differs from Kafka: topics and partitions that do not exist are refused; Kafka ignores them.
    """
    if call.body.topic_partitions is None:
        return None
    view = await call.runtime.get(TopicService).view()
    found: defaultdict[str, set[int]] = defaultdict(set)
    holdings: Holdings | None = None
    for index, entry in enumerate(call.body.topic_partitions):
        where = f"topic_partitions[{index}]"
        key = _key(entry, where)
        topic = _topic(call, key, view)
        refusal = _refusal(entry, key, topic, where)
        if refusal is None:
            assert topic is not None
            found[topic.topic_id].update(entry.partitions)
            continue
        holdings = holdings or await call.runtime.get(GroupReads).holdings(call.group_id, call.body.member_id)
        if call.body.member_epoch <= 0 or holdings.member_epoch != call.body.member_epoch:
            # Stands for partitions that no member has, so that the core does not assume that fewer were reported.
            found[str(key)].update(entry.partitions)
            continue
        topic_id = holdings.topic_ids.get(key, "") if isinstance(key, str) else str(key)
        if not holdings.partitions.get(topic_id, frozenset()).issuperset(entry.partitions):
            raise refusal
        found[topic_id].update(entry.partitions)
    return {topic_id: frozenset(partitions) for topic_id, partitions in found.items()}


def _key(entry: wire.OwnedTopic, where: str) -> str | uuid.UUID:
    """The id of an entry, or the name of its topic if it gives no id."""
    if entry.topic_id is not None:
        try:
            return uuid.UUID(entry.topic_id)
        except ValueError:
            raise invalid(f"{where}.topic_id: not a valid UUID", f"{where}.topic_id") from None
    if entry.topic is None:
        raise invalid(f"{where}: send topic_id or topic", where)
    return entry.topic


def _topic(call: Beat, key: str | uuid.UUID, view: TopicView) -> Topic | None:
    topic = view.by_name.get(key) if isinstance(key, str) else view.by_id.get(str(key))
    return topic if topic is not None and describable(call, topic.name) else None


def _refusal(entry: wire.OwnedTopic, key: str | uuid.UUID, topic: Topic | None, where: str) -> ProtocolError | None:
    """The error of an entry, if any, ignoring what the member was given. Raises INVALID_REQUEST."""
    if topic is None and isinstance(key, str):
        field = f"{where}.topic"
        detail = f"{field}: there is no topic {key!r}"
        return ProtocolError(Error.UNKNOWN_TOPIC_OR_PARTITION, detail, fields={"field": field})
    if topic is None:
        field = f"{where}.topic_id"
        return ProtocolError(Error.UNKNOWN_TOPIC_ID, f"{field}: no topic has the id {key}", fields={"field": field})
    if entry.topic is not None and entry.topic != topic.name:
        field = f"{where}.topic"
        raise invalid(f"{field}: topic_id belongs to topic {topic.name!r}; send only one of the two", field)
    for position, partition in enumerate(entry.partitions):
        if partition >= topic.partitions:
            return unknown_partition(topic.name, partition, topic.partitions, f"{where}.partitions[{position}]")
    return None


async def _names_of(call: Call[Any], topic_ids: Iterable[str]) -> Mapping[str, str]:
    """The names of those topics that exist and that the caller may describe, by topic id."""
    wanted = set(topic_ids)
    view = await call.runtime.get(TopicService).find(topic_ids=wanted)
    names = {topic_id: view.by_id[topic_id].name for topic_id in wanted if topic_id in view.by_id}
    return {topic_id: name for topic_id, name in names.items() if describable(call, name)}


def require_describable(call: Call[Any], names: Sequence[str] | None) -> None:
    """Raise TOPIC_AUTHORIZATION_FAILED, for the whole request, unless the caller may describe every subscribed name."""
    for index, name in enumerate(names or ()):
        if not describable(call, name):
            field = f"subscribed_topic_names[{index}]"
            raise ProtocolError(
                Error.TOPIC_AUTHORIZATION_FAILED,
                f"{field}: {call.principal.said} may not DESCRIBE topic {name!r}",
                fields={"field": field},
            )


async def named_assignment(call: Call[Any], partitions: Partitions) -> wire.ConsumerAssignment:
    """What a member has, by the names of topics."""
    names = await _names_of(call, partitions)
    topics = [
        wire.AssignedTopic(topic_id, names.get(topic_id), sorted(numbers)) for topic_id, numbers in partitions.items()
    ]
    return wire.ConsumerAssignment(sorted(topics, key=lambda entry: (entry.topic or "", entry.topic_id)))


def heartbeat_command(call: Beat, owned: Partitions | None) -> ConsumerHeartbeat:
    """The command of a heartbeat. `owned`: what the member reports to have, by topic id; None: it does not report."""
    body = call.body
    names = body.subscribed_topic_names
    return ConsumerHeartbeat(
        group_id=call.group_id,
        member_id=body.member_id,
        member_epoch=body.member_epoch,
        instance_id=body.instance_id,
        rack_id=body.rack_id,
        client_id=body.client_id,
        client_host=call.client_host,
        rebalance_timeout_ms=-1 if body.rebalance_timeout_ms is None else body.rebalance_timeout_ms,
        subscribed_topic_names=None if names is None else frozenset(names),
        subscribed_topic_regex=body.subscribed_topic_regex,
        server_assignor=body.server_assignor,
        topic_partitions=owned,
        max_wait_ms=min(body.max_wait_ms, call.runtime.max_wait_ms),
        rights=TopicRights(call.principal.rules.key(Operation.DESCRIBE, Resource.TOPIC), partial(describable, call)),
    )


def heartbeat_response(
    reply: ConsumerHeartbeatReply, assignment: wire.ConsumerAssignment | None
) -> wire.ConsumerHeartbeatResponse:
    """The response of a successful heartbeat. `assignment`: that of the reply, with the names of its topics."""
    return wire.ConsumerHeartbeatResponse(
        member_id=reply.member_id,
        member_epoch=reply.member_epoch,
        heartbeat_interval_ms=reply.heartbeat_interval_ms,
        session_expires_at=rfc3339(reply.session_deadline),
        assignment=assignment,
    )


CONSUMER_HEARTBEAT = Endpoint(
    "POST",
    f"{GROUP}/consumer-heartbeat",
    "consumerGroupHeartbeat",
    "Join, stay in and leave a consumer group",
    request=wire.ConsumerHeartbeatRequest,
    response=wire.ConsumerHeartbeatResponse,
    errors=(
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.INVALID_GROUP_ID,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.GROUP_ID_NOT_FOUND,
        Error.UNKNOWN_MEMBER_ID,
        Error.FENCED_MEMBER_EPOCH,
        Error.FENCED_INSTANCE_ID,
        Error.UNRELEASED_INSTANCE_ID,
        Error.UNSUPPORTED_ASSIGNOR,
        Error.INVALID_REGULAR_EXPRESSION,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
    ),
    description="Join with `member_epoch` 0, `rebalance_timeout_ms`, a subscription and no `topic_partitions`. Then "
    "send a heartbeat every `heartbeat_interval_ms` with the `member_epoch` of the last response. Leave "
    "with -1. Stop using partitions that an `assignment` no longer lists, then report the remaining ones "
    "in `topic_partitions`: no other member gets a partition until then. After an error or a missing "
    "response send all fields; the response then repeats the assignment. With `max_wait_ms` the request "
    "waits until something changes for this member.",
    takes_empty_group_id=True,
    takes=Permission.READ_GROUP,
)


@serve(CONSUMER_HEARTBEAT, waits=True, is_hot=True, is_quick=True, metering=CONSUMER)
def consumer_heartbeat(call: Beat) -> wire.ConsumerHeartbeatResponse | Awaitable[wire.ConsumerHeartbeatResponse]:
    """ConsumerGroupHeartbeat."""
    if "consumer" not in call.runtime.group_protocols:
        raise invalid(DISABLED)
    call.principal.require_group(Operation.READ, call.group_id)
    if not _says_nothing_new(call.body):
        return _consumer_heartbeat(call)
    reply = call.runtime.get(GroupService).consumer_heartbeat(heartbeat_command(call, None))
    return _beaten(call, reply) if isinstance(reply, ConsumerHeartbeatReply) else then(reply, partial(_beaten, call))


def _beaten(
    call: Beat, reply: ConsumerHeartbeatReply
) -> wire.ConsumerHeartbeatResponse | Awaitable[wire.ConsumerHeartbeatResponse]:
    raise_for_error("consumer_heartbeat", reply)
    return heartbeat_response(reply, None) if reply.assignment is None else _assigned(call, reply)


async def _assigned(call: Beat, reply: ConsumerHeartbeatReply) -> wire.ConsumerHeartbeatResponse:
    assert reply.assignment is not None
    return heartbeat_response(reply, await named_assignment(call, reply.assignment))


def _says_nothing_new(body: wire.ConsumerHeartbeatRequest) -> bool:
    """The member reports nothing, and does not wait: the answer may be known."""
    return (
        body.member_epoch > 0
        and body.max_wait_ms == 0
        and body.topic_partitions is None
        and body.subscribed_topic_names is None
        and body.subscribed_topic_regex is None
        and body.server_assignor is None
        and body.rack_id is None
        and body.rebalance_timeout_ms in (None, -1)
    )


async def _consumer_heartbeat(call: Beat) -> wire.ConsumerHeartbeatResponse:
    require_describable(call, call.body.subscribed_topic_names)
    if call.body.member_epoch == 0:
        await admit_member(
            call.runtime, call.principal, call.group_id, call.body.member_id, call.body.instance_id, is_new=True
        )
    command = heartbeat_command(call, await reported(call))
    return await settled(then(call.runtime.get(GroupService).consumer_heartbeat(command), partial(_beaten, call)))


SHARE_HEARTBEAT = Endpoint(
    "POST",
    f"{GROUP}/share-heartbeat",
    "shareGroupHeartbeat",
    "Join, stay in and leave a share group",
    request=ShareHeartbeatRequest,
    response=ConsumerHeartbeatResponse,
    errors=(
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.INVALID_GROUP_ID,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.GROUP_ID_NOT_FOUND,
        Error.UNKNOWN_MEMBER_ID,
        Error.FENCED_MEMBER_EPOCH,
        Error.GROUP_MAX_SIZE_REACHED,
    ),
    description="Join with `member_epoch` 0 and `subscribed_topic_names`. Then send a heartbeat every "
    "`heartbeat_interval_ms` with the `member_epoch` of the last response. Leave with -1. Members share partitions: an "
    "`assignment` says which ones the member is meant to work on, and other members may have the same.",
    takes_empty_group_id=True,
    takes=Permission.READ_GROUP,
)


@serve(SHARE_HEARTBEAT, is_hot=True, metering=SHARE)
async def share_heartbeat(call: Call[ShareHeartbeatRequest]) -> ConsumerHeartbeatResponse:
    """ShareGroupHeartbeat."""
    body = call.body
    call.principal.require_group(Operation.READ, call.group_id)
    check_member_id(body.member_id)
    require_describable(call, body.subscribed_topic_names)
    if body.member_epoch == 0:
        await admit_member(call.runtime, call.principal, call.group_id, body.member_id, None, is_new=True)
    names = body.subscribed_topic_names
    reply = await call.runtime.get(GroupService).share_heartbeat(
        ShareHeartbeat(
            group_id=call.group_id,
            member_id=body.member_id,
            member_epoch=body.member_epoch,
            rack_id=body.rack_id,
            client_id=body.client_id,
            client_host=call.client_host,
            subscribed_topic_names=None if names is None else frozenset(names),
        )
    )
    raise_for_error("share_heartbeat", reply)
    assignment = None if reply.assignment is None else await named_assignment(call, reply.assignment)
    return heartbeat_response(reply, assignment)
