"""Topics as requests of Kafka clients name them: by name, or by id in the latest versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kcoord.protocol.errors import Error, ProtocolError
from kcoord.wire.api import Answer
from kcoord.wire.reading import Fields

LONGEST_MEMBER_ID, LONGEST_INSTANCE_ID = 300, 249
"""Characters, as in `kcoord.http.types`."""


def check_identity(request: Fields) -> None:
    """Raise INVALID_REQUEST for ids that no member can have: what is stored has bounds, as those of the REST API."""
    for name, longest in (("member_id", LONGEST_MEMBER_ID), ("group_instance_id", LONGEST_INSTANCE_ID)):
        if len(request.get(name) or "") > longest:
            raise ProtocolError(Error.INVALID_REQUEST, f"{name} has more than {longest} characters")


def topic_answer(entry: Fields, partitions: Sequence[Answer]) -> dict[str, Any]:
    """A topic of an answer, with the name or id that the request had, and these partitions."""
    return {"name": entry.get("name", ""), "topic_id": entry.get("topic_id"), "partitions": partitions}


def refused(request: Fields, version: int, code: int, detail: str) -> Answer:
    """An answer in which every partition has the error of the whole request, for which there is no other room.

    Differs from Kafka: partitions that do not exist, or that the caller may not read, have it too; Kafka tells theirs.
    """
    topics = [
        topic_answer(entry, [{"partition_index": p.partition_index, "error_code": code} for p in entry.partitions])
        for entry in request.topics
    ]
    return {"topics": topics}
