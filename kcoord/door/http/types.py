"""Field types shared by the wire structs, with their bounds.

Patterns end in `(?![\\s\\S])` where `$` would also match before a trailing newline; both Python and the dialect of
JSON Schema read it the same way.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated

from msgspec import Meta

from kcoord.door.http.problem import invalid
from kcoord.protocol.errors import Error
from kcoord.resets.instants import shown

INT32_MAX = 2_147_483_647
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

Int32 = Annotated[int, Meta(ge=-INT32_MAX - 1, le=INT32_MAX)]
Millis32 = Annotated[int, Meta(ge=0, le=INT32_MAX, description="Milliseconds.")]
Int64 = (
    Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX)]
    | Annotated[str, Meta(pattern=r"^-?[0-9]{1,19}(?![\s\S])", description="A 64-bit number in decimal.")]
)

Expiry = Annotated[
    str, Meta(description="RFC 3339, on the database's clock.", extra_json_schema={"format": "date-time"})
]
ResultName = Annotated[str, Meta(extra_json_schema={"enum": [error.name for error in Error]})]
"""The name of an item's error; NONE for success."""

MemberId = Annotated[str, Meta(max_length=300)]
GroupInstanceId = Annotated[
    str, Meta(min_length=1, max_length=249, pattern=r"^(?!\.{1,2}(?![\s\S]))[a-zA-Z0-9._-]+(?![\s\S])")
]
CommitInstanceId = Annotated[str, Meta(max_length=249, pattern=r"^(?!\.{1,2}(?![\s\S]))[a-zA-Z0-9._-]*(?![\s\S])")]
"""For a commit. The empty id also counts as an identity, one that no member has (offsets.md 3.3)."""
ClientId = Annotated[str, Meta(max_length=255)]
ProtocolType = Annotated[str, Meta(max_length=255)]
ProtocolName = Annotated[str, Meta(max_length=255)]
TopicName = Annotated[str, Meta(min_length=1, max_length=249)]
TopicId = Annotated[str, Meta(min_length=1, max_length=36, description="UUID of a topic.")]

TRANSACTIONAL_ID_PATTERN = r"^(?!\.{1,2}(?![\s\S]))[^/\u0000-\u001F\u007F-\u009F]{1,255}(?![\s\S])"
TransactionalId = Annotated[str, Meta(pattern=TRANSACTIONAL_ID_PATTERN)]
ProducerId = (
    Annotated[int, Meta(ge=0, le=INT64_MAX)]
    | Annotated[str, Meta(pattern=r"^[0-9]{1,19}(?![\s\S])", description="A 64-bit number in decimal.")]
)
ProducerEpoch = Annotated[int, Meta(ge=0, le=32_767)]

REMEDIES = {
    "group_instance_id": "1 to 249 characters of a-z, A-Z, 0-9, '.', '_' and '-', not '.' or '..'; null for a dynamic "
    "member",
    "instance_id": "1 to 249 characters of a-z, A-Z, 0-9, '.', '_' and '-', not '.' or '..'; null for a dynamic member",
    "committed_offset": "a 64-bit number, as a JSON number or a decimal string",
    "transactional_id": "1 to 255 characters, without '/' and control characters, not '.' or '..'",
    "producer_id": "a number from 0 to 2^63 - 1, as a JSON number or a decimal string; returned when the "
    "transactional id is initialized",
    "producer_epoch": "a number from 0 to 32767; returned when the transactional id is initialized",
    "retention_time_ms": "a 64-bit number, as a JSON number or a decimal string; -1 for the retention set on the "
    "server",
}
"""What to write instead, for fields whose type does not say so clearly enough."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def int64(value: int | str, field: str) -> int:
    """The number in `value`. Raises INVALID_REQUEST naming `field` if it does not fit 64 bits."""
    number = int(value)
    if not INT64_MIN <= number <= INT64_MAX:
        raise invalid(f"{field}: {number} does not fit in 64 bits", field)
    return number


@lru_cache(maxsize=256)  # under load many sessions end in the same millisecond
def rfc3339(instant_ms: int | None) -> str | None:
    """An instant in milliseconds since the epoch as RFC 3339 in UTC; None stays None.

    One that lies beyond those that requests accept is shown as the nearest of these.
    """
    if instant_ms is None:
        return None
    seconds, milliseconds = divmod(shown(instant_ms), 1000)
    return f"{_to_the_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=1_024)  # deadlines of sessions crowd into a minute
def _to_the_second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(timespec="seconds")
