"""The calls of the consumer convention over HTTP (http-api.md 2 and 4).

Partitions are written by topic name in the convention; what the service calls a topic is told by `TopicNames`.
Source: consumer.md 0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.conformance import consumer_terms, http_admin, http_membership, http_offset_delete, http_offsets
from tests.conformance.driver import BrokenPromise, Response
from tests.conformance.http_consumer_classic import ClassicCalls
from tests.conformance.http_terms import Args, Exchange, HttpAnswer, HttpRequest, group_path, single

_AS_THEY_ARE = ("member_id", "member_epoch", "instance_id", "rack_id", "rebalance_timeout_ms", "server_assignor")
_MEMBER_TYPES = {"classic": consumer_terms.CLASSIC_MEMBER, "consumer": consumer_terms.CONSUMER_MEMBER}
_SUBSCRIPTION = ("subscribed_topic_names", "subscribed_topic_regex")


class TopicNames:
    """Which ids the topics of a case got, deleted ones included."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def remember(self, topic_id: str, name: str) -> None:
        """A topic was made."""
        self._names[topic_id] = name

    def name_of(self, topic_id: str) -> str:
        """The name of a topic, which may be deleted. Raises BrokenPromise for one that nobody has made."""
        try:
            return self._names[topic_id]
        except KeyError:
            raise BrokenPromise(f"the service tells of a topic {topic_id} that nobody has made") from None

    def entry(self, name: str) -> dict[str, str]:
        """How a request names a topic: by the id of the newest of that name, or by the name if there was none."""
        newest = next((topic_id for topic_id in reversed(self._names) if self._names[topic_id] == name), None)
        return {"topic": name} if newest is None else {"topic_id": newest}


def heartbeat(topics: TopicNames, path: str = "/consumer-heartbeat") -> Exchange:
    """ConsumerGroupHeartbeat, ShareGroupHeartbeat. Fields that a case leaves out are left out of the request."""

    def request(args: Args) -> HttpRequest:
        body = {name: args[name] for name in (*_AS_THEY_ARE, *_SUBSCRIPTION) if name in args}
        owned = args.get("topic_partitions")
        if owned is not None:
            body["topic_partitions"] = [
                {**topics.entry(name), "partitions": partitions} for name, partitions in owned.items()
            ]
        return HttpRequest("POST", group_path(args["group_id"], path), body)

    return single(request, lambda answer, args: _read_heartbeat(answer, topics))


def _read_heartbeat(answer: HttpAnswer, topics: TopicNames) -> Response:
    if answer.error != "NONE":
        return {"error": answer.error, "member_epoch": 0, "heartbeat_interval_ms": 0, "assignment": None, **answer.body}
    fields = ("member_id", "member_epoch", "heartbeat_interval_ms")
    told = {"error": "NONE", **{name: answer.body[name] for name in fields}, "assignment": None}
    if answer.body["assignment"] is not None:
        told["assignment"] = _assignment(answer.body["assignment"]["topic_partitions"], topics)
    return told


def _assignment(entries: Sequence[Mapping[str, Any]], topics: TopicNames) -> Mapping[str, list[int]]:
    assignment: dict[str, list[int]] = {}
    for entry in entries:
        name = topics.name_of(entry["topic_id"])
        if entry["topic"] not in (name, None):
            raise BrokenPromise(f"topic {name!r} is called {entry['topic']!r} in an assignment")
        assignment[name] = entry["partitions"]
    return assignment


def _existing(entries: Sequence[Mapping[str, Any]], topics: TopicNames) -> Mapping[str, list[int]]:
    """Without deleted topics, which Kafka leaves out of a description (consumer.md 4.5)."""
    return _assignment([entry for entry in entries if entry["topic"] is not None], topics)


def describe(
    topics: TopicNames, read: Callable[[Mapping[str, Response]], Response], kind: str = "consumer"
) -> Exchange:
    """ConsumerGroupDescribe, ShareGroupDescribe; `read` puts the descriptions of the groups, by id, into one answer."""
    return Exchange(
        lambda args: [HttpRequest("GET", group_path(group_id)) for group_id in args["group_ids"]],
        lambda answers, args: read(
            {
                group_id: _described(answer, topics, kind)
                for group_id, answer in zip(args["group_ids"], answers, strict=True)
            }
        ),
    )


def _described(answer: HttpAnswer, topics: TopicNames, kind: str) -> Response:
    """A group of another type does not exist for this call (consumer.md 9.2; share.md 5)."""
    if answer.error != "NONE":
        return {"error": answer.error}
    group = answer.body
    if group["type"] != kind:
        return {"error": "GROUP_ID_NOT_FOUND"}
    return {
        "error": "NONE",
        "state": group["state"],
        "group_epoch": group["group_epoch"],
        "assignment_epoch": group["assignment_epoch"],
        "assignor_name": group["assignor"],
        "members": {
            member["member_id"]: {
                "instance_id": member.get("group_instance_id"),
                "rack_id": member["rack_id"],
                "member_epoch": member["member_epoch"],
                "subscribed_topic_names": member["subscribed_topic_names"],
                "subscribed_topic_regex": member.get("subscribed_topic_regex"),
                "member_type": _MEMBER_TYPES[member.get("member_type", "consumer")],
                "assignment": _existing(member["assignment"], topics),
                "target_assignment": _existing(member.get("target_assignment", ()), topics),
            }
            for member in group["members"]
        },
    }


def by_group(described: Mapping[str, Response]) -> Response:
    """The descriptions as the offsets convention has them."""
    return {"groups": described}


def _one_after_the_other(described: Mapping[str, Response]) -> Response:
    return {
        "groups": [
            {"group_id": group_id, "group_state": group.get("state"), **group} for group_id, group in described.items()
        ]
    }


def _renamed(
    exchange: Exchange, rename: Callable[[Args], Args], answer: Callable[[Response, Args], Response]
) -> Exchange:
    """A call of this convention that travels like one of another: `rename` its arguments, and its `answer` back."""
    return Exchange(
        lambda args: exchange.requests(rename(args)),
        lambda answers, args: answer(exchange.read(answers, rename(args)), args),
    )


def _listed(response: Response, args: Args) -> Response:
    """The groups in ascending order of their ids, each with its id."""
    groups = [
        {
            "group_id": group_id,
            "group_state": group["state"],
            "group_type": group["type"],
            "protocol_type": group["protocol_type"],
        }
        for group_id, group in sorted(response["groups"].items())
    ]
    return {"error": response["error"], "groups": groups}


def _leave(args: Args) -> Args:
    entries = [
        {"member_id": entry.get("member_id", ""), "group_instance_id": consumer_terms.instance_of(entry)}
        for entry in args.get("members", (args,))
    ]
    return {"group_id": args["group_id"], "members": entries}


def _left(response: Response, args: Args) -> Response:
    members = [(entry["member_id"], entry["group_instance_id"], entry["error"]) for entry in response["members"]]
    return consumer_terms.of_one(consumer_terms.left(response["error"], members), args)


def exchanges(topics: TopicNames) -> Mapping[str, Exchange]:
    """The calls of the consumer convention that have a request."""
    offsets, admin = http_offsets.EXCHANGES, http_admin.EXCHANGES
    return {
        "ConsumerGroupHeartbeat": heartbeat(topics),
        "ShareGroupHeartbeat": heartbeat(topics, "/share-heartbeat"),
        "ConsumerGroupDescribe": describe(topics, _one_after_the_other),
        "ShareGroupDescribe": describe(topics, _one_after_the_other, "share"),
        **ClassicCalls().exchanges,
        "Heartbeat": _renamed(
            http_membership.EXCHANGES["Heartbeat"],
            lambda args: {**args, "group_instance_id": args.get("instance_id")},
            lambda response, args: response,
        ),
        "LeaveGroup": _renamed(http_membership.EXCHANGES["LeaveGroup"], _leave, _left),
        "DescribeGroups": _renamed(admin["DescribeGroups"], consumer_terms.group_ids, consumer_terms.described_groups),
        "OffsetCommit": _renamed(offsets["OffsetCommit"], consumer_terms.commit, lambda response, args: response),
        "OffsetFetch": _renamed(offsets["OffsetFetch"], consumer_terms.fetch, consumer_terms.fetched),
        **http_offset_delete.EXCHANGES,
        "ListGroups": _renamed(
            admin["ListGroups"], lambda args: {"states_filter": (), "types_filter": (), **args}, _listed
        ),
        "DeleteGroups": _renamed(
            admin["DeleteGroups"],
            consumer_terms.deletions,
            lambda response, args: response,
        ),
    }
