"""The form of a reset: the strategies with their parameters, from a form to a `Reset` and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from django.http import QueryDict

from frontend.offsets.ticks import ALL, CHOSEN, scope_of
from frontend.wording import read_instant, wall
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.offset_file import read_offset_file
from kcoord.resets.strategies import PARAMETER, Reset, Strategy

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


CHOICES = (
    Choice(
        Strategy.TO_COMMITTED_AT,
        "Committed at a time",
        "What the group had committed at that instant, from its commit history.",
        "committed_at",
        "Instant",
        "instant",
    ),
    Choice(
        Strategy.TO_DATETIME,
        "Records written since a time",
        "The first record written at or after the instant, by interpolated samples of where the logs ended.",
        "at",
        "Instant",
        "instant",
    ),
    Choice(
        Strategy.BY_DURATION,
        "Records written recently",
        "As above, for this long before now.",
        "duration",
        "ISO 8601 duration",
        example="PT1H30M",
    ),
    Choice(Strategy.TO_EARLIEST, "Earliest", "The start of each log: all records are read again."),
    Choice(Strategy.TO_LATEST, "Latest", "The end of each log: all present records are skipped."),
    Choice(Strategy.TO_OFFSET, "An offset", "The same for every partition.", "offset", "Offset", example="42"),
    Choice(
        Strategy.SHIFT_BY,
        "Forwards or backwards",
        "This many records from the committed offset; negative goes back.",
        "by",
        "Records",
        example="-100",
    ),
    Choice(
        Strategy.COPY_FROM_GROUP,
        "Copy another group",
        "What another group has committed.",
        "from_group",
        "Group id",
    ),
    Choice(
        Strategy.FROM_FILE,
        "From a file",
        "Lines topic,partition,offset or group,topic,partition,offset, as exported by Kafka's tool.",
        "csv",
        "Lines",
        "textarea",
        "orders,0,42",
    ),
    Choice(
        Strategy.TO_CURRENT,
        "Current",
        "The committed offset, or the end of the log for a partition without one. Commits it again, so that it does "
        "not expire.",
    ),
)


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
