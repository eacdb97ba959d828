"""The requests of members, ready to send."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable

from tests.bench.populate import Population

TOPIC = "orders"


def request(method: str, path: str, token: str, body: object = None) -> bytes:
    """A request as clients send it; `body` is sent as JSON unless it is None."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nAuthorization: Bearer {token}\r\n"
    if body is None:
        return f"{head}\r\n".encode()
    content = json.dumps(body, separators=(",", ":")).encode()
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


def each(people: Population) -> Iterable[tuple[str, int, str]]:
    """(group, number of the member in it, member) of everybody, in an order that has nothing to do with groups."""
    everybody = [
        (people.group(group), number, member)
        for group in range(people.groups)
        for number, member in enumerate(people.members)
    ]
    random.Random(len(everybody)).shuffle(everybody)
    return everybody


def heartbeats(people: Population, token: str) -> list[bytes]:
    """A heartbeat of each member of classic groups."""
    return [
        request(
            "POST",
            f"/v1/groups/{group}/heartbeat",
            token,
            {"member_id": member, "generation_id": people.generation},
        )
        for group, _, member in each(people)
    ]


def consumer_heartbeats(people: Population, token: str) -> list[bytes]:
    """A heartbeat that changes nothing of each member of consumer groups."""
    return [
        request(
            "POST",
            f"/v1/groups/{group}/consumer-heartbeat",
            token,
            {"member_id": member, "member_epoch": people.generation},
        )
        for group, _, member in each(people)
    ]


def commits(people: Population, token: str, partitions: int, topic: str = TOPIC) -> list[bytes]:
    """A commit by each member, to partitions of its own; all have the same number."""
    return [
        request(
            "POST",
            f"/v1/groups/{group}/offsets/commit",
            token,
            {
                "member_id": member,
                "generation_id_or_member_epoch": people.generation,
                "topics": [
                    {
                        "name": topic,
                        "partitions": [
                            {"partition": number * partitions + place, "committed_offset": 1_000 + place}
                            for place in range(partitions)
                        ],
                    }
                ],
            },
        )
        for group, number, member in each(people)
    ]


def fetches(people: Population, token: str, partitions: int, topic: str = TOPIC) -> list[bytes]:
    """A fetch of as many partitions, of the group's of each member."""
    return [
        request(
            "POST",
            f"/v1/groups/{group}/offsets/fetch",
            token,
            {
                "topics": [
                    {
                        "name": topic,
                        "partitions": [number * partitions + place for place in range(partitions)],
                    }
                ]
            },
        )
        for group, number, _ in each(people)
    ]
