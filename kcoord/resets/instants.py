"""Instants and durations as operators' tools write them.

Source: offsets.md 13.5 (the datetime of --to-datetime, the ISO 8601 duration of --by-duration).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.strategies import Millis

_DATETIME = re.compile(
    r"(?P<local>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})(?P<zone>Z|(?P<sign>[+-])(?P<hours>[01]\d|2[0-3])(?::?(?P<minutes>[0-5]\d))?)?",
    re.ASCII,
)
_DURATION = re.compile(
    r"P(?:(?P<weeks>\d{1,12})W|(?=[\dT])(?:(?P<days>\d{1,12})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,12})H)?(?:(?P<minutes>\d{1,12})M)?(?:(?P<seconds>\d{1,12})(?:[.,](?P<fraction>\d{1,9}))?S)?)?)",
    re.ASCII | re.IGNORECASE,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

EARLIEST_MS: Millis = -62_135_596_800_000
LATEST_MS: Millis = 253_402_300_799_999
"""The first and the last instant that RFC 3339 can write in UTC; what is beyond is not accepted in any zone."""
BOUNDS = "an instant from 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999Z"

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
    except ValueError as error:
        raise _invalid(field, f"{text!r} is not a datetime: {error}") from None
    zone = timedelta(hours=int(found["hours"] or 0), minutes=int(found["minutes"] or 0))
    offset = -zone if found["sign"] == "-" else zone
    at = (local - _EPOCH - offset) // timedelta(milliseconds=1)
    if not is_instant(at):
        raise _invalid(field, f"{text!r} is not {BOUNDS}")
    return at


def is_instant(at: Millis) -> bool:
    """Whether `at` (ms since the epoch) is accepted where instants enter: in requests, forms and commands."""
    return EARLIEST_MS <= at <= LATEST_MS


def shown(at: Millis) -> Millis:
    """The accepted instant that is nearest to `at`: what is stored may lie beyond the calendar."""
    return max(EARLIEST_MS, min(at, LATEST_MS))


def clock(at: Millis, zone: tzinfo = UTC) -> datetime:
    """The date and time of the zone at an instant, or at the nearest in the calendar; in UTC at the calendar's ends."""
    moment = _EPOCH + timedelta(milliseconds=shown(at))
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


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
    if whole > LATEST_MS:
        raise _invalid(field, f"{text[:50]!r} is longer than {LATEST_MS // 86_400_000} days, the longest duration")
    return whole + int((found["fraction"] or "0")[:3].ljust(3, "0"))


def _invalid(field: str, reason: str) -> ProtocolError:
    return ProtocolError(Error.INVALID_REQUEST, f"{field}: {reason}", fields={"field": field})
