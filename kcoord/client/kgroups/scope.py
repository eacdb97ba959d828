"""Parsing of option values: integers, topics with partitions, instants.

Source: offsets.md 13.1 and 13.5. Functions raise ValueError, saying what is wrong with the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kcoord.protocol.errors import ProtocolError
from kcoord.resets.instants import parse_datetime, parse_duration

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TopicScope:
    """Partitions of a topic; None: all of them."""

    topic: str
    partitions: tuple[int, ...] | None


def whole_number(text: str, minimum: int, maximum: int) -> int:
    """An integer written in ASCII digits."""
    if not _WHOLE.fullmatch(text) or not minimum <= int(text) <= maximum:
        raise ValueError(f"{text[:50]!r} is not a whole number from {minimum} to {maximum}")
    return int(text)


def topics_of(texts: Iterable[str]) -> tuple[TopicScope, ...]:
    """The meaning of `--topic t` and `--topic t:0,2`, one entry per topic, in the order of their first mention."""
    found: dict[str, set[int] | None] = {}
    for text in texts:
        topic, colon, numbers = text.rpartition(":")
        name = topic if colon else text
        if not name:
            raise ValueError(f"{text[:50]!r}: the topic name is missing")
        before = found.setdefault(name, set())
        if not colon:
            found[name] = None
        elif before is not None:
            before.update(whole_number(number, 0, INT32_MAX) for number in numbers.split(","))
    return tuple(
        TopicScope(topic, None if partitions is None else tuple(sorted(partitions)))
        for topic, partitions in found.items()
    )


def instant_of(text: str) -> str:
    """RFC 3339 of an instant written `YYYY-MM-DDTHH:mm:SS.sss`, optionally with a time zone; UTC without one."""
    try:
        instant = _EPOCH + timedelta(milliseconds=parse_datetime(text))
    except ProtocolError as error:
        raise ValueError(_without_field(error)) from None
    return f"{instant.isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"


def duration_of(text: str) -> str:
    """An ISO 8601 duration, unchanged."""
    try:
        parse_duration(text)
    except ProtocolError as error:
        raise ValueError(_without_field(error)) from None
    return text


def _without_field(error: ProtocolError) -> str:
    """The fault, without the name that the field has in the HTTP API."""
    return error.detail.removeprefix(f"{error.fields.get('field')}: ")
