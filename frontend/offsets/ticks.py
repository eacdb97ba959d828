"""Which topics and partitions are ticked in a form, written compactly enough for any number of them. Pure functions.

A form sends `t` (whole topics), `p` (`topic:partition`), `n:<topic>` (numbers of a topic too wide for boxes) and
`topics` (other topics, one per line).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.http import QueryDict

from frontend.wording import ranges
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.strategies import Scope

MOST = 200_000
"""Partitions, as in a plan."""
MOST_BOXES, BOXES_OF_A_TOPIC = 400, 64
"""Partitions with a box of their own; Django takes 1,000 fields of a form."""
ALL, CHOSEN = "all", "chosen"


@dataclass(slots=True)
class Ticks:
    """Topic -> its partitions, None: all of them."""

    chosen: dict[str, set[int] | None] = field(default_factory=dict)

    def add(self, topic: str, numbers: Iterable[int] | None) -> None:
        """Tick some partitions of a topic, None: all of them."""
        present = self.chosen.get(topic, set())
        self.chosen[topic] = None if numbers is None or present is None else present | set(numbers)

    def scope(self) -> tuple[tuple[str, tuple[int, ...] | None], ...]:
        """As plans take it."""
        return tuple((topic, None if some is None else tuple(sorted(some))) for topic, some in self.chosen.items())

    def lines(self, without: Iterable[str] = ()) -> str:
        """One line per topic, as the field `topics` takes them."""
        left = set(without)
        return "\n".join(
            topic if some is None else f"{topic}:{ranges(sorted(some))}"
            for topic, some in self.chosen.items()
            if topic not in left
        )


def ticks(given: QueryDict | Mapping[str, str]) -> Ticks:
    """What is ticked in a form. Raises INVALID_REQUEST naming the field."""
    found = Ticks()
    for topic in _several(given, "t"):
        found.add(topic, None)
    for written in _several(given, "p"):
        topic, _, number = written.rpartition(":")
        found.add(topic, numbers(number, topic))
    for name in given:
        written = str(given[name]).strip() if name.startswith("n:") else ""
        if written:
            found.chosen[name[2:]] = numbers(written, name[2:])  # says more than the tick of the topic
    for topic, some in _lines(str(given.get("topics", ""))):
        found.add(topic, some)
    return found


def scope_of(given: QueryDict | Mapping[str, str]) -> Scope:
    """The partitions that a form names; None: all with a committed offset. Raises INVALID_REQUEST."""
    if given.get("scope") == ALL:
        return None
    found = ticks(given).scope()
    if not found and given.get("scope") == CHOSEN:
        raise ProtocolError(Error.INVALID_REQUEST, "Topics: tick at least one topic or partition.")
    return found or None


def numbers(written: str, topic: str) -> set[int]:
    """Numbers and ranges such as `0-99, 120`. Raises INVALID_REQUEST."""
    found: set[int] = set()
    for part in written.replace("–", "-").replace(" ", "").split(","):
        first, _, last = part.partition("-")
        last = last or first
        if not all(end.isascii() and end.isdigit() and len(end) < 10 for end in (first, last)):
            raise ProtocolError(
                Error.INVALID_REQUEST,
                f"Topics: {f'{topic}:{written}'!r} is not a topic with partitions, such as orders:0,2-5.",
            )
        if int(last) - int(first) >= MOST:
            raise ProtocolError(Error.INVALID_REQUEST, f"Topics: {topic}: at most {MOST:,} partitions.")
        found.update(range(int(first), int(last) + 1))
    return found


def _several(given: QueryDict | Mapping[str, str], name: str) -> list[str]:
    if isinstance(given, QueryDict):
        return [str(value) for value in given.getlist(name)]
    return [given[name]] if name in given else []


def _lines(written: str) -> list[tuple[str, set[int] | None]]:
    """`orders`, `orders:0,2` or `orders:0-99, 120`, one per line; names alone may also share a line."""
    found: list[tuple[str, set[int] | None]] = []
    for line in written.splitlines():
        if ":" not in line:
            found += [(name, None) for name in line.split()]
            continue
        name, _, some = line.strip().partition(":")
        found.append((name, numbers(some, name)))
    return found
