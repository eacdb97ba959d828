"""Instants that people mean when they reset: "yesterday 06:00" in their own time zone. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from frontend.offsets.rows import Millis
from frontend.wording import beyond
from kcoord.resets.instants import clock


@dataclass(frozen=True, slots=True)
class Preset:
    """An instant to choose. `exact`: date and time in the zone of the viewer, with the name of the zone."""

    label: str
    at: Millis
    exact: str


def presets(now: Millis, zone: tzinfo) -> list[Preset]:
    """The instants offered at `now`, most usual first, none of them in the future."""
    here = datetime.fromtimestamp(now / 1000, zone)
    offered = [
        ("Yesterday 06:00", _at(here, days=1, hour=6)),
        ("Yesterday 00:00", _at(here, days=1)),
        ("Today 00:00", _at(here)),
        ("One hour ago", now - 3_600_000),
        ("Seven days ago", _at(here, days=7, hour=here.hour, minute=here.minute)),
    ]
    return [Preset(label, at, exact(at, zone)) for label, at in offered if at <= now]


def exact(at: Millis, zone: tzinfo) -> str:
    """`Fri 2026-01-30 06:00 CET`, with seconds and milliseconds if they are not 0."""
    moment = clock(at, zone)
    written = moment.replace(tzinfo=None).isoformat(" ", "milliseconds").removesuffix(".000").removesuffix(":00")
    return f"{beyond(at)}{moment:%a} {written} {moment:%Z}".rstrip()


def _at(here: datetime, *, days: int = 0, hour: int = 0, minute: int = 0) -> Millis:
    """A time of day some days before, as clocks on the wall show it: a day may have 23 or 25 hours."""
    day = here.date() - timedelta(days=days)
    moment = datetime(day.year, day.month, day.day, hour, minute, tzinfo=here.tzinfo)
    return int(moment.timestamp() * 1000)
