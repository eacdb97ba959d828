"""Between the terms of the conventions and the values of the core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from groups.core.model import commands as c
from groups.core.model import replies as r
from groups.core.model.types import ClassicGroup, GroupState, Millis, Protocol
from tests.conformance.driver import NoDriver, Response

FOREVER_MS: Millis = 10**12
"""A parked request is held at most this long: no case is that long, so the hold never ends by itself."""


def command(name: str, args: Mapping[str, Any]) -> c.Command:
    """The command of a call. Raises NoDriver when the core has none, or none with these arguments."""
    build = _COMMANDS.get(name)
    if build is None:
        raise NoDriver(f"no driver for call {name} through core")
    try:
        return build(args)
    except KeyError as error:
        raise NoDriver(f"no driver for call {name} without {error} through core") from error


def _join(args: Mapping[str, Any]) -> c.JoinGroup:
    return c.JoinGroup(
        group_id=args["group_id"],
        member_id=args["member_id"],
        group_instance_id=args["group_instance_id"],
        client_id=args["client_id"],
        client_host="127.0.0.1",
        session_timeout_ms=args["session_timeout_ms"],
        rebalance_timeout_ms=args["rebalance_timeout_ms"],
        protocol_type=args["protocol_type"],
        protocols=tuple(Protocol(entry["name"], entry["metadata"].encode()) for entry in args["protocols"]),
        max_wait_ms=FOREVER_MS,
    )


def _sync(args: Mapping[str, Any]) -> c.SyncGroup:
    return c.SyncGroup(
        group_id=args["group_id"],
        member_id=args["member_id"],
        group_instance_id=args["group_instance_id"],
        generation_id=args["generation_id"],
        protocol_type=args["protocol_type"],
        protocol_name=args["protocol_name"],
        assignments={entry["member_id"]: entry["assignment"].encode() for entry in args["assignments"]},
        max_wait_ms=FOREVER_MS,
    )


def _heartbeat(args: Mapping[str, Any]) -> c.Heartbeat:
    return c.Heartbeat(args["group_id"], args["member_id"], args.get("group_instance_id"), args["generation_id"])


def _leave(args: Mapping[str, Any]) -> c.LeaveGroup:
    members = tuple(c.LeavingMember(entry["member_id"], entry.get("group_instance_id")) for entry in args["members"])
    return c.LeaveGroup(args["group_id"], members)


def _commit(args: Mapping[str, Any]) -> c.CommitOffsets:
    return c.CommitOffsets(args["group_id"], args["member_id"], args["group_instance_id"], args["generation_id"])


_COMMANDS: Mapping[str, Callable[[Mapping[str, Any]], c.Command]] = {
    "JoinGroup": _join,
    "SyncGroup": _sync,
    "Heartbeat": _heartbeat,
    "LeaveGroup": _leave,
    "OffsetCommit": _commit,
    "DeleteGroup": lambda args: c.DeleteGroup(args["group_id"]),
    "ForceState": lambda args: c.ForceState(args["group_id"], GroupState(args["state"])),
}


def response(reply: r.Reply) -> Response:
    """A reply in the terms of the conventions."""
    match reply:
        case r.JoinReply():
            return {
                "error": reply.error.name,
                "member_id": reply.member_id,
                "generation_id": reply.generation_id,
                "leader": reply.leader,
                "protocol_type": reply.protocol_type,
                "protocol_name": reply.protocol_name,
                "skip_assignment": reply.skip_assignment,
                "members": [
                    {
                        "member_id": member.member_id,
                        "group_instance_id": member.group_instance_id,
                        "metadata": member.metadata.decode(),
                    }
                    for member in reply.members
                ],
            }
        case r.SyncReply():
            return {
                "error": reply.error.name,
                "protocol_type": reply.protocol_type,
                "protocol_name": reply.protocol_name,
                "assignment": reply.assignment.decode(),
            }
        case r.LeaveReply():
            left = [
                {
                    "member_id": member.member_id,
                    "group_instance_id": member.group_instance_id,
                    "error": member.error.name,
                }
                for member in reply.members
            ]
            return {"error": reply.error.name, "members": left}
        case r.HeartbeatReply() | r.CommitReply() | r.ConsumerHeartbeatReply() | r.Done():
            return {"error": reply.error.name}


def refused(name: str, args: Mapping[str, Any], error: str) -> Response:
    """The response to a call that never reached the core: an error of the service."""
    match name:
        case "JoinGroup":
            return {
                "error": error,
                "member_id": args["member_id"],
                "generation_id": -1,
                "leader": "",
                "protocol_type": None,
                "protocol_name": None,
                "skip_assignment": False,
                "members": [],
            }
        case "SyncGroup":
            return {"error": error, "protocol_type": None, "protocol_name": None, "assignment": ""}
        case "LeaveGroup":
            return {"error": error, "members": []}
        case _:
            return {"error": error}


def inspected(group: ClassicGroup | None) -> Response:
    """The stored group as `inspect` shows it."""
    if group is None:
        return {"exists": False}
    members = group.members.values()
    return {
        "exists": True,
        "type": "classic",
        "state": group.state.value,
        "generation_id": group.generation_id,
        "member_count": len(group.members),
        "pending_member_count": len(group.pending_join),
        "awaiting_join_count": sum(member.awaiting_join for member in members),
        "pending_sync_count": sum(member.pending_sync for member in members),
        "leader": group.leader_id,
        "protocol_type": group.protocol_type,
        "protocol_name": group.protocol_name,
        "member_ids": list(group.members),
    }


def _text(data: bytes) -> str:
    """Bytes of a member as the convention writes them; those of a consumer are no text, and only looked for."""
    return data.decode(errors="replace")


def described(group: ClassicGroup | None) -> Response:
    """DescribeGroups' view of a group (classic.md 1): metadata and protocol name in Stable only."""
    if group is None:
        return {"error": "NONE", "state": "Dead", "protocol_type": "", "protocol_name": "", "members": []}
    stable = group.state is GroupState.STABLE
    return {
        "error": "NONE",
        "state": group.state.value,
        "protocol_type": group.protocol_type or "",
        "protocol_name": (group.protocol_name or "") if stable else "",
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.instance_id,
                "client_id": member.client_id,
                "metadata": next(
                    (_text(p.metadata) for p in member.protocols if stable and p.name == group.protocol_name), ""
                ),
                "assignment": _text(member.assignment),
            }
            for member in group.members.values()
        ],
    }
