"""Instants and durations as operators' tools write them.

Source: offsets.md 13.5 (the datetime of --to-datetime, the ISO 8601 duration of --by-duration).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.strategies import Millis

_DATETIME = re.compile(
    r"(?P<local>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})(?P<zone>Z|(?P<sign>[+-])(?P<hours>\d\d)(?::?(?P<minutes>\d\d))?)?",
    re.ASCII,
)
_DURATION = re.compile(
    r"P(?:(?P<weeks>\d{1,12})W|(?=[\dT])(?:(?P<days>\d{1,12})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,12})H)?(?:(?P<minutes>\d{1,12})M)?(?:(?P<seconds>\d{1,12})(?:[.,](?P<fraction>\d{1,9}))?S)?)?)",
    re.ASCII | re.IGNORECASE,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_MS = {"weeks": 604_800_000, "days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}


def parse_datetime(text: str, field: str = "at") -> Millis:
    """The instant that `--to-datetime` takes: `YYYY-MM-DDTHH:mm:SS.sss` with an optional zone; the default is UTC.

    Returns milliseconds since the epoch. Raises INVALID_REQUEST naming `field`.
    """
    found = _DATETIME.fullmatch(text)
    if found is None:
        raise _invalid(
            field,
            f"{text[:50]!r} is not a datetime such as 2026-01-31T12:00:00.000: date, 'T', time with three digits of "
            "the fraction, and optionally a zone (Z, +01, +0100 or +01:00; without one it is UTC)",
        )
    try:
        local = datetime.fromisoformat(found["local"]).replace(tzinfo=UTC)
        zone = timedelta(hours=int(found["hours"] or 0), minutes=int(found["minutes"] or 0))
        timezone(zone)
    except ValueError as error:
        raise _invalid(field, f"{text!r} is not a datetime: {error}") from None
    offset = -zone if found["sign"] == "-" else zone
    return (local - _EPOCH - offset) // timedelta(milliseconds=1)


def parse_duration(text: str, field: str = "duration") -> Millis:
    """An ISO 8601 duration such as `P1DT2H` or `PT30M`, in milliseconds, rounded down.

    Months and years have no fixed length, so days (or weeks, alone) are the largest unit. Raises INVALID_REQUEST
    naming `field`.

    Differs from Kafka: weeks are accepted; negative durations, which would be a time in the future, are not.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise _invalid(
            field,
            f"{text[:50]!r} is not an ISO 8601 duration such as P1DT2H (a day and two hours), PT30M or P2W; months and "
            "years have no fixed length: use days",
        )
    whole = sum(int(found[unit] or 0) * ms for unit, ms in _MS.items())
    return whole + int((found["fraction"] or "0")[:3].ljust(3, "0"))


def _invalid(field: str, reason: str) -> ProtocolError:
    return ProtocolError(Error.INVALID_REQUEST, f"{field}: {reason}", fields={"field": field})
