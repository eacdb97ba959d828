"""Offset plans without a database: what each strategy makes of a partition, and that undoing undoes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcoord.protocol.errors import Error
from kcoord.resets.strategies import Reset, Strategy
from offsets.core.lag import PartitionLag, total_of_partitions
from offsets.core.plan import MAX_LINES, application, plan, restoration, revised, too_many, totals
from offsets.core.plan_types import UNKNOWN_THEN, Change, Committed, Found, Line, Log, Position
from offsets.core.types import INT64_MAX, INT64_MIN, TopicPartition

OFFSETS = st.integers(0, INT64_MAX)
LOGS = st.tuples(OFFSETS, OFFSETS).map(lambda bounds: Log(min(bounds), max(bounds)))
COMMITTED = st.builds(
    Committed,
    offset=st.integers(INT64_MIN, INT64_MAX),
    leader_epoch=st.integers(-1, 5),
    metadata=st.text(max_size=3),
    commit_timestamp=st.integers(0, 2**40),
    expire_timestamp=st.none() | st.integers(0, 2**40),
    record_offset=st.integers(1, 2**40),
)
POSITIONS = st.lists(
    st.builds(
        Position,
        topic=st.sampled_from(["a", "b"]),
        partition=st.integers(0, 5),
        committed=st.none() | COMMITTED,
        log=st.none() | LOGS,
    ),
    unique_by=lambda position: position.key,
)
CLAMPED = (Strategy.TO_OFFSET, Strategy.SHIFT_BY, Strategy.FROM_FILE, Strategy.TO_DATETIME, Strategy.BY_DURATION)
State = dict[TopicPartition, Committed]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Reset, list[Position], dict[TopicPartition, Found]]:
    """A reset with positions and what its source knows."""
    strategy = draw(st.sampled_from(Strategy))
    positions = draw(POSITIONS)
    reset = Reset(
        strategy,
        offset=draw(OFFSETS) if strategy is Strategy.TO_OFFSET else None,
        by=draw(st.integers(-INT64_MAX, INT64_MAX)) if strategy is Strategy.SHIFT_BY else None,
    )
    offsets = OFFSETS if strategy is Strategy.FROM_FILE else st.none() | OFFSETS
    founds = st.builds(Found, offsets, st.sampled_from(["", UNKNOWN_THEN]))
    sure = strategy is Strategy.FROM_FILE
    found = {p.key: draw(founds) for p in positions if sure or draw(st.booleans())}
    return reset, positions, found


def carry_out(state: State, change: Change) -> State:
    """The committed offsets after a change; what only the journal knows is left at 0."""
    after = {key: value for key, value in state.items() if key not in change.removed}
    for record in change.records:
        after[record.topic, record.partition] = Committed(
            record.offset,
            record.leader_epoch,
            record.metadata,
            1 if record.commit_timestamp is None else record.commit_timestamp,
            record.expire_timestamp,
        )
    return after


def state_of(positions: list[Position]) -> State:
    """What is committed at these positions."""
    return {p.key: replace(p.committed, record_offset=0) for p in positions if p.committed is not None}


@given(cases())
def test_each_partition_is_a_line_or_a_problem_in_order(
    case: tuple[Reset, list[Position], dict[TopicPartition, Found]],
) -> None:
    reset, positions, found = case
    lines, problems = plan(reset, positions, found)
    told = {line.key for line in lines} | {(problem.topic, problem.partition) for problem in problems}
    assert told == {position.key for position in positions}
    assert len(lines) + len(problems) == len(positions)
    assert [line.key for line in lines] == [p.key for p in positions if p.key in {line.key for line in lines}]


@given(cases())
def test_undoing_what_was_applied_leaves_what_was_there(
    case: tuple[Reset, list[Position], dict[TopicPartition, Found]],
) -> None:
    reset, positions, found = case
    lines, _ = plan(reset, positions, found)
    before = state_of(positions)
    applied = carry_out(before, application(lines))
    assert {line.key: line.new for line in lines if line.new is not None} == {
        line.key: applied[line.key].offset for line in lines if line.key in applied
    }
    assert carry_out(applied, restoration(lines)) == before


@given(cases())
def test_what_is_clamped_lies_in_the_log_and_only_then(
    case: tuple[Reset, list[Position], dict[TopicPartition, Found]],
) -> None:
    reset, positions, found = case
    lines, _ = plan(reset, positions, found)
    for line in lines:
        if reset.strategy in CLAMPED or reset.strategy in (Strategy.TO_EARLIEST, Strategy.TO_LATEST):
            assert line.log is not None
            assert line.new is not None
            assert line.log.start <= line.new <= line.log.end
        assert line.clamped == (line.requested != line.new)
        if line.clamped:
            assert line.log is not None
            assert line.requested is not None
            assert line.new in (line.log.start, line.log.end)
            assert INT64_MIN <= line.requested <= INT64_MAX
            assert line.note


@given(cases())
def test_planning_the_same_again_changes_nothing(
    case: tuple[Reset, list[Position], dict[TopicPartition, Found]],
) -> None:
    reset, positions, found = case
    if reset.strategy is Strategy.SHIFT_BY:
        return
    lines, _ = plan(reset, positions, found)
    news = {line.key: line.new for line in lines}
    after = [
        replace(p, committed=None if news[p.key] is None else Committed(news[p.key])) if p.key in news else p
        for p in positions
    ]
    again, _ = plan(reset, after, found)
    assert {line.key: line.new for line in again} == news
    assert totals(again).changed == 0


@given(cases())
def test_lags_are_never_negative_and_totals_add_up(
    case: tuple[Reset, list[Position], dict[TopicPartition, Found]],
) -> None:
    lines, _ = plan(*case)
    assert all(lag is None or lag >= 0 for line in lines for lag in (line.old_lag, line.new_lag))
    found = totals(lines)
    assert found.partitions == len(lines) >= found.changed >= found.removed >= found.unknown
    assert found.outside + found.removed == sum(line.risky for line in lines)
    known = [(line.old_lag, line.new_lag) for line in lines if None not in (line.old_lag, line.new_lag)]
    change = sum(new - old for old, new in known)  # type: ignore[operator]
    assert found.lag_change == (min(max(change, INT64_MIN), INT64_MAX) if known else None)


def test_sums_stay_within_64_bits() -> None:
    log = Log(0, INT64_MAX)
    forwards = [Line("a", n, Committed(0), INT64_MAX, INT64_MAX, log) for n in range(2)]
    back = [Line("a", n, Committed(INT64_MAX), 0, 0, log) for n in range(2)]
    assert totals(forwards).lag_change == INT64_MIN
    assert totals(back).lag_change == INT64_MAX
    assert total_of_partitions(PartitionLag(INT64_MAX) for _ in range(2)).lag == INT64_MAX


LOG = Log(10, 100)
AT_40 = Position("a", 0, committed=Committed(40), log=LOG)


@pytest.mark.parametrize(
    ("reset", "position", "found", "new", "requested"),
    [
        (Reset(Strategy.TO_EARLIEST), AT_40, None, 10, 10),
        (Reset(Strategy.TO_LATEST), AT_40, None, 100, 100),
        (Reset(Strategy.TO_OFFSET, offset=5), AT_40, None, 10, 5),
        (Reset(Strategy.TO_OFFSET, offset=100), AT_40, None, 100, 100),
        (Reset(Strategy.TO_OFFSET, offset=101), AT_40, None, 100, 101),
        (Reset(Strategy.SHIFT_BY, by=-41), AT_40, None, 10, -1),
        (Reset(Strategy.SHIFT_BY, by=0), AT_40, None, 40, 40),
        (Reset(Strategy.TO_CURRENT), AT_40, None, 40, 40),
        (Reset(Strategy.TO_CURRENT), replace(AT_40, committed=None), None, 100, 100),
        (Reset(Strategy.TO_CURRENT), replace(AT_40, committed=Committed(3)), None, 3, 3),
        (Reset(Strategy.TO_CURRENT), replace(AT_40, log=None), None, 40, 40),
        (Reset(Strategy.TO_DATETIME), AT_40, Found(55), 55, 55),
        (Reset(Strategy.TO_DATETIME), AT_40, Found(5), 10, 5),
        (Reset(Strategy.TO_DATETIME), AT_40, Found(100), 100, 100),
        (Reset(Strategy.BY_DURATION), AT_40, Found(130), 100, 100),
        (Reset(Strategy.COPY_FROM_GROUP), AT_40, Found(3), 3, 3),
        (Reset(Strategy.COPY_FROM_GROUP), replace(AT_40, log=None), Found(3), 3, 3),
        (Reset(Strategy.FROM_FILE), AT_40, Found(300), 100, 300),
        (Reset(Strategy.TO_COMMITTED_AT), AT_40, Found(7), 7, 7),
        (Reset(Strategy.TO_COMMITTED_AT), AT_40, Found(None), None, None),
    ],
)
def test_the_table_of_strategies(
    reset: Reset, position: Position, found: Found | None, new: int | None, requested: int | None
) -> None:
    (line,), problems = plan(reset, [position], {} if found is None else {position.key: found})
    assert problems == ()
    assert (line.new, line.requested) == (new, requested)


@pytest.mark.parametrize(
    ("reset", "position", "found", "error", "told"),
    [
        (Reset(Strategy.TO_EARLIEST), replace(AT_40, log=None), None, Error.INVALID_REQUEST, "/watermarks"),
        (Reset(Strategy.TO_LATEST), replace(AT_40, log=None), None, Error.INVALID_REQUEST, "/watermarks"),
        (Reset(Strategy.TO_OFFSET, offset=1), replace(AT_40, log=None), None, Error.INVALID_REQUEST, "/watermarks"),
        (Reset(Strategy.SHIFT_BY, by=1), replace(AT_40, log=None), None, Error.INVALID_REQUEST, "/watermarks"),
        (Reset(Strategy.SHIFT_BY, by=1), replace(AT_40, committed=None), None, Error.INVALID_REQUEST, "committed"),
        (Reset(Strategy.TO_CURRENT), Position("a", 0), None, Error.INVALID_REQUEST, "/watermarks"),
        (Reset(Strategy.TO_DATETIME), AT_40, Found(None), Error.INVALID_REQUEST, "no samples of its log"),
        (Reset(Strategy.TO_DATETIME), replace(AT_40, log=None), Found(5), Error.INVALID_REQUEST, "/watermarks"),
        (Reset(Strategy.FROM_FILE), replace(AT_40, log=None), Found(5), Error.INVALID_REQUEST, "/watermarks"),
        (Reset(Strategy.COPY_FROM_GROUP, from_group="s"), AT_40, None, Error.INVALID_REQUEST, "'s' has no offset"),
        (Reset(Strategy.TO_CURRENT), replace(AT_40, exists=False), None, Error.UNKNOWN_TOPIC_OR_PARTITION, "exist"),
    ],
)
def test_what_cannot_be_planned(reset: Reset, position: Position, found: Found | None, error: Error, told: str) -> None:
    lines, (problem,) = plan(reset, [position], {} if found is None else {position.key: found})
    assert lines == ()
    assert (problem.topic, problem.partition, problem.error) == ("a", 0, error)
    assert told in problem.text


@given(cases(), st.booleans(), st.booleans())
def test_a_revised_plan_has_less_risk_and_changes_nothing_else(
    case: tuple[Reset, list[Position], dict[TopicPartition, Found]], clamp: bool, keep_unknown: bool
) -> None:
    lines, _ = plan(*case)
    found = revised(lines, clamp=clamp, keep_unknown=keep_unknown)
    before, after = totals(lines), totals(found)
    assert after.outside == (0 if clamp else before.outside)
    assert after.unknown == (0 if keep_unknown else before.unknown)
    assert after.removed - after.unknown == before.removed - before.unknown, "what is known to be empty is removed"
    by_key = {line.key: line for line in found}
    for line in lines:
        if line.removes_unknown and keep_unknown:
            assert line.key not in by_key
        elif line.outside and clamp:
            assert line.log is not None
            assert by_key[line.key].new in (line.log.start, line.log.end)
            assert by_key[line.key].note == f"{line.new} is outside the log: clamped to it"
        else:
            assert by_key[line.key] == line


def test_what_nobody_knows_is_told_from_what_is_known_to_be_empty() -> None:
    unknown = Line("a", 0, Committed(3), None, None, LOG, UNKNOWN_THEN)
    empty = Line("a", 1, Committed(3), None, None, LOG, "no offset was committed then")
    nothing_there = Line("a", 2, None, None, None, LOG, UNKNOWN_THEN)
    assert [line.removes for line in (unknown, empty, nothing_there)] == [True, True, False]
    assert revised((unknown, empty, nothing_there), keep_unknown=True) == (empty, nothing_there)


def test_lag_counts_what_still_exists() -> None:
    line = Line("a", 0, Committed(3), 250, 250, LOG)
    assert (line.old_lag, line.new_lag) == (90, 0)


def test_what_is_written_is_each_new_offset_and_what_goes_is_each_old_one_without_a_new_one() -> None:
    set_, kept_out = Line("a", 0, Committed(3), 7, 7), Line("a", 1, None, None, None)
    removed, added = Line("a", 2, Committed(5), None, None), Line("a", 3, None, 9, 9)
    lines = [set_, kept_out, removed, added, Line("a", 4, Committed(6), None, None)]
    applied = application(lines)
    assert [(record.partition, record.offset) for record in applied.records] == [(0, 7), (3, 9)]
    assert applied.removed == (("a", 2), ("a", 4))
    undone = restoration(lines)
    assert [(record.partition, record.offset) for record in undone.records] == [(0, 3), (2, 5), (4, 6)]
    assert undone.removed == (("a", 3),)
    assert (totals(lines).partitions, totals(lines).changed, totals(lines).removed) == (5, 4, 2)


@pytest.mark.parametrize(
    ("reset", "found", "note"),
    [
        (Reset(Strategy.TO_LATEST), None, ""),
        (Reset(Strategy.TO_OFFSET, offset=50), None, ""),
        (Reset(Strategy.TO_OFFSET, offset=5), None, "5 is outside the log, which starts at 10"),
        (Reset(Strategy.TO_OFFSET, offset=500), None, "500 is outside the log, which ends at 100"),
        (Reset(Strategy.TO_DATETIME), Found(99), ""),
        (
            Reset(Strategy.TO_DATETIME),
            Found(100),
            "no record was written at or after that time: uses the end of the log",
        ),
        (Reset(Strategy.COPY_FROM_GROUP), Found(50, "n"), "n"),
        (Reset(Strategy.COPY_FROM_GROUP), Found(50), ""),
        (
            Reset(Strategy.COPY_FROM_GROUP),
            Found(5, "n"),
            "n; outside the log (10 to 100): consumers will apply their own reset policy",
        ),
        (Reset(Strategy.TO_CURRENT), None, ""),
        (
            Reset(Strategy.COPY_FROM_GROUP),
            Found(5),
            "outside the log (10 to 100): consumers will apply their own reset policy",
        ),
        (Reset(Strategy.TO_COMMITTED_AT), None, "no offset was committed then"),
        (Reset(Strategy.TO_COMMITTED_AT), Found(None), "no offset was committed then"),
        (Reset(Strategy.TO_COMMITTED_AT), Found(None, "it was deleted"), "it was deleted"),
    ],
)
def test_a_line_says_why_it_is_not_what_was_asked(reset: Reset, found: Found | None, note: str) -> None:
    (line,), _ = plan(reset, [AT_40], {} if found is None else {AT_40.key: found})
    assert line.note == note


def test_an_empty_log_ends_before_what_lies_above_it() -> None:
    position = replace(AT_40, log=Log(10, 10))
    (line,), _ = plan(Reset(Strategy.TO_OFFSET, offset=11), [position], {})
    assert line.note == "11 is outside the log, which ends at 10"


def test_a_plan_of_too_many_partitions_is_refused_with_the_limit() -> None:
    assert too_many(MAX_LINES + 1).error is Error.INVALID_REQUEST
    assert str(MAX_LINES) in too_many(MAX_LINES + 1).detail
