"""The form of a reset: what is ticked, strategies, and instants to choose. Pure functions.

It sends `t` (whole topics), `p` (`topic:partition`), `n:<topic>` (numbers of a topic too wide for boxes) and
`topics` (other topics, one per line).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from typing import Any

from django.http import QueryDict

from frontend.ui.rows import Millis
from frontend.ui.wording import beyond, ranges, read_instant, wall
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.instants import clock
from kcoord.resets.offset_file import read_offset_file
from kcoord.resets.strategies import PARAMETER, Reset, Scope, Strategy

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


Given = QueryDict | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy that can be chosen. `field`: the name of its parameter's input, "" for none; `kind` its type."""

    strategy: Strategy
    label: str
    help: str
    field: str = ""
    field_label: str = ""
    kind: str = "text"
    example: str = ""


S = Strategy
CHOICES = (
    Choice(
        S.TO_COMMITTED_AT, "Committed at a time",
        "What the group had committed at that instant, from its commit history.", "committed_at", "Instant", "instant",
    ),
    Choice(
        S.TO_DATETIME, "Records written since a time",
        "The first record written at or after the instant, by interpolated samples of where the logs ended.",
        "at", "Instant", "instant",
    ),
    Choice(
        S.BY_DURATION, "Records written recently", "As above, for this long before now.",
        "duration", "ISO 8601 duration", example="PT1H30M",
    ),
    Choice(S.TO_EARLIEST, "Earliest", "The start of each log: all records are read again."),
    Choice(S.TO_LATEST, "Latest", "The end of each log: all present records are skipped."),
    Choice(S.TO_OFFSET, "An offset", "The same for every partition.", "offset", "Offset", example="42"),
    Choice(
        S.SHIFT_BY, "Forwards or backwards", "This many records from the committed offset; negative goes back.",
        "by", "Records", example="-100",
    ),
    Choice(S.COPY_FROM_GROUP, "Copy another group", "What another group has committed.", "from_group", "Group id"),
    Choice(
        S.FROM_FILE, "From a file",
        "Lines topic,partition,offset or group,topic,partition,offset, as exported by Kafka's tool.",
        "csv", "Lines", "textarea", "orders,0,42",
    ),
    Choice(
        S.TO_CURRENT, "Current",
        "The committed offset, or the end of the log for a partition without one. Commits it again, so that it does "
        "not expire.",
    ),
)  # fmt: skip


def chosen(name: object) -> Choice:
    """The choice of a strategy by its name. Raises INVALID_REQUEST."""
    found = next((choice for choice in CHOICES if choice.strategy.value == name), None)
    if found is None:
        raise invalid("Choose where the new offsets come from.")
    return found


def read(given: Given, group_id: str, zone: tzinfo) -> Reset:
    """What a form asks for; instants without an offset are in `zone`. Raises INVALID_REQUEST naming the field."""
    choice = chosen(given.get("strategy"))
    preset = given.get(f"{choice.field}_when", "") if choice.kind == "instant" else ""
    written = given.get(choice.field, "").strip() if choice.field else ""
    if choice.field and not written and not preset:
        raise invalid(f"{choice.label}: {choice.field_label} is missing.")
    parameters: dict[str, Any] = {}
    name = PARAMETER[choice.strategy]
    if name in ("offset", "by"):
        parameters[name] = _number(written, choice)
    elif name == "at":
        parameters[name] = _instant(preset or written, choice, zone)
    elif name == "csv":
        parameters[name] = read_offset_file(written).of_group(group_id)
    elif name is not None:
        parameters[name] = written
    careful: dict[str, Any] = {key: given.get(key) == "on" for key in ("clamp", "keep_unknown")}
    return Reset(
        choice.strategy, None if choice.strategy is Strategy.FROM_FILE else scope_of(given), **parameters, **careful
    )


def write(reset: Reset, reason: str, zone: tzinfo) -> QueryDict:
    """The form that asks for a reset, filled in."""
    given = QueryDict(mutable=True)
    choice = chosen(reset.strategy.value)
    given["strategy"], given["reason"] = reset.strategy.value, reason
    scope = reset.scope or ()
    given.setlist("t", [topic for topic, some in scope if some is None])
    given.setlist("p", [f"{topic}:{number}" for topic, some in scope for number in some or ()])
    given["scope"] = ALL if reset.scope is None else CHOSEN
    name = PARAMETER[reset.strategy]
    if name == "at":
        assert reset.at is not None
        given[f"{choice.field}_when"], given[choice.field] = str(reset.at), wall(reset.at, zone)
    elif name == "csv":
        given[choice.field] = "\n".join(f"{topic},{number},{at}" for (topic, number), at in (reset.csv or {}).items())
    elif name is not None:
        given[choice.field] = str(getattr(reset, name))
    for key in ("clamp", "keep_unknown"):
        if getattr(reset, key):
            given[key] = "on"
    return given


def _number(written: str, choice: Choice) -> int:
    digits = written.removeprefix("-").replace(",", "")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 19 or int(digits) >= 2**63:
        raise invalid(f"{choice.field_label}: {written[:50]!r} is not a 64-bit integer.")
    return int(written.replace(",", ""))


def _instant(written: str, choice: Choice, zone: tzinfo) -> int:
    if written.isascii() and written.isdigit() and len(written) < 15:
        return int(written)
    try:
        return read_instant(written, zone)
    except ValueError as error:
        raise invalid(f"{choice.label}: {error}.") from None


def invalid(detail: str) -> ProtocolError:
    """An INVALID_REQUEST error."""
    return ProtocolError(Error.INVALID_REQUEST, detail)


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
