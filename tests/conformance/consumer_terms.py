"""Between the terms of the consumer convention and the values of the core.

Partitions are written by topic name in the convention and by topic id in the core. Subscriptions and assignments of
classic members travel as ConsumerProtocol bytes. Source: consumer.md 0.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from groups.core.model import commands as c
from groups.core.model import replies as r
from groups.core.model.consumer_group import ConsumerMember, EpochGroup, merged
from groups.core.model.types import ConsumerProtocol, Protocol, Topic
from kcoord.protocol import consumer_protocol as wire
from tests.conformance.core_terms import FOREVER_MS
from tests.conformance.driver import NoDriver, Response

Args = Mapping[str, Any]
Rename = Callable[[str], str]

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1

_STORED_AS_THEY_ARE = ("instance_id", "rack_id", "rebalance_timeout_ms", "server_assignor", "subscribed_topic_regex")

CODEC = ConsumerProtocol(
    decode_subscription=wire.decode_subscription,
    decode_assignment=wire.decode_assignment,
    encode_assignment=lambda partitions, version: wire.encode_assignment(wire.Assignment(partitions, version=version)),
)


def regex_error(pattern: str) -> str | None:
    """What is wrong with a pattern. Python's syntax stands in for RE2's."""
    try:
        re.compile(pattern)
    except re.error as error:
        return str(error)
    return None


def matches(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """The names that a pattern matches as a whole."""
    return frozenset(name for name in names if re.fullmatch(pattern, name))


def command(name: str, args: Args, topic_id: Rename) -> c.Command:
    """The command of a call. Raises NoDriver for a call that the core does not have."""
    build = _COMMANDS.get(name)
    if build is None:
        raise NoDriver(f"no driver for call {name} through core")
    return build(args, topic_id)


def _consumer_heartbeat(args: Args, topic_id: Rename) -> c.ConsumerHeartbeat:
    names, owned = args.get("subscribed_topic_names"), args.get("topic_partitions")
    return c.ConsumerHeartbeat(
        group_id=args["group_id"],
        member_id=args["member_id"],
        member_epoch=args["member_epoch"],
        instance_id=args.get("instance_id"),
        rack_id=args.get("rack_id"),
        client_id="conformance",
        client_host="127.0.0.1",
        rebalance_timeout_ms=args.get("rebalance_timeout_ms", -1),
        subscribed_topic_names=frozenset(names) if names is not None else None,
        subscribed_topic_regex=args.get("subscribed_topic_regex"),
        server_assignor=args.get("server_assignor"),
        topic_partitions={topic_id(topic): frozenset(numbers) for topic, numbers in owned.items()}
        if owned is not None
        else None,
    )


def _share_heartbeat(args: Args, topic_id: Rename) -> c.ShareHeartbeat:
    names = args.get("subscribed_topic_names")
    return c.ShareHeartbeat(
        group_id=args["group_id"],
        member_id=args["member_id"],
        member_epoch=args["member_epoch"],
        rack_id=args.get("rack_id"),
        client_id="conformance",
        client_host="127.0.0.1",
        subscribed_topic_names=frozenset(names) if names is not None else None,
    )


def _join(args: Args, topic_id: Rename) -> c.JoinGroup:
    return c.JoinGroup(
        group_id=args["group_id"],
        member_id=args["member_id"],
        group_instance_id=args.get("instance_id"),
        client_id="conformance",
        client_host="127.0.0.1",
        session_timeout_ms=args["session_timeout_ms"],
        rebalance_timeout_ms=args["rebalance_timeout_ms"],
        protocol_type=args["protocol_type"],
        protocols=tuple(Protocol(entry["name"], subscription(entry)) for entry in args["protocols"]),
        max_wait_ms=FOREVER_MS,
    )


def subscription(entry: Args) -> bytes:
    """The metadata of one protocol of a JoinGroup; a text that is no consumer's, as the classic convention has it."""
    if "metadata" in entry:
        return str(entry["metadata"]).encode()
    return wire.encode_subscription(
        wire.Subscription(
            topics=tuple(entry["topics"]),
            owned_partitions={topic: tuple(numbers) for topic, numbers in entry["owned"].items()},
            generation_id=entry["generation"],
            version=entry["version"],
        )
    )


def _sync(args: Args, topic_id: Rename) -> c.SyncGroup:
    assignments = {
        member_id: wire.encode_assignment(
            wire.Assignment({topic: tuple(numbers) for topic, numbers in partitions.items()})
        )
        for member_id, partitions in args.get("assignments", {}).items()
    }
    return c.SyncGroup(
        group_id=args["group_id"],
        member_id=args["member_id"],
        group_instance_id=args.get("instance_id"),
        generation_id=args["generation_id"],
        protocol_type=args.get("protocol_type"),
        protocol_name=args.get("protocol_name"),
        assignments=assignments,
        max_wait_ms=FOREVER_MS,
    )


def _heartbeat(args: Args, topic_id: Rename) -> c.Heartbeat:
    return c.Heartbeat(args["group_id"], args["member_id"], args.get("instance_id"), args["generation_id"])


def _leave(args: Args, topic_id: Rename) -> c.LeaveGroup:
    """One member may stand at the top."""
    entries = args.get("members", (args,))
    return c.LeaveGroup(
        args["group_id"], tuple(c.LeavingMember(entry.get("member_id", ""), instance_of(entry)) for entry in entries)
    )


def instance_of(entry: Args) -> str | None:
    """The instance id of a member that leaves, which the files name in two ways."""
    instance_id: str | None = entry.get("instance_id", entry.get("group_instance_id"))
    return instance_id


_COMMANDS: Mapping[str, Callable[[Args, Rename], c.Command]] = {
    "ConsumerGroupHeartbeat": _consumer_heartbeat,
    "ShareGroupHeartbeat": _share_heartbeat,
    "JoinGroup": _join,
    "SyncGroup": _sync,
    "Heartbeat": _heartbeat,
    "LeaveGroup": _leave,
    "DeleteGroup": lambda args, topic_id: c.DeleteGroup(args["group_id"]),
}


def response(reply: r.Reply, topic_name: Rename) -> Response:
    """A reply in the terms of the convention."""
    match reply:
        case r.ConsumerHeartbeatReply():
            assignment = None if reply.assignment is None else by_name(reply.assignment, topic_name)
            return {
                "error": reply.error.name,
                "member_id": reply.member_id,
                "member_epoch": reply.member_epoch,
                "heartbeat_interval_ms": reply.heartbeat_interval_ms,
                "assignment": assignment,
            }
        case r.JoinReply():
            return {
                "error": reply.error.name,
                "member_id": reply.member_id,
                "generation_id": reply.generation_id,
                "protocol_type": reply.protocol_type,
                "protocol_name": reply.protocol_name,
                "leader": reply.leader,
                "skip_assignment": reply.skip_assignment,
                "members": [{"member_id": member.member_id} for member in reply.members],
            }
        case r.SyncReply():
            decoded = wire.decode_assignment(reply.assignment)
            partitions = decoded.partitions if decoded is not None else {}
            return {
                "error": reply.error.name,
                "protocol_type": reply.protocol_type,
                "protocol_name": reply.protocol_name,
                "assignment": {topic: sorted(numbers) for topic, numbers in partitions.items()},
            }
        case r.LeaveReply():
            return left(reply.error.name, [(e.member_id, e.group_instance_id, e.error.name) for e in reply.members])
        case _:
            return {"error": reply.error.name}


def left(error: str, members: Sequence[tuple[str, str | None, str]]) -> Response:
    """The answer of a LeaveGroup: (member id, instance id, error) of each."""
    shown = [
        {"member_id": member_id, "instance_id": instance_id, "group_instance_id": instance_id, "error": name}
        for member_id, instance_id, name in members
    ]
    return {"error": error, "members": shown}


def of_one(response: Response, args: Args) -> Response:
    """The answer to a LeaveGroup of one member that stands at the top: so does its error."""
    if "members" in args or response["error"] != "NONE":
        return response
    return {**response, "error": response["members"][0]["error"]}


def group_ids(args: Args) -> Args:
    """The arguments of a DescribeGroups as the offsets convention has them; it may be written in either way."""
    return {"groups": args["group_ids"]} if "group_ids" in args else args


def commit(args: Args) -> Args:
    """The arguments of an OffsetCommit as the offsets convention has them."""
    return {
        "group_id": args["group_id"],
        "member_id": args.get("member_id", ""),
        "generation_id_or_member_epoch": args.get("member_epoch", -1),
        "offsets": args["topics"],
    }


def fetch(args: Args) -> Args:
    """The arguments of an OffsetFetch as the offsets convention has them."""
    return {"groups": [args]}


def fetched(response: Response, args: Args) -> Response:
    """The one group of an OffsetFetch; of each offset the number, or the error where there is one."""
    group = response["groups"][args["group_id"]]
    offsets = {
        topic: {number: _offset(entry) for number, entry in partitions.items()}
        for topic, partitions in group["offsets"].items()
    }
    return {"error": group["error"], "offsets": offsets}


def _offset(entry: Args) -> Any:
    return entry["offset"] if entry["error"] == "NONE" else entry["error"]


def deletions(args: Args) -> Args:
    """The arguments of a DeleteGroups as the offsets convention has them."""
    return {"groups_names": args["group_ids"]}


def described_groups(response: Response, args: Args) -> Response:
    """The answer to a DescribeGroups: by id as in the offsets convention, or as a list where ids were given so. From
    version 6 on a dead group is an error (offsets.md 8.3).
    """
    refusal = {"error": "GROUP_ID_NOT_FOUND"} if args.get("api_version", 0) >= 6 else {}
    by_id = {
        group_id: {**group, **(refusal if group["state"] == "Dead" else {})}
        for group_id, group in response["groups"].items()
    }
    if "group_ids" not in args:
        return {"groups": by_id}
    groups = [
        {
            **group,
            "group_id": group_id,
            "group_state": group["state"],
            "members": [{**member, "instance_id": member["group_instance_id"]} for member in group["members"].values()],
        }
        for group_id, group in by_id.items()
    ]
    return {"groups": groups}


def by_name(partitions: Mapping[str, Iterable[int]], topic_name: Rename) -> dict[str, list[int]]:
    """Partitions by topic name, ascending."""
    return {topic_name(topic_id): sorted(numbers) for topic_id, numbers in partitions.items()}


def inspected(group: EpochGroup, topic_name: Rename) -> Response:
    """The group as `check_group` shows it."""
    return {
        "exists": True,
        "state": group.state.value,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": {member_id: _inspected(member, topic_name) for member_id, member in group.members.items()},
    }


def _inspected(member: ConsumerMember, topic_name: Rename) -> Response:
    return {
        **{name: getattr(member, name) for name in _STORED_AS_THEY_ARE},
        "subscribed_topic_names": sorted(member.subscribed_topic_names),
        "state": member.state.name,
        "member_epoch": member.member_epoch,
        "previous_member_epoch": member.previous_member_epoch,
        "assigned": by_name(member.assigned, topic_name),
        "pending_revocation": by_name(member.pending_revocation, topic_name),
        "target": by_name(member.target, topic_name),
        "classic": member.classic is not None,
    }


def described(group_id: str, group: EpochGroup, assignor_name: str, topics: Mapping[str, Topic]) -> Response:
    """What ConsumerGroupDescribe (consumer.md 9.2) and ShareGroupDescribe say of a group.

    `topics`: those that exist, by id; others are left out.
    """

    def existing(partitions: Mapping[str, Iterable[int]]) -> Response:
        return {topics[key].name: sorted(numbers) for key, numbers in partitions.items() if key in topics}

    return {
        "error": "NONE",
        "group_id": group_id,
        "group_state": group.state.value,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor_name": assignor_name,
        "members": {
            member_id: {
                "instance_id": member.instance_id,
                "rack_id": member.rack_id,
                "member_epoch": member.member_epoch,
                "subscribed_topic_names": sorted(member.subscribed_topic_names),
                "subscribed_topic_regex": member.subscribed_topic_regex,
                "member_type": CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
                "assignment": existing(merged(member.assigned, member.pending_revocation)),
                "target_assignment": existing(member.target),
            }
            for member_id, member in group.members.items()
        },
    }
