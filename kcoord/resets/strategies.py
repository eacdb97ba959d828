"""The strategies of an offset plan: where each takes the new offset from, and which parameter it needs.

Source: offsets.md 13.5; http-api.md 4. `copy-from-group` and `to-committed-at` are additions: Kafka's tool has neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from kcoord.protocol.errors import Error, ProtocolError

Millis = int
TopicPartition = tuple[str, int]

Scope = tuple[tuple[str, tuple[int, ...] | None], ...] | None
"""Topics with partitions; partitions None: the whole topic. None instead of topics: everything committed."""


class Strategy(str, Enum):
    """Where the new offsets come from."""

    TO_EARLIEST = "to-earliest"
    TO_LATEST = "to-latest"
    TO_OFFSET = "to-offset"
    SHIFT_BY = "shift-by"
    TO_DATETIME = "to-datetime"
    BY_DURATION = "by-duration"
    TO_CURRENT = "to-current"
    COPY_FROM_GROUP = "copy-from-group"
    FROM_FILE = "from-file"
    TO_COMMITTED_AT = "to-committed-at"


PARAMETER: Mapping[Strategy, str | None] = {
    Strategy.TO_EARLIEST: None,
    Strategy.TO_LATEST: None,
    Strategy.TO_OFFSET: "offset",
    Strategy.SHIFT_BY: "by",
    Strategy.TO_DATETIME: "at",
    Strategy.BY_DURATION: "duration",
    Strategy.TO_CURRENT: None,
    Strategy.COPY_FROM_GROUP: "from_group",
    Strategy.FROM_FILE: "csv",
    Strategy.TO_COMMITTED_AT: "at",
}
"""The parameter that a strategy needs; each takes one at most."""

OF_COMMITTED = frozenset({Strategy.COPY_FROM_GROUP, Strategy.TO_COMMITTED_AT})
"""Strategies that take what groups have committed: not for share groups."""

PARAMETERS = tuple(sorted({name for name in PARAMETER.values() if name is not None}))


@dataclass(frozen=True, slots=True)
class Reset:
    """The requested reset. Exactly the parameter of the strategy is given, the others are None.

    Parameters: `scope` is None for `from-file`, whose lines define it; `at` in ms; `duration` ISO 8601; `csv` the lines
    of a file that concern the group (`kcoord.resets.offset_file`). `clamp`: keep every new offset within its log,
    whatever the strategy; `keep_unknown`: leave out partitions of which `to-committed-at` knows nothing, instead of
    removing their offsets.
    """

    strategy: Strategy
    scope: Scope = None
    offset: int | None = None
    by: int | None = None
    at: Millis | None = None
    duration: str | None = None
    from_group: str | None = None
    csv: Mapping[TopicPartition, int] | None = None
    clamp: bool = False
    keep_unknown: bool = False


def check(reset: Reset) -> None:
    """Raise INVALID_REQUEST, naming the field, unless the parameters match the strategy and name nothing twice.

    Whether the topics and partitions exist is checked by the plan.
    """
    wanted = PARAMETER[reset.strategy]
    name = reset.strategy.value
    if wanted is not None and getattr(reset, wanted) is None:
        raise invalid(wanted, f"{wanted} is missing: strategy {name} requires it")
    for parameter in PARAMETERS:
        if parameter != wanted and getattr(reset, parameter) is not None:
            needs = f"takes {wanted}" if wanted is not None else "takes none"
            raise invalid(parameter, f"{parameter} is not a parameter of strategy {name}, which {needs}: leave it out")
    if reset.scope is None:
        return
    if reset.strategy is Strategy.FROM_FILE:
        raise invalid(
            "topics", "topics is not a parameter of strategy from-file: the lines of the file name the topics"
        )
    _check_scope(reset.scope)


def _check_scope(scope: tuple[tuple[str, tuple[int, ...] | None], ...]) -> None:
    if not scope:
        raise invalid(
            "topics", "topics must not be empty: name topics, or leave it out for all topics with committed offsets"
        )
    seen: set[str] = set()
    for index, (topic, partitions) in enumerate(scope):
        field = f"topics[{index}]"
        if topic in seen:
            raise invalid(f"{field}.name", f"{field}.name: {topic!r} is listed twice; put its partitions in one entry")
        seen.add(topic)
        if partitions is None:
            continue
        if not partitions:
            raise invalid(
                f"{field}.partitions",
                f"{field}.partitions must not be empty: list partitions, or leave it out for all of them",
            )
        for double in _doubles(partitions):
            raise invalid(f"{field}.partitions", f"{field}.partitions: {double} is listed twice")


def _doubles(partitions: tuple[int, ...]) -> Iterator[int]:
    seen: set[int] = set()
    for partition in partitions:
        if partition in seen:
            yield partition
        seen.add(partition)


def invalid(field: str, detail: str) -> ProtocolError:
    """An INVALID_REQUEST error about a field."""
    return ProtocolError(Error.INVALID_REQUEST, detail, fields={"field": field})
