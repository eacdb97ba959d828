"""Commits, fetches and deletions of offsets as requests of Kafka's protocol, and their answers (`wire_terms`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from kcoord.door.kafka.codec import Fields
from tests.conformance.driver import BrokenPromise
from tests.conformance.http_terms import Args, HttpAnswer, HttpRequest
from tests.conformance.skips import OLDEST_OVER_THE_WIRE, RETENTION_TIME
from tests.conformance.wire_requests import WireRequest, body_of, group_of, refused, version_of

_TRANSACTION = re.compile(r"/v1/transactions/(?P<id>[^/]*)/end")


def _topics(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": topic["name"],
            "partitions": [
                {
                    "partition_index": entry["partition"],
                    "committed_offset": entry["committed_offset"],
                    "committed_leader_epoch": entry.get("committed_leader_epoch", -1),
                    "committed_metadata": entry.get("committed_metadata"),
                }
                for entry in topic["partitions"]
            ],
        }
        for topic in body["topics"]
    ]


def commit(request: HttpRequest, args: Args) -> WireRequest:
    body = body_of(request)
    has_retention = body["retention_time_ms"] != -1
    fields = {
        "group_id": group_of(request),
        "generation_id_or_member_epoch": body["generation_id_or_member_epoch"],
        "member_id": body["member_id"],
        "group_instance_id": body["group_instance_id"],
        "retention_time": body["retention_time_ms"],
        "topics": _topics(body),
    }
    version = max(version_of("OffsetCommit", args), OLDEST_OVER_THE_WIRE["OffsetCommit"])
    version = RETENTION_TIME if has_retention else version
    return WireRequest("offset_commit", version, fields)


def txn_commit(request: HttpRequest, args: Args) -> WireRequest:
    body = body_of(request)
    fields = {**body, "group_id": group_of(request), "topics": _topics(body)}
    return WireRequest("txn_offset_commit", 3, fields)


def committed(answer: Fields, sent: WireRequest) -> HttpAnswer:
    """An error that all partitions have is taken for that of the request: there is no other room for it."""
    topics = _results(answer)
    codes = {entry["error_code"] for topic in topics for entry in topic["partitions"]}
    if len(codes) == 1 and (code := codes.pop()):
        return refused(code)
    return HttpAnswer(200, {"topics": topics})


def _results(answer: Fields) -> list[dict[str, Any]]:
    return [
        {
            "name": topic.name,
            "partitions": [{"partition": p.partition_index, "error_code": p.error_code} for p in topic.partitions],
        }
        for topic in answer.topics
    ]


def end(request: HttpRequest, args: Args) -> WireRequest:
    found = _TRANSACTION.match(request.path)
    if found is None:
        raise BrokenPromise(f"{request.path} names no transaction")
    return WireRequest("end_txn", 4, {"transactional_id": unquote(found["id"]), **body_of(request)})


def fetch(request: HttpRequest, args: Args) -> WireRequest:
    body = body_of(request)
    groups = body["groups"] if "groups" in body else [{"group_id": group_of(request), **body}]
    asked = [
        {
            "group_id": group["group_id"],
            "member_id": group["member_id"],
            "member_epoch": group["member_epoch"],
            "topics": None
            if group["topics"] is None
            else [{"name": topic["name"], "partition_indexes": topic["partitions"]} for topic in group["topics"]],
        }
        for group in groups
    ]
    fields = {"groups": asked, "require_stable": body["require_stable"]}
    return WireRequest("offset_fetch", version_of("OffsetFetch", args), fields)


def fetched(answer: Fields, sent: WireRequest) -> HttpAnswer:
    groups = [
        {
            "group_id": group.group_id,
            "error_code": group.error_code,
            "topics": [
                {"name": topic.name, "partitions": [_offset(entry) for entry in topic.partitions]}
                for topic in group.topics
            ],
        }
        for group in answer.groups
    ]
    if len(groups) > 1:
        return HttpAnswer(200, {"groups": groups})
    return refused(groups[0]["error_code"]) if groups[0]["error_code"] else HttpAnswer(200, groups[0])


def _offset(entry: Fields) -> dict[str, Any]:
    """Of an offset; Kafka's protocol does not tell when it was committed."""
    fields = ("committed_offset", "committed_leader_epoch", "metadata", "error_code")
    return {"partition": entry.partition_index, "commit_timestamp": None, **{name: entry[name] for name in fields}}


def delete_offsets(request: HttpRequest, args: Args) -> WireRequest:
    topics = [
        {"name": topic["name"], "partitions": [{"partition_index": p} for p in topic["partitions"]]}
        for topic in body_of(request)["topics"]
    ]
    return WireRequest("offset_delete", 0, {"group_id": group_of(request), "topics": topics})


def offsets_deleted(answer: Fields, sent: WireRequest) -> HttpAnswer:
    return refused(answer.error_code) if answer.error_code else HttpAnswer(200, {"topics": _results(answer)})
