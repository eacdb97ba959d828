"""A span of the past, and the steps that it is drawn in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from frontend.ui.chart import DAY, HOUR, MINUTE, TIME_STEPS
from frontend.ui.page import BadAddress, Link, address, choice, instant
from frontend.ui.rows import Millis
from frontend.ui.wording import duration, iso

PRESETS: Mapping[str, Millis] = {"1h": HOUR, "6h": 6 * HOUR, "24h": DAY, "7d": 7 * DAY}
LABELS: Mapping[str, str] = {"1h": "1 h", "6h": "6 h", "24h": "24 h", "7d": "7 d"}
USUAL = "24h"
SHORTEST, LONGEST = 1_000, 31 * DAY
MOST_STEPS = 170


@dataclass(frozen=True, slots=True)
class Span:
    """The time [first, last) in ms. `preset`: it ends now and is so long; "" for one that was chosen."""

    first: Millis
    last: Millis
    preset: str = ""

    @property
    def step_ms(self) -> Millis:
        """The distance of two points of a plot: round, so that there are at most `MOST_STEPS` of them."""
        return next(step for step in TIME_STEPS if step * MOST_STEPS >= self.last - self.first)

    @property
    def steps(self) -> int:
        """How many steps cover it."""
        return -(-(self.last - self.first) // self.step_ms)

    @property
    def fields(self) -> tuple[Millis, Millis]:
        """Its bounds in a form: one that ends now is shown in whole minutes."""
        if not self.preset:
            return self.first, self.last
        return self.first // MINUTE * MINUTE, -(-self.last // MINUTE) * MINUTE

    @property
    def query(self) -> str:
        """It as a query of a URL; the same instants for a page that knows no presets."""
        return urlencode({"from": iso(self.first), "to": iso(self.last)})


def span_of(request: HttpRequest, now: Millis) -> Span:
    """The span that the URL asks for, the last 24 hours if it does not. Raises BadAddress."""
    first, last = instant(request, "from"), instant(request, "to")
    preset = choice(request, "span", PRESETS) or USUAL
    if first is None and last is None:
        return Span(now - PRESETS[preset], now + 1, preset)
    if last is None:
        last = now + 1
    if first is None:
        first = last - PRESETS[preset]
    if not SHORTEST <= last - first <= LONGEST:
        raise BadAddress(f"from, to: at least 1 s and at most {duration(LONGEST)}, the first before the last.")
    return Span(first, last)


def of_span(request: HttpRequest, span: Span, now: Millis) -> dict[str, Any]:
    """What templates say of the span of a page, with links to others."""
    without = {"from": None, "to": None, "before": None}
    presets = [Link(LABELS[name], address(request, **without, span=name), name == span.preset) for name in PRESETS]
    return {"now": now, "span": span, "presets": presets, "steps": _steps(request, span, now)}


def _steps(request: HttpRequest, span: Span, now: Millis) -> list[Link]:
    """To the time before and after the span, and to a longer one around it."""
    length = span.last - span.first
    links = [Link("‹ Earlier", _to(request, span.first - length, span.first))]
    if not span.preset and span.last <= now:
        links.append(Link("Later ›", _to(request, span.last, span.last + length)))
    if 4 * length <= LONGEST:
        last = min(span.last + 3 * length // 2, max(now, span.last))
        links.append(Link("Longer", _to(request, last - 4 * length, last)))
    return links


def _to(request: HttpRequest, first: Millis, last: Millis) -> str:
    return address(request, **{"from": iso(first), "to": iso(last), "span": None, "before": None})
