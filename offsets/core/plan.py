"""Offset plans: what a reset would set for each partition, what applying writes, and what undoing restores.

Plans are all or nothing: a partition that cannot be planned is a problem, and one problem rejects the plan.
Source: offsets.md 13.5 (the table of strategies and clamping).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.strategies import Reset, Strategy, invalid
from offsets.core.plan_types import Change, Committed, Found, Line, Position, Problem, Totals
from offsets.core.types import INT64_MAX, INT64_MIN, OffsetRecord, TopicPartition

MAX_LINES = 200_000
"""The most partitions of one plan: what one transaction writes while the group waits."""


def plan(
    reset: Reset, positions: Iterable[Position], found: Mapping[TopicPartition, Found]
) -> tuple[tuple[Line, ...], tuple[Problem, ...]]:
    """The lines of a plan, and the problems that prevent it; both in the order of `positions`.

    `found` holds the data of the strategy's source, for strategies that have one besides the partition itself.
    """
    rule = _RULES[reset.strategy]
    lines: list[Line] = []
    problems: list[Problem] = []
    for position in positions:
        if not position.exists:
            problems.append(_missing(position))
            continue
        made = rule(position, reset, found.get(position.key))
        if isinstance(made, Problem):
            problems.append(made)
        else:
            lines.append(made)
    return tuple(lines), tuple(problems)


def totals(lines: Sequence[Line]) -> Totals:
    """The plan in numbers."""
    changes = [line.new_lag - line.old_lag for line in lines if line.new_lag is not None and line.old_lag is not None]
    return Totals(
        partitions=len(lines),
        changed=sum(line.changes for line in lines),
        clamped=sum(line.clamped for line in lines),
        removed=sum(line.removes for line in lines),
        lag_change=min(max(sum(changes), INT64_MIN), INT64_MAX) if changes else None,
        outside=sum(line.outside for line in lines),
        unknown=sum(line.removes_unknown for line in lines),
    )


def revised(lines: Iterable[Line], *, clamp: bool = False, keep_unknown: bool = False) -> tuple[Line, ...]:
    """The lines of a plan with less risk.

    `clamp`: new offsets outside the log become the nearest one that it has. `keep_unknown`: partitions of which nothing
    is known are left out, so that they keep their offsets.
    """
    kept = [line for line in lines if not (keep_unknown and line.removes_unknown)]
    return tuple(_inside(line) if clamp else line for line in kept)


def _inside(line: Line) -> Line:
    if not line.outside:
        return line
    assert line.log is not None, "of a log that is unknown nothing is outside"
    assert line.new is not None, "what is removed is not outside"
    return replace(line, new=line.log.clamp(line.new), note=f"{line.new} is outside the log: clamped to it")


def application(lines: Iterable[Line]) -> Change:
    """What applying a plan writes: as Kafka's tool does, each offset without metadata or leader epoch.

    A partition whose offset stays the same is committed again too (`to-current` renews what would expire).
    """
    records = [OffsetRecord(line.topic, line.partition, line.new) for line in lines if line.new is not None]
    gone = [line.key for line in lines if line.new is None and line.old is not None]
    return Change(tuple(records), tuple(gone))


def restoration(lines: Iterable[Line]) -> Change:
    """What undoing an applied plan writes: exactly what was committed before, and nothing if nothing was."""
    records: list[OffsetRecord] = []
    gone: list[TopicPartition] = []
    for line in lines:
        if line.old is not None:
            records.append(_restored(line.key, line.old))
        elif line.new is not None:
            gone.append(line.key)
    return Change(tuple(records), tuple(gone))


def _restored(key: TopicPartition, old: Committed) -> OffsetRecord:
    return OffsetRecord(
        *key,
        offset=old.offset,
        leader_epoch=old.leader_epoch,
        metadata=old.metadata,
        expire_timestamp=old.expire_timestamp,
        commit_timestamp=old.commit_timestamp,
    )


def _to_earliest(position: Position, reset: Reset, found: Found | None) -> Line | Problem:
    return _unknown_log(position) if position.log is None else _line(position, position.log.start)


def _to_latest(position: Position, reset: Reset, found: Found | None) -> Line | Problem:
    return _unknown_log(position) if position.log is None else _line(position, position.log.end)


def _to_offset(position: Position, reset: Reset, found: Found | None) -> Line | Problem:
    assert reset.offset is not None, "`check` asked for it"
    return _clamped(position, reset.offset)


def _shift_by(position: Position, reset: Reset, found: Found | None) -> Line | Problem:
    assert reset.by is not None, "`check` asked for it"
    if position.committed is None:
        return _invalid(
            position,
            "no offset is committed, so it cannot be shifted: leave the partition out, or use another strategy",
        )
    return _clamped(position, position.committed.offset + reset.by)


def _to_time(position: Position, reset: Reset, found: Found | None) -> Line | Problem:
    """`found` is an estimate from samples of the log's end over time.

    Differs from Kafka: no records are available, so the offset is an estimate; it is kept within the log.
    """
    if position.log is None:
        return _unknown_log(position)
    if found is None or found.offset is None:
        return _invalid(position, "there are no samples of its log from that time: use to-earliest")
    if found.offset >= position.log.end:
        return _line(position, position.log.end, "no record was written at or after that time: uses the end of the log")
    return _clamped(position, found.offset)


def _to_current(position: Position, reset: Reset, found: Found | None) -> Line | Problem:
    if position.committed is not None:
        return _as_it_is(position, position.committed.offset)
    if position.log is None:
        return _unknown_log(position)
    return _line(position, position.log.end, "no offset is committed: uses the end of the log")


def _copy_from_group(position: Position, reset: Reset, found: Found | None) -> Line | Problem:
    if found is None or found.offset is None:
        return _invalid(position, f"group {reset.from_group!r} has no offset committed on it: leave the partition out")
    return _as_it_is(position, found.offset, found.note)


def _from_file(position: Position, reset: Reset, found: Found | None) -> Line | Problem:
    assert found is not None, "the lines of the file are the scope"
    assert found.offset is not None, "every line of a file has an offset"
    return _clamped(position, found.offset)


def _to_committed_at(position: Position, reset: Reset, found: Found | None) -> Line | Problem:
    if found is None or found.offset is None:
        told = found.note if found is not None and found.note else "no offset was committed then"
        return Line(position.topic, position.partition, position.committed, None, None, position.log, told)
    return _as_it_is(position, found.offset, found.note)


Rule = Callable[[Position, Reset, Found | None], Line | Problem]

_RULES: Mapping[Strategy, Rule] = {
    Strategy.TO_EARLIEST: _to_earliest,
    Strategy.TO_LATEST: _to_latest,
    Strategy.TO_OFFSET: _to_offset,
    Strategy.SHIFT_BY: _shift_by,
    Strategy.TO_DATETIME: _to_time,
    Strategy.BY_DURATION: _to_time,
    Strategy.TO_CURRENT: _to_current,
    Strategy.COPY_FROM_GROUP: _copy_from_group,
    Strategy.FROM_FILE: _from_file,
    Strategy.TO_COMMITTED_AT: _to_committed_at,
}


def _line(position: Position, offset: int, note: str = "", requested: int | None = None) -> Line:
    asked = offset if requested is None else max(INT64_MIN, min(requested, INT64_MAX))
    return Line(position.topic, position.partition, position.committed, asked, offset, position.log, note)


def _clamped(position: Position, offset: int) -> Line | Problem:
    if position.log is None:
        return _unknown_log(position)
    inside = position.log.clamp(offset)
    if inside == offset:
        return _line(position, offset)
    limit = "starts at" if offset < inside else "ends at"
    return _line(position, inside, f"{offset} is outside the log, which {limit} {inside}", offset)


def _as_it_is(position: Position, offset: int, note: str = "") -> Line:
    """An offset that a group had committed is set unchanged, wherever the log is now; the note says so."""
    if position.log is not None and position.log.clamp(offset) != offset:
        log = position.log
        outside = f"outside the log ({log.start} to {log.end}): consumers will apply their own reset policy"
        note = f"{note}; {outside}" if note else outside
    return _line(position, offset, note)


def _missing(position: Position) -> Problem:
    text = "does not exist: leave it out, or create the topic (or more partitions of it) first"
    return Problem(position.topic, position.partition, Error.UNKNOWN_TOPIC_OR_PARTITION, text)


def _unknown_log(position: Position) -> Problem:
    return _invalid(
        position,
        "the start and end of its log are unknown: report them with "
        f"POST /v1/topics/{position.topic}/watermarks, or leave the partition out",
    )


def too_many(count: int) -> ProtocolError:
    """The refusal of a plan with more partitions than one transaction should write."""
    return invalid(
        "topics", f"topics: {count} partitions or more; a plan has at most {MAX_LINES}: plan some topics at a time"
    )


def _invalid(position: Position, text: str) -> Problem:
    return Problem(position.topic, position.partition, Error.INVALID_REQUEST, text)
