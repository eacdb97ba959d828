"""In which time zone pages write instants: UTC, or the browser's if the reader chose so. CSV and JSON stay in UTC.

The browser knows its zone, the server does not: `static/frontend/zone.js` puts the name into a cookie.
`frontend.ui.page` activates the zone for each request, so that templates and presenters need not be given it.
"""

from __future__ import annotations

import functools
import re
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.utils import timezone

from frontend.ui import wording
from frontend.ui.rows import Millis
from kcoord.resets.instants import clock

COOKIE = "kcoord_zone"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}")
_LONGEST = 64


def zone_of(request: HttpRequest) -> tzinfo:
    """The zone that the reader chose; UTC without a choice, or if this machine does not know the zone."""
    return _zone(request.COOKIES.get(COOKIE, "").replace("%2F", "/")[: _LONGEST + 1])


def current() -> tzinfo:
    """The zone of the page that is being made."""
    return timezone.get_current_timezone()


def name(at: Millis) -> str:
    """What the zone of the page is called at an instant: `UTC`, `CET`."""
    return wording.zone_name(current(), at)


def instant(at: Millis) -> str:
    """An instant to the millisecond, in the zone of the page: `2025-11-21 04:30:12.123 CET`."""
    return wording.instant(at, current())


def minute(at: Millis) -> str:
    """As `instant`, to the minute: `2025-11-21 04:30 CET`."""
    return f"{wording.beyond(at)}{clock(at, current()).replace(tzinfo=None).isoformat(' ', 'minutes')} {name(at)}"


def wall(at: Millis | None) -> str:
    """An instant as the value of a field, in the zone of the page; empty for None."""
    return "" if at is None else wording.wall(at, current())


def read(written: str) -> Millis:
    """An instant as such a field sends it, in the zone of the page unless it has an offset. Raises ValueError."""
    return wording.read_instant(written, current())


@functools.lru_cache(maxsize=64)
def _zone(chosen: str) -> tzinfo:
    if len(chosen) > _LONGEST or not _NAME.fullmatch(chosen):
        return UTC
    try:
        return ZoneInfo(chosen)
    except (KeyError, ValueError, OSError):
        return UTC
