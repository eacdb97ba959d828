"""Values as text: instants, durations, ranges of partitions, shortened ids. Pure functions.

`static/frontend/clock.js` keeps `ago` up to date in the browser, by the same rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from frontend.ui.rows import Millis, Names
from kcoord.resets import instants
from kcoord.resets.instants import BOUNDS, EARLIEST_MS, LATEST_MS, is_instant

INSTANT_FORM = "YYYY-MM-DD HH:MM"
NOT_AN_INSTANT = f"is not a date and time; write it as {INSTANT_FORM} by the 24-hour clock, such as 2026-01-31 18:30"
INSTANT_PATTERN = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+\-]([01][0-9]|2[0-3]):[0-5][0-9])?)?"
)
"""In the syntax that Python and browsers (`pattern` of an input) share."""
_INSTANT = re.compile(INSTANT_PATTERN)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_WITH_UUID = re.compile(r"^(?P<name>.*?)-?(?P<head>[0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
_LONGEST_ID = 28
LONGEST_NAME = 80
"""Characters of a name in a list; Kafka's may have 249, those of groups more."""
LONGEST_CLIENT = 60
"""Characters of a client and its host in a sentence or in a line of a table; the page of the member has them all."""

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000


def instant(at: Millis, zone: tzinfo = UTC) -> str:
    """An instant to the millisecond: `2025-11-21 03:30:12.123 UTC`."""
    moment = instants.clock(at, zone).replace(tzinfo=None)
    return f"{beyond(at)}{moment.isoformat(' ', 'milliseconds')} {zone_name(zone, at)}"


def beyond(at: Millis) -> str:
    """What stands before an instant that is stored and lies beyond the calendar: it is shown as the nearest."""
    return "after " if at > LATEST_MS else "before " if at < EARLIEST_MS else ""


def zone_name(zone: tzinfo, at: Millis) -> str:
    """What a time zone is called at an instant: `UTC`, `CET`; `UTC+03` if it has no abbreviation."""
    name = instants.clock(at, zone).tzname() or "UTC"
    return f"UTC{name}" if name[0] in "+-" else name


def iso(at: Millis) -> str:
    """An instant in machine-readable form; one beyond the calendar as the nearest, as the API has it."""
    return f"{instants.clock(at).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def iso_if_known(at: Millis | None) -> str | None:
    """As `iso`; None for None."""
    return None if at is None else iso(at)


def wall(at: Millis, zone: tzinfo) -> str:
    """An instant as a field for instants shows it, so that `read_instant` returns the same one.

    `2025-11-21 03:30`, with seconds and milliseconds if they are not 0, and with the offset from UTC where clocks show
    that time twice.
    """
    moment = instants.clock(at, zone)
    written = moment.replace(tzinfo=None).isoformat(" ", "milliseconds").removesuffix(".000").removesuffix(":00")
    try:
        if read_instant(written, zone) == instants.shown(at):
            return written
    except ValueError:
        pass  # at the ends of the calendar
    return f"{written}{moment.isoformat()[-6:]}"


def read_instant(written: str, zone: tzinfo = UTC) -> Millis:
    """An instant as people and links write it, in `zone` unless it has an offset.

    `2025-11-21 03:30`, with `T` for the blank, with seconds, or a day alone. Raises ValueError, whose text quotes
    what was written and says what is accepted.
    """
    try:
        moment = datetime.fromisoformat(written if _INSTANT.fullmatch(written) else "")
    except ValueError:
        raise ValueError(f"{written[:50]!r} {NOT_AN_INSTANT}") from None
    since = (moment if moment.tzinfo else moment.replace(tzinfo=zone)) - _EPOCH
    if not is_instant(at := since // timedelta(milliseconds=1)):
        raise ValueError(f"{written!r} is not {BOUNDS}")
    return at


def span(milliseconds: Millis) -> str:
    """A rough length of time in its largest unit, rounded down: `now`-free, so 0 is `0 s`."""
    length = abs(milliseconds)
    if length < _MINUTE:
        return f"{length // _SECOND} s"
    if length < _HOUR:
        return f"{length // _MINUTE} min"
    if length < 2 * _DAY:
        return f"{length // _HOUR} h"
    return f"{length // _DAY:,} days"


def ago(at: Millis, now: Millis) -> str:
    """An instant as seen from `now`: `12 s ago`, `in 3 min`, `now` within a second."""
    distance = now - at
    if abs(distance) < _SECOND:
        return "now"
    return f"{span(distance)} ago" if distance > 0 else f"in {span(distance)}"


def lasting(since: Millis, now: Millis) -> str:
    """How long something has lasted: `for 3 min`; `for 0 s` if another clock says that it begins later."""
    return f"for {span(max(now - since, 0))}"


@dataclass(frozen=True, slots=True)
class Due:
    """What happens at an instant, to be followed by `ago`. `overdue`: the same once that is past and it is not done."""

    coming: str
    overdue: str

    def seen(self, at: Millis, now: Millis) -> str:
        """As seen from `now`; overdue as soon as `ago` says how long."""
        return self.overdue if is_overdue(at, now) else self.coming


def is_overdue(at: Millis, now: Millis) -> bool:
    """Whether `ago` writes the instant as past."""
    return now - at >= _SECOND


def duration(milliseconds: Millis) -> str:
    """A measured length of time: `0 s`, `850 ms`, `1.2 s`, `45 s`, `5 min 30 s`, `2 h 5 min`, `3 days 4 h`, `40 days`.

    Never negative: clocks that differ a little must not be seen to.
    """
    if milliseconds <= 0:
        return "0 s"
    if milliseconds < _SECOND:
        return f"{milliseconds} ms"
    if milliseconds < 10 * _SECOND:
        return f"{milliseconds // 100 / 10:.1f} s".replace(".0 s", " s")
    if milliseconds < _MINUTE:
        return f"{milliseconds // _SECOND} s"
    if milliseconds < _HOUR:
        return _two(milliseconds // _MINUTE, "min", milliseconds % _MINUTE // _SECOND, "s")
    if milliseconds < 2 * _DAY:
        return _two(milliseconds // _HOUR, "h", milliseconds % _HOUR // _MINUTE, "min")
    if milliseconds < 10 * _DAY:
        return _two(milliseconds // _DAY, "days", milliseconds % _DAY // _HOUR, "h")
    return f"{milliseconds // _DAY:,} days"


def time_lag(milliseconds: Millis) -> str:
    """How old the next record to read is: `0 s` if everything was read, `under 1 s`, or as `duration` says it.

    It is interpolated between samples seconds apart, so that milliseconds of it mean nothing.
    """
    return "under 1 s" if 0 < milliseconds < _SECOND else duration(milliseconds)


def clock(milliseconds: Millis) -> str:
    """A length of time as a countdown shows it, rounded up to seconds: `4:32`, `1:04:32`; never negative."""
    seconds = max(0, -(-milliseconds // _SECOND))
    minutes = f"{seconds // 60 % 60}:{seconds % 60:02d}"
    return minutes if seconds < 3_600 else f"{seconds // 3_600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit}" + (f" {small} {small_unit}" if small else "")


def number(value: int) -> str:
    """An integer with thousands separators: `12,345`."""
    return f"{value:,}"


def compact(value: int) -> str:
    """A round number on an axis: `500`, `20 k`, `10 M`, `2 G`. Others are rounded down."""
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if value >= size:
            return f"{value // size:,} {unit}"
    return str(value)


def signed(value: int) -> str:
    """A change: `+1,200`, `−40`, `0`."""
    return f"{value:+,}".replace("-", "−") if value else "0"


def per_second(consumed: int) -> str:
    """Records per second, given those of one day: `1,234`, `12.3`, `0.05`, `< 0.01`, `0`."""
    found = consumed * _SECOND / _DAY
    if found >= 100:
        return number(round(found))
    if found >= 0.01:
        return f"{found:.1f}" if found >= 10 else f"{found:.2f}"
    return "< 0.01" if consumed else "0"


def plural(count: int, singular: str, several: str = "") -> str:
    """`1 member`, `3 members`."""
    return f"{count:,} {singular if count == 1 else several or singular + 's'}"


def ranges(partitions: Iterable[int], most: int | None = None) -> str:
    """Ascending partitions, neighbours merged: `0–4, 7`. After `most` ranges the rest is counted: `0, 2, 4 +17`."""
    folded: list[list[int]] = []
    for partition in partitions:
        if folded and partition == folded[-1][1] + 1:
            folded[-1][1] = partition
        else:
            folded.append([partition, partition])
    shown = folded if most is None or len(folded) <= most else folded[:most]
    text = ", ".join(_range(first, last) for first, last in shown)
    rest = sum(last - first + 1 for first, last in folded[len(shown) :])
    return f"{text} +{rest:,}" if rest else text


def _range(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first}, {last}" if last == first + 1 else f"{first}–{last}"


def short_id(member_id: str) -> str:
    """A member id shortened to fit a line: `billing-3f2a81c0…` for `<client id>-<uuid>`, else its beginning and end."""
    match = _WITH_UUID.match(member_id)
    if match and len(match["name"]) <= _LONGEST_ID:
        return f"{match['name']}-{match['head']}…" if match["name"] else f"{match['head']}…"
    if len(member_id) <= _LONGEST_ID + 6:
        return member_id
    return f"{member_id[:18]}…{member_id[-10:]}"


def elided(name: str, most: int = LONGEST_NAME) -> str:
    """A name in a list: its beginning and its end if it is longer than `most`, since names of a kind begin alike."""
    return name if len(name) <= most else f"{name[: most * 3 // 5]}…{name[-(most * 2 // 5 - 1) :]}"


def client_at(client_id: str, client_host: str) -> str:
    """Who a member is for people: `billing@10.0.0.7`; clients need not name themselves."""
    return f"{client_id}@{client_host}" if client_id and client_host else client_id or client_host


def member_name(member_id: str, names: Names) -> str:
    """A member for people: `billing@10.0.0.7 (3f2a81c0…)`; its id alone if nothing else is known of it.

    Of an id that begins with the client id, what follows: the client id stands in front of it.
    """
    name, short = elided(names.get(member_id, ""), LONGEST_CLIENT), short_id(member_id)
    return f"{name} ({short.removeprefix(name.rpartition('@')[0] + '-')})" if name else short


def joined(names: Sequence[str], most: int) -> str:
    """Names as part of a sentence: `a`, `a and b`, `a, b and c`, `a, b and 4 more`."""
    shown = list(names) if len(names) <= most else [*names[: most - 1], f"{len(names) - most + 1:,} more"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
