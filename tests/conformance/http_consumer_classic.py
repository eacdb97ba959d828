"""Members of the classic protocol in cases of the consumer convention: their bytes are a consumer's own.

The convention leaves out the protocol in most SyncGroups; http-api.md requires it, so it is the one that the
member's last join returned, which is what a client says.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

from kcoord.protocol import consumer_protocol as wire
from tests.conformance.consumer_terms import subscription
from tests.conformance.driver import BrokenPromise, Response
from tests.conformance.http_membership import HOLD_MS
from tests.conformance.http_terms import Args, Exchange, HttpAnswer, HttpRequest, group_path, single

PROTOCOL_TYPE = "consumer"

NO_PROTOCOL: Mapping[str, None] = {"protocol_type": None, "protocol_name": None}
"""What answers say of the protocol when they are refused."""

NOT_JOINED = "range"
"""What a member that has not joined says in a sync; it is refused for another reason."""


class ClassicCalls:
    """Join and sync. Which protocol was chosen is remembered, for a sync has to say it."""

    def __init__(self) -> None:
        self._chosen: dict[tuple[str, str], str] = {}
        self.exchanges: Mapping[str, Exchange] = {
            "JoinGroup": single(_join, self._read_join),
            "SyncGroup": single(self._sync, _read_sync),
        }

    def _read_join(self, answer: HttpAnswer, args: Args) -> Response:
        if answer.error != "NONE":
            nothing = {**NO_PROTOCOL, "generation_id": -1, "leader": "", "skip_assignment": False, "members": []}
            return {"error": answer.error, **nothing, "member_id": answer.body.get("member_id", args["member_id"])}
        self._chosen[args["group_id"], answer.body["member_id"]] = answer.body["protocol_name"]
        fields = ("member_id", "generation_id", *NO_PROTOCOL, "leader", "skip_assignment")
        members = [{"member_id": member["member_id"]} for member in answer.body["members"]]
        return {"error": "NONE", **{name: answer.body[name] for name in fields}, "members": members}

    def _sync(self, args: Args) -> HttpRequest:
        chosen = self._chosen.get((args["group_id"], args["member_id"]), NOT_JOINED)
        body = {
            "member_id": args["member_id"],
            "group_instance_id": args.get("instance_id"),
            "generation_id": args["generation_id"],
            "protocol_type": args.get("protocol_type", PROTOCOL_TYPE),
            "protocol_name": args.get("protocol_name", chosen),
            "assignments": [
                {"member_id": member_id, "assignment": _base64(wire.encode_assignment(_as_assignment(partitions)))}
                for member_id, partitions in args.get("assignments", {}).items()
            ],
            "max_wait_ms": HOLD_MS,
        }
        return HttpRequest("POST", group_path(args["group_id"], "/sync"), body)


def _join(args: Args) -> HttpRequest:
    body = {
        "member_id": args["member_id"],
        "group_instance_id": args.get("instance_id"),
        "session_timeout_ms": args["session_timeout_ms"],
        "rebalance_timeout_ms": args["rebalance_timeout_ms"],
        "protocol_type": args["protocol_type"],
        "protocols": [{"name": entry["name"], "metadata": _base64(subscription(entry))} for entry in args["protocols"]],
        "max_wait_ms": HOLD_MS,
    }
    return HttpRequest("POST", group_path(args["group_id"], "/join"), body)


def _as_assignment(partitions: Mapping[str, Sequence[int]]) -> wire.Assignment:
    return wire.Assignment({topic: tuple(numbers) for topic, numbers in partitions.items()})


def _read_sync(answer: HttpAnswer, args: Args) -> Response:
    if answer.error != "NONE":
        return {"error": answer.error, **NO_PROTOCOL, "assignment": {}}
    encoded = base64.b64decode(answer.body["assignment"], validate=True)
    assignment = wire.decode_assignment(encoded)
    if assignment is None and encoded:
        raise BrokenPromise(f"an assignment that no consumer can read: {encoded!r}")
    partitions = assignment.partitions if assignment is not None else {}
    told = {name: answer.body[name] for name in NO_PROTOCOL}
    return {"error": "NONE", **told, "assignment": {topic: sorted(numbers) for topic, numbers in partitions.items()}}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
