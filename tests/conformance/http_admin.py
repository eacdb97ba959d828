"""Calls of operators over HTTP: list, describe, delete, find the coordinator (http-api.md 2 and 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from tests.conformance.driver import BrokenPromise, Response
from tests.conformance.http_terms import (
    Args,
    Exchange,
    HttpAnswer,
    HttpRequest,
    decode,
    error_name,
    group_path,
    read_error,
    single,
)

DEAD: Mapping[str, Any] = {
    "error": "NONE",
    "state": "Dead",
    "protocol_type": "",
    "protocol_name": "",
    "members": [],
}
"""What Kafka says of a group that does not exist: no error."""


def _describe(group_id: str) -> HttpRequest:
    return HttpRequest("GET", group_path(group_id))


def _delete(group_id: str) -> HttpRequest:
    return HttpRequest("DELETE", group_path(group_id))


def _described(answer: HttpAnswer) -> Mapping[str, Any]:
    """The description in the words of DescribeGroups."""
    if answer.error == "GROUP_ID_NOT_FOUND":
        return DEAD
    if answer.error != "NONE":
        return {"error": answer.error, "state": "", "protocol_type": "", "protocol_name": "", "members": []}
    if answer.body["type"] != "classic":
        return DEAD  # to DescribeGroups, which knows nothing else, a consumer group is no group
    members = [
        {
            "member_id": member["member_id"],
            "group_instance_id": member["group_instance_id"],
            "client_id": member["client_id"],
            "metadata": member["metadata"],
            "assignment": member["assignment"],
        }
        for member in answer.body["members"]
    ]
    fields = ("state", "protocol_type", "protocol_name")
    return {"error": "NONE", **{name: answer.body[name] for name in fields}, "members": members}


def _read_describe(answer: HttpAnswer, args: Args) -> Response:
    """The classic convention: one group, its members' bytes are texts."""
    described = _described(answer)
    members = [
        {**member, "metadata": decode(member["metadata"]), "assignment": decode(member["assignment"])}
        for member in described["members"]
    ]
    return {**described, "members": members}


def _read_describes(answers: Sequence[HttpAnswer], args: Args) -> Response:
    """The offsets convention: groups and members by id; of the metadata only whether there is any."""
    groups = {}
    for group_id, answer in zip(args["groups"], answers, strict=True):
        described = _described(answer)
        groups[group_id] = {
            "error": described["error"],
            "state": described["state"],
            "protocol_type": described["protocol_type"],
            "protocol_data": described["protocol_name"],
            "members": {
                member["member_id"]: {**member, "metadata_present": bool(member["metadata"])}
                for member in described["members"]
            },
        }
    return {"groups": groups}


def _delete_many(args: Args) -> HttpRequest:
    return HttpRequest("DELETE", f"/v1/groups?{urlencode([('group_id', name) for name in args['groups_names']])}")


def _read_deletes(answer: HttpAnswer, args: Args) -> Response:
    """A result for each group; a problem concerns all of them."""
    if answer.error != "NONE":
        return {"results": dict.fromkeys(args["groups_names"], answer.error)}
    return {"results": {group["group_id"]: error_name(group["error_code"]) for group in answer.body["groups"]}}


def _list(args: Args) -> HttpRequest:
    filters = [("state", state) for state in args.get("states_filter", [])] + [
        ("type", kind) for kind in args.get("types_filter", [])
    ]
    return HttpRequest("GET", f"/v1/groups?{urlencode(filters)}" if filters else "/v1/groups")


def _read_list(answer: HttpAnswer, args: Args) -> Response:
    if answer.error != "NONE":
        return {"error": answer.error, "groups": {}}
    if answer.body["next_cursor"] is not None:
        raise BrokenPromise("the groups of a case do not fit into one page")
    fields = ("state", "type", "protocol_type")
    groups = {group["group_id"]: {name: group[name] for name in fields} for group in answer.body["groups"]}
    return {"error": "NONE", "groups": groups}


def _find(args: Args) -> HttpRequest:
    return HttpRequest("GET", f"/v1/coordinator?{urlencode([('group_id', key) for key in args['coordinator_keys']])}")


def _read_find(answer: HttpAnswer, args: Args) -> Response:
    """The convention numbers nodes; ours have names, so the only one is number 0."""
    if answer.error != "NONE":
        failed = {"error": answer.error, "node_id": -1, "partition": -1}
        return {"coordinators": dict.fromkeys(args["coordinator_keys"], failed)}
    return {
        "coordinators": {
            found["key"]: {
                "error": error_name(found["error_code"]),
                "node_id": 0 if found["node_id"] else -1,
                "partition": found["partition"],
            }
            for found in answer.body["coordinators"]
        }
    }


EXCHANGES: Mapping[str, Exchange] = {
    "DescribeGroup": single(lambda args: _describe(args["group_id"]), _read_describe),
    "DescribeGroups": Exchange(lambda args: [_describe(group_id) for group_id in args["groups"]], _read_describes),
    "DeleteGroup": single(lambda args: _delete(args["group_id"]), read_error),
    "DeleteGroups": single(_delete_many, _read_deletes),
    "ListGroups": single(_list, _read_list),
    "FindCoordinator": single(_find, _read_find),
}
