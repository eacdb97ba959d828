"""What the driver asks over HTTP, as requests of Kafka's protocol, and their answers as HTTP would give them.

So a case has one meaning, and one reading of its answers, whichever way it goes. Fields that a case does not give are
left to the schema, as clients do; versions are those that the case names, else the newest that name topics.
"""

from __future__ import annotations

import uuid
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from kcoord.door.kafka.codec import Fields
from tests.conformance import wire_offsets
from tests.conformance.consumer_terms import CONSUMER_MEMBER
from tests.conformance.http_terms import Args, HttpAnswer, HttpRequest
from tests.conformance.wire_requests import Translation, WireRequest, body_of, group_of, refused, version_of

_SUBSCRIPTION = ("subscribed_topic_names", "subscribed_topic_regex")

INSTANCE_ID = 5
"""The oldest version of JoinGroup that has an instance id."""


def _bytes(encoded: str) -> bytes:
    return b64decode(encoded, validate=True)


def _text(raw: bytes | None) -> str:
    return b64encode(raw or b"").decode()


# Members


def _join(request: HttpRequest, args: Args) -> WireRequest:
    body = body_of(request)
    fields = {
        "group_id": group_of(request),
        "session_timeout": body["session_timeout_ms"],
        "rebalance_timeout": body["rebalance_timeout_ms"],
        "member_id": body["member_id"],
        "group_instance_id": body["group_instance_id"],
        "protocol_type": body["protocol_type"],
        "protocols": [{"name": p["name"], "metadata": _bytes(p["metadata"])} for p in body["protocols"]],
    }
    version = version_of("JoinGroup", args)
    if body["group_instance_id"] is not None:  # some cases name one beside an older version
        version = max(version, INSTANCE_ID)
    return WireRequest("join_group", version, fields, body.get("client_id", "t"))


def _joined(answer: Fields, sent: WireRequest) -> HttpAnswer:
    if answer.error_code:
        return refused(answer.error_code, member_id=answer.member_id)
    members = [
        {
            "member_id": member.member_id,
            "group_instance_id": member.get("group_instance_id"),
            "metadata": _text(member.metadata),
        }
        for member in answer.members
    ]
    fields = ("member_id", "generation_id", "leader", "protocol_name")
    told = {name: answer[name] for name in fields}
    told["protocol_type"] = answer.get("protocol_type", sent.fields["protocol_type"])
    return HttpAnswer(200, {**told, "skip_assignment": answer.get("skip_assignment", False), "members": members})


def _sync(request: HttpRequest, args: Args) -> WireRequest:
    body = body_of(request)
    fields = {
        "group_id": group_of(request),
        **{name: body[name] for name in ("generation_id", "member_id", "group_instance_id")},
        "protocol_type": body["protocol_type"],
        "protocol_name": body["protocol_name"],
        "assignments": [
            {"member_id": entry["member_id"], "assignment": _bytes(entry["assignment"])}
            for entry in body["assignments"]
        ],
    }
    return WireRequest("sync_group", version_of("SyncGroup", args), fields)


def _synced(answer: Fields, sent: WireRequest) -> HttpAnswer:
    if answer.error_code:
        return refused(answer.error_code)
    told = {name: answer.get(name, sent.fields[name]) for name in ("protocol_type", "protocol_name")}
    return HttpAnswer(200, {**told, "assignment": _text(answer.assignment)})


def _heartbeat(request: HttpRequest, args: Args) -> WireRequest:
    return WireRequest("heartbeat", version_of("Heartbeat", args), {"group_id": group_of(request), **body_of(request)})


def _leave(request: HttpRequest, args: Args) -> WireRequest:
    members = body_of(request)["members"]
    first = members[0].get("member_id", "") if members else ""
    fields = {"group_id": group_of(request), "members": members, "member_id": first}
    return WireRequest("leave_group", version_of("LeaveGroup", args), fields)


def _left(answer: Fields, sent: WireRequest) -> HttpAnswer:
    if answer.error_code:
        return refused(answer.error_code)
    fields = ("member_id", "group_instance_id", "error_code")
    return HttpAnswer(200, {"members": [{name: member.get(name) for name in fields} for member in answer.members]})


def _nothing(answer: Fields, sent: WireRequest) -> HttpAnswer:
    """Of answers that have nothing but their error."""
    return refused(answer.error_code) if answer.error_code else HttpAnswer(200, {})


def _beat(request: HttpRequest, args: Args) -> WireRequest:
    """ConsumerGroupHeartbeat. A topic that never existed has an id that nobody knows."""
    body = dict(body_of(request))
    owned = body.pop("topic_partitions", None)
    if "rebalance_timeout_ms" in body:
        body["rebalance_timeout"] = body.pop("rebalance_timeout_ms")
    body["topic_partitions"] = (
        None
        if owned is None
        else [{"topic_id": each.get("topic_id") or uuid.uuid4(), "partitions": each["partitions"]} for each in owned]
    )
    fields = {"group_id": group_of(request), **body}
    return WireRequest("consumer_group_heartbeat", version_of("ConsumerGroupHeartbeat", args), fields)


def _share_beat(request: HttpRequest, args: Args) -> WireRequest:
    """ShareGroupHeartbeat, which has one version."""
    return WireRequest("share_group_heartbeat", 1, {"group_id": group_of(request), **body_of(request)})


def _beaten(answer: Fields, sent: WireRequest) -> HttpAnswer:
    if answer.error_code:
        told = {name: answer[name] for name in ("member_id", "member_epoch")}
        return refused(answer.error_code, **told, heartbeat_interval_ms=answer.heartbeat_interval)
    assignment = None if answer.assignment is None else {"topic_partitions": _partitions(answer.assignment)}
    told = {"member_id": answer.member_id, "member_epoch": answer.member_epoch}
    return HttpAnswer(200, {**told, "heartbeat_interval_ms": answer.heartbeat_interval, "assignment": assignment})


def _partitions(assignment: Fields) -> list[dict[str, Any]]:
    return [
        {"topic_id": str(entry.topic_id), "topic": entry.get("topic_name"), "partitions": entry.partitions}
        for entry in assignment.topic_partitions
    ]


# Operators


def _describe(request: HttpRequest, args: Args) -> WireRequest:
    return WireRequest("describe_groups", 6, {"groups": [group_of(request)]})


def _described(answer: Fields, sent: WireRequest) -> HttpAnswer:
    (group,) = answer.groups
    if group.error_code:
        return refused(group.error_code)
    members = [
        {
            **{name: member[name] for name in ("member_id", "group_instance_id", "client_id")},
            "metadata": _text(member.member_metadata),
            "assignment": _text(member.member_assignment),
        }
        for member in group.members
    ]
    told = {"type": "classic", "state": group.group_state, "protocol_type": group.protocol_type}
    return HttpAnswer(200, {**told, "protocol_name": group.protocol_data, "members": members})


def _describe_consumer(request: HttpRequest, args: Args) -> WireRequest:
    return WireRequest("consumer_group_describe", 1, {"group_ids": [group_of(request)]})


def _describe_share(request: HttpRequest, args: Args) -> WireRequest:
    return WireRequest("share_group_describe", 1, {"group_ids": [group_of(request)]})


def _epochs_described(answer: Fields, sent: WireRequest) -> HttpAnswer:
    """Members of share groups have no instance ids and no targets."""
    (group,) = answer.groups
    if group.error_code:
        return refused(group.error_code)
    members = [
        {
            **{name: member.get(name) for name in ("member_id", "rack_id", "member_epoch", *_SUBSCRIPTION)},
            "group_instance_id": member.get("instance_id"),
            "member_type": "consumer" if member.get("member_type", CONSUMER_MEMBER) == CONSUMER_MEMBER else "classic",
            "assignment": _partitions(member.assignment),
            "target_assignment": _partitions(member.target_assignment) if "target_assignment" in member else (),
        }
        for member in group.members
    ]
    told = {name: group[name] for name in ("group_epoch", "assignment_epoch")}
    told |= {"type": sent.api.split("_")[0], "state": group.group_state, "assignor": group.assignor_name}
    return HttpAnswer(200, {**told, "members": members})


def _delete(request: HttpRequest, args: Args) -> WireRequest:
    names = args.get("groups_names", args.get("group_ids", [args.get("group_id")]))
    return WireRequest("delete_groups", 2, {"groups_names": names})


def _deleted(answer: Fields, sent: WireRequest) -> HttpAnswer:
    (result,) = answer.results
    return refused(result.error_code) if result.error_code else HttpAnswer(204, {})


def _many_deleted(answer: Fields, sent: WireRequest) -> HttpAnswer:
    groups = [{"group_id": result.group_id, "error_code": result.error_code} for result in answer.results]
    return HttpAnswer(200, {"groups": groups})


def _list(request: HttpRequest, args: Args) -> WireRequest:
    filters = {name: list(args.get(name) or ()) for name in ("states_filter", "types_filter")}
    return WireRequest("list_groups", 5, filters)


def _listed(answer: Fields, sent: WireRequest) -> HttpAnswer:
    if answer.error_code:
        return refused(answer.error_code)
    groups = [
        {
            "group_id": group.group_id,
            "state": group.group_state,
            "type": group.group_type,
            "protocol_type": group.protocol_type,
        }
        for group in answer.groups
    ]
    return HttpAnswer(200, {"groups": groups, "next_cursor": None})


def _find(request: HttpRequest, args: Args) -> WireRequest:
    return WireRequest("find_coordinator", 4, {name: args[name] for name in ("key_type", "coordinator_keys")})


def _found(answer: Fields, sent: WireRequest) -> HttpAnswer:
    found = [
        {
            "key": entry.key,
            "error_code": entry.error_code,
            "node_id": entry.node_id if entry.node_id >= 0 else None,
            "partition": -1,
        }
        for entry in answer.coordinators
    ]
    return HttpAnswer(200, {"coordinators": found})


def _delete_topic(request: HttpRequest, args: Args) -> WireRequest:
    name = unquote(request.path.rpartition("/")[2])
    return WireRequest("delete_topics", 6, {"topics": [{"name": name}]})


def _topic_deleted(answer: Fields, sent: WireRequest) -> HttpAnswer:
    (result,) = answer.responses
    return refused(result.error_code) if result.error_code else HttpAnswer(204, {})


TRANSLATIONS: Mapping[str, Translation] = {
    "JoinGroup": Translation(_join, _joined),
    "SyncGroup": Translation(_sync, _synced),
    "Heartbeat": Translation(_heartbeat, _nothing),
    "LeaveGroup": Translation(_leave, _left),
    "ConsumerGroupHeartbeat": Translation(_beat, _beaten),
    "ShareGroupHeartbeat": Translation(_share_beat, _beaten),
    "OffsetCommit": Translation(wire_offsets.commit, wire_offsets.committed),
    "OffsetFetch": Translation(wire_offsets.fetch, wire_offsets.fetched),
    "OffsetDelete": Translation(wire_offsets.delete_offsets, wire_offsets.offsets_deleted),
    "TxnOffsetCommit": Translation(wire_offsets.txn_commit, wire_offsets.committed),
    "EndTxn": Translation(wire_offsets.end, _nothing),
    "DescribeGroup": Translation(_describe, _described),
    "DescribeGroups": Translation(_describe, _described),
    "ConsumerGroupDescribe": Translation(_describe_consumer, _epochs_described),
    "ShareGroupDescribe": Translation(_describe_share, _epochs_described),
    "DeleteGroup": Translation(_delete, _deleted),
    "DeleteGroups": Translation(_delete, _many_deleted),
    "ListGroups": Translation(_list, _listed),
    "FindCoordinator": Translation(_find, _found),
    "DeleteTopics": Translation(_delete_topic, _topic_deleted),
}
"""All calls of the conventions that have a request."""
