"""Membership calls over HTTP: join, sync, heartbeat, leave (http-api.md 2)."""

from __future__ import annotations

from collections.abc import Mapping

from tests.conformance.driver import Response
from tests.conformance.http_terms import (
    Args,
    Exchange,
    HttpAnswer,
    HttpRequest,
    decode,
    encode,
    error_name,
    group_path,
    read_error,
    single,
)

HOLD_MS = 3_600_000
"""How long a request may be held: the most that the setting `http.max.wait.ms` can be; no case parks that long."""


def _join(args: Args) -> HttpRequest:
    body = {
        "member_id": args["member_id"],
        "group_instance_id": args.get("group_instance_id"),
        "client_id": args.get("client_id", ""),
        "session_timeout_ms": args["session_timeout_ms"],
        "rebalance_timeout_ms": args["rebalance_timeout_ms"],
        "protocol_type": args["protocol_type"],
        "protocols": [{"name": p["name"], "metadata": encode(p["metadata"])} for p in args["protocols"]],
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
        told = answer.body
        if answer.error == "INVALID_GROUP_ID":
            told = args  # the path is refused before the body is read
        return refused | ({"member_id": told["member_id"]} if "member_id" in told else {})
    fields = ("member_id", "generation_id", "leader", "protocol_type", "protocol_name", "skip_assignment")
    members = [
        {
            "member_id": member["member_id"],
            "group_instance_id": member["group_instance_id"],
            "metadata": decode(member["metadata"]),
        }
        for member in answer.body["members"]
    ]
    return {"error": "NONE", **{name: answer.body[name] for name in fields}, "members": members}


def _sync(args: Args) -> HttpRequest:
    body = {
        "member_id": args["member_id"],
        "group_instance_id": args.get("group_instance_id"),
        "generation_id": args["generation_id"],
        "protocol_type": args["protocol_type"],
        "protocol_name": args["protocol_name"],
        "assignments": [
            {"member_id": entry["member_id"], "assignment": encode(entry["assignment"])}
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
        "assignment": decode(answer.body["assignment"]),
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
            "error": error_name(entry["error_code"]),
        }
        for entry in answer.body.get("members", ())
    ]
    error = answer.error
    if "members" not in args and error == "NONE":
        error = members[0]["error"]  # the offsets convention: one member, its error at the top
    return {"error": error, "members": members}


EXCHANGES: Mapping[str, Exchange] = {
    "JoinGroup": single(_join, _read_join),
    "SyncGroup": single(_sync, _read_sync),
    "Heartbeat": single(_heartbeat, read_error),
    "LeaveGroup": single(_leave, _read_leave),
}
