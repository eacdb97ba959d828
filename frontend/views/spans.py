"""The span of the past that a page shows, as its URL has it: `?span=6h`, or `?from=...&to=...`."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest

from frontend.history.span import LABELS, LONGEST, PRESETS, SHORTEST, USUAL, Span
from frontend.rows import Millis
from frontend.views.page import BadAddress, address, choice, instant
from frontend.wording import duration, iso


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


@dataclass(frozen=True, slots=True)
class Link:
    """A link to another span. `chosen`: it is the one that is shown."""

    label: str
    url: str
    chosen: bool = False


def preset_links(request: HttpRequest, span: Span) -> list[Link]:
    """The presets."""
    without = {"from": None, "to": None, "before": None}
    return [Link(LABELS[name], address(request, **without, span=name), name == span.preset) for name in PRESETS]


def step_links(request: HttpRequest, span: Span, now: Millis) -> list[Link]:
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
