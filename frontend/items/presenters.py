"""Items of a share group as text: figures of the group, partitions, and what is chosen for an act."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from frontend.wording import plural
from kcoord.protocol.errors import Error, ProtocolError
from offsets.share.operators import Chosen, Item, ShareOffset

STATES: Mapping[str, tuple[str, str]] = {
    "acquired": ("Acquired", "busy"),
    "retry": ("Available again", "warn"),
    "delayed": ("Delayed", "idle"),
}
"""The label and tone of each state of an item."""
CAUSES: Mapping[str, str] = {
    "rejected": "Rejected by a worker or an operator",
    "limit": "Delivered as often as allowed",
}
PARTITIONS_SHOWN = 500
RANGES_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Figures:
    """What a share group has to do. `ready`: items that a member would get now, retries included.

    `unknown`: partitions of which it is not known where they end, or not decided where they begin; they are in none of
    the sums. `lag` and `ready` None: there are no others. `oldest_ms`: since when the oldest lock lasts; None: nothing
    is acquired. `waits_ms`: how long the oldest item that is not finished has waited; None: not known.
    """

    lag: int | None
    ready: int | None
    acquired: int
    retry: int
    delayed: int
    dead: int
    unknown: int
    oldest_ms: int | None = None
    waits_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ShareLook:
    """How far the partitions of a share group are, and since when its oldest lock lasts (ms)."""

    offsets: Sequence[ShareOffset] = field(default=())
    oldest_ms: int | None = None

    @property
    def figures(self) -> Figures:
        """The sums of all partitions."""
        known = [one for one in self.offsets if one.lag is not None]
        acquired, delayed = sum(one.acquired for one in known), sum(one.delayed for one in known)
        lag = sum(one.lag or 0 for one in known) if known or not self.offsets else None
        return Figures(
            lag,
            None if lag is None else lag - acquired - delayed,
            acquired,
            sum(one.retry for one in known),
            delayed,
            sum(one.dead for one in self.offsets),
            len(self.offsets) - len(known),
            self.oldest_ms,
            self._waits_ms(known),
        )

    @staticmethod
    def _waits_ms(known: Sequence[ShareOffset]) -> int | None:
        waits = [one.time_lag_ms for one in known if one.time_lag_ms is not None]
        return max(waits, default=None) if len(waits) == len(known) else None

    def context(self, *, most: int) -> Mapping[str, object]:
        """For the group's page: figures, and the `most` partitions that are furthest behind, in their order."""
        behind = sorted(self.offsets, key=lambda one: -(one.lag or 0))[:most]
        shown = sorted(behind, key=lambda one: (one.topic, one.partition))
        return {"items": self.figures, "share_partitions": shown, "share_partitions_total": len(self.offsets)}


def span(offsets: Iterable[Sequence[int]], most: int | None = RANGES_SHOWN) -> str:
    """First and last offsets as text: `17–19, 21`; after `most` ranges the rest is counted."""
    listed = [(first, last) for first, last in offsets]
    text = ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in listed[:most])
    rest = sum(last - first + 1 for first, last in listed[len(listed[:most]) :])
    return f"{text} +{rest:,}" if rest else text


def count(offsets: Iterable[Sequence[int]]) -> int:
    """The number of offsets in ranges of first and last ones."""
    return sum(last - first + 1 for first, last in offsets)


@dataclass(frozen=True, slots=True)
class Line:
    """Items of a list. `chosen`: the value of their box."""

    row: Item
    label: str
    tone: str
    offsets: str
    all_offsets: str
    count: int
    chosen: str


def line(row: Item) -> Line:
    """A row of the list of items."""
    label, tone = STATES[row.state]
    chosen = json.dumps([row.topic, row.partition, row.offsets], ensure_ascii=False)
    return Line(row, label, tone, span(row.offsets), span(row.offsets, None), count(row.offsets), chosen)


def read_chosen(written: Sequence[str]) -> list[Chosen]:
    """The items of ticked boxes. Raises ProtocolError INVALID_REQUEST for what no box has as its value."""
    found: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for value in written:
        try:
            topic, partition, offsets = json.loads(value)
            if not isinstance(topic, str) or type(partition) is not int or not 0 <= partition < 2**31:
                raise ValueError(value)
            pairs = [(first, last) for first, last in offsets]
            if not pairs or not all(type(n) is int and 0 <= n < 10**18 for pair in pairs for n in pair):
                raise ValueError(value)
        except (ValueError, TypeError, RecursionError):
            raise ProtocolError(Error.INVALID_REQUEST, "The selection cannot be read: tick the items again.") from None
        found.setdefault((topic, partition), []).extend(pairs)
    return [Chosen(topic, partition, sorted(pairs)) for (topic, partition), pairs in sorted(found.items())]


def chosen_words(chosen: Sequence[Chosen]) -> str:
    """How much is chosen: `12 items of 2 partitions`."""
    items = plural(sum(count(entry.offsets) for entry in chosen), "item")
    return f"{items} of {plural(len(chosen), 'partition')}"
