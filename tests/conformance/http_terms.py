"""Between the terms of the conventions and the HTTP contract: one request and one reading of its response per call."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kcoord.errors import BY_CODE
from tests.conformance.driver import BrokenPromise, Response

HOLD_MS = 3_600_000
"""How long a request may be held: the most that the setting `http.max.wait.ms` can be; no case parks that long."""

PROBE_TOPIC = "conformance-probe"
"""The classic convention commits without naming offsets; over HTTP a commit needs a partition that exists."""

Args = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What is sent. `body` None: no body."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What came back: the status and the JSON body."""

    status: int
    body: Mapping[str, Any]

    @property
    def error(self) -> str:
        """The error's name; NONE for a success. Raises BrokenPromise for a failure that is no problem body."""
        if self.status < 400:
            return "NONE"
        error = self.body.get("error")
        if not isinstance(error, str):
            raise BrokenPromise(f"status {self.status} without an error name: {self.body!r}")
        return error


@dataclass(frozen=True, slots=True)
class Exchange:
    """How one call travels."""

    request: Callable[[Args], HttpRequest]
    read: Callable[[HttpAnswer, Args], Response]


def group_path(group_id: str, rest: str = "") -> str:
    """The path of a group, percent-encoded, and what follows it."""
    return f"/v1/groups/{quote(group_id, safe='')}{rest}"


def _name(error_code: int) -> str:
    return BY_CODE[error_code].name


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decode(encoded: str) -> str:
    return base64.b64decode(encoded, validate=True).decode()


def _join(args: Args) -> HttpRequest:
    body = {
        "member_id": args["member_id"],
        "group_instance_id": args["group_instance_id"],
        "client_id": args["client_id"],
        "session_timeout_ms": args["session_timeout_ms"],
        "rebalance_timeout_ms": args["rebalance_timeout_ms"],
        "protocol_type": args["protocol_type"],
        "protocols": [{"name": p["name"], "metadata": _encode(p["metadata"])} for p in args["protocols"]],
        "max_wait_ms": HOLD_MS,
    }
    return HttpRequest("POST", group_path(args["group_id"], "/join"), body)


def _read_join(answer: HttpAnswer, args: Args) -> Response:
    if answer.error != "NONE":
        refused = {
            "error": answer.error,
            "generation_id": -1,
            "leader": "",
            "protocol_type": None,
            "protocol_name": None,
            "skip_assignment": False,
            "members": [],
        }
        return refused | ({"member_id": answer.body["member_id"]} if "member_id" in answer.body else {})
    fields = ("member_id", "generation_id", "leader", "protocol_type", "protocol_name", "skip_assignment")
    members = [
        {
            "member_id": member["member_id"],
            "group_instance_id": member["group_instance_id"],
            "metadata": _decode(member["metadata"]),
        }
        for member in answer.body["members"]
    ]
    return {"error": "NONE", **{name: answer.body[name] for name in fields}, "members": members}


def _sync(args: Args) -> HttpRequest:
    body = {
        "member_id": args["member_id"],
        "group_instance_id": args["group_instance_id"],
        "generation_id": args["generation_id"],
        "protocol_type": args["protocol_type"],
        "protocol_name": args["protocol_name"],
        "assignments": [
            {"member_id": entry["member_id"], "assignment": _encode(entry["assignment"])}
            for entry in args["assignments"]
        ],
        "max_wait_ms": HOLD_MS,
    }
    return HttpRequest("POST", group_path(args["group_id"], "/sync"), body)


def _read_sync(answer: HttpAnswer, args: Args) -> Response:
    if answer.error != "NONE":
        return {"error": answer.error, "protocol_type": None, "protocol_name": None, "assignment": ""}
    return {
        "error": "NONE",
        "protocol_type": answer.body["protocol_type"],
        "protocol_name": answer.body["protocol_name"],
        "assignment": _decode(answer.body["assignment"]),
    }


def _heartbeat(args: Args) -> HttpRequest:
    body = {
        "member_id": args["member_id"],
        "generation_id": args["generation_id"],
        "group_instance_id": args.get("group_instance_id"),
    }
    return HttpRequest("POST", group_path(args["group_id"], "/heartbeat"), body)


def _leave(args: Args) -> HttpRequest:
    members = args["members"] if "members" in args else [{"member_id": args["member_id"]}]
    return HttpRequest("POST", group_path(args["group_id"], "/leave"), {"members": members})


def _read_leave(answer: HttpAnswer, args: Args) -> Response:
    members = [
        {
            "member_id": entry["member_id"],
            "group_instance_id": entry["group_instance_id"],
            "error": _name(entry["error_code"]),
        }
        for entry in answer.body.get("members", ())
    ]
    error = answer.error
    if "members" not in args and error == "NONE":
        error = members[0]["error"]  # the offsets convention: one member, its error at the top
    return {"error": error, "members": members}


def _commit(args: Args) -> HttpRequest:
    body: dict[str, Any] = {
        "member_id": args.get("member_id", ""),
        "group_instance_id": args.get("group_instance_id"),
        "generation_id_or_member_epoch": args.get("generation_id_or_member_epoch", args.get("generation_id", -1)),
        "retention_time_ms": args.get("retention_time_ms", -1),
    }
    offsets = args.get("offsets", {PROBE_TOPIC: {"0": 0}})
    body["topics"] = [
        {"name": topic, "partitions": [_commit_partition(number, value) for number, value in partitions.items()]}
        for topic, partitions in offsets.items()
    ]
    return HttpRequest("POST", group_path(args["group_id"], "/offsets/commit"), body)


def _commit_partition(number: str, value: int | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(value, int):
        return {"partition": int(number), "committed_offset": value}
    partition = {"partition": int(number), "committed_offset": value["offset"]}
    if "leader_epoch" in value:
        partition["committed_leader_epoch"] = value["leader_epoch"]
    if value.get("metadata") is not None:
        partition["committed_metadata"] = value["metadata"]
    return partition


def _read_commit(answer: HttpAnswer, args: Args) -> Response:
    """A problem concerns every partition; the classic convention has one partition and its error at the top."""
    if answer.error != "NONE":
        partitions = {topic: dict.fromkeys(numbers, answer.error) for topic, numbers in args.get("offsets", {}).items()}
        return {"error": answer.error, "partitions": partitions}
    partitions = {
        topic["name"]: {str(entry["partition"]): _name(entry["error_code"]) for entry in topic["partitions"]}
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
    topics = group["topics"]
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
            group["group_id"]: {"error": _name(group["error_code"]), "offsets": _fetched(group["topics"])}
            for group in answers
        }
    }


def _fetched(topics: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    return {
        topic["name"]: {
            str(entry["partition"]): {
                "error": _name(entry["error_code"]),
                "offset": entry["committed_offset"],
                "leader_epoch": entry["committed_leader_epoch"],
                "metadata": entry["metadata"],
                "commit_timestamp": entry["commit_timestamp"],
            }
            for entry in topic["partitions"]
        }
        for topic in topics
    }


def _read_error(answer: HttpAnswer, args: Args) -> Response:
    return {"error": answer.error}


EXCHANGES: Mapping[str, Exchange] = {
    "JoinGroup": Exchange(_join, _read_join),
    "SyncGroup": Exchange(_sync, _read_sync),
    "Heartbeat": Exchange(_heartbeat, _read_error),
    "LeaveGroup": Exchange(_leave, _read_leave),
    "OffsetCommit": Exchange(_commit, _read_commit),
    "OffsetFetch": Exchange(_fetch, _read_fetch),
    "DeleteGroup": Exchange(lambda args: HttpRequest("DELETE", group_path(args["group_id"])), _read_error),
}
