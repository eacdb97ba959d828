"""Commit and fetch over HTTP (http-api.md 2, "commit, fetch")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.conformance.driver import Response
from tests.conformance.http_terms import Args, Exchange, HttpAnswer, HttpRequest, error_name, group_path, single

PROBE_TOPIC = "conformance-probe"
"""The classic convention commits without naming offsets; over HTTP a commit needs a partition that exists."""


def _commit(args: Args) -> HttpRequest:
    body: dict[str, Any] = {
        "member_id": args.get("member_id", ""),
        "group_instance_id": args.get("group_instance_id"),
        "generation_id_or_member_epoch": args.get("generation_id_or_member_epoch", args.get("generation_id", -1)),
        "retention_time_ms": args.get("retention_time_ms", -1),
    }
    offsets = {PROBE_TOPIC: {"0": 0}} if "generation_id" in args else args["offsets"]
    body["topics"] = commit_topics(offsets)
    return HttpRequest("POST", group_path(args["group_id"], "/offsets/commit"), body)


def commit_topics(offsets: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The `offsets` of a commit as requests have them."""
    return [
        {"name": topic, "partitions": [_commit_partition(number, value) for number, value in partitions.items()]}
        for topic, partitions in offsets.items()
    ]


def _commit_partition(number: str, value: int | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(value, int):
        return {"partition": int(number), "committed_offset": value}
    partition = {"partition": int(number), "committed_offset": value["offset"]}
    if "leader_epoch" in value:
        partition["committed_leader_epoch"] = value["leader_epoch"]
    if value.get("metadata") is not None:
        partition["committed_metadata"] = value["metadata"]
    return partition


def read_commit(answer: HttpAnswer, args: Args) -> Response:
    """A problem concerns every partition that it does not name; the classic convention has one, told at the top."""
    if answer.error != "NONE":
        partitions = {topic: dict.fromkeys(numbers, answer.error) for topic, numbers in args.get("offsets", {}).items()}
        for own in answer.body.get("partition_errors", ()):
            partitions[own["topic"]][str(own["partition"])] = own["error"]
        return {"error": answer.error, "partitions": partitions}
    partitions = {
        topic["name"]: {str(entry["partition"]): error_name(entry["error_code"]) for entry in topic["partitions"]}
        for topic in answer.body["topics"]
    }
    error = partitions[PROBE_TOPIC]["0"] if PROBE_TOPIC in partitions else "NONE"
    return {"error": error, "partitions": partitions}


def _fetch(args: Args) -> HttpRequest:
    groups = [_fetch_group(group) for group in args["groups"]]
    stable = args.get("require_stable", False)
    if len(groups) > 1:
        return HttpRequest("POST", "/v1/offsets/fetch", {"groups": groups, "require_stable": stable})
    body = {**groups[0], "require_stable": stable}
    return HttpRequest("POST", group_path(body.pop("group_id"), "/offsets/fetch"), body)


def _fetch_group(group: Args) -> dict[str, Any]:
    topics = group.get("topics")
    named = None if topics is None else [{"name": name, "partitions": numbers} for name, numbers in topics.items()]
    return {
        "group_id": group["group_id"],
        "member_id": group.get("member_id"),
        "member_epoch": group.get("member_epoch", -1),
        "topics": named,
    }


def _read_fetch(answer: HttpAnswer, args: Args) -> Response:
    ids = [group["group_id"] for group in args["groups"]]
    if answer.error != "NONE":
        return {"groups": {group_id: {"error": answer.error, "offsets": {}} for group_id in ids}}
    answers = answer.body["groups"] if len(ids) > 1 else [{"group_id": ids[0], "error_code": 0, **answer.body}]
    return {
        "groups": {
            group["group_id"]: {"error": error_name(group["error_code"]), "offsets": _fetched(group["topics"])}
            for group in answers
        }
    }


def _fetched(topics: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    return {
        topic["name"]: {
            str(entry["partition"]): {
                "error": error_name(entry["error_code"]),
                "offset": entry["committed_offset"],
                "leader_epoch": entry["committed_leader_epoch"],
                "metadata": entry["metadata"],
                "commit_timestamp": entry["commit_timestamp"],
            }
            for entry in topic["partitions"]
        }
        for topic in topics
    }


EXCHANGES: Mapping[str, Exchange] = {
    "OffsetCommit": single(_commit, read_commit),
    "OffsetFetch": single(_fetch, _read_fetch),
}
