"""What may be asked of a plan: parameters of strategies, scopes, datetimes, durations, and files."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.instants import parse_datetime, parse_duration
from kcoord.resets.offset_file import MAX_NAMED, MAX_REPORTED, check_group, read_offset_file
from kcoord.resets.strategies import PARAMETER, PARAMETERS, Reset, Strategy, check

VALUES: dict[str, Any] = {
    "offset": 0,
    "by": 0,
    "at": 0,
    "duration": "PT1S",
    "from_group": "s",
    "csv": {("orders", 0): 1},
}
NOON = 1_769_860_800_000
DAY, HOUR = 86_400_000, 3_600_000


def refusal(reset: Reset) -> ProtocolError:
    with pytest.raises(ProtocolError) as raised:
        check(reset)
    assert raised.value.error is Error.INVALID_REQUEST
    assert str(raised.value.fields["field"]) in raised.value.detail
    return raised.value


@pytest.mark.parametrize("strategy", list(Strategy))
def test_a_strategy_takes_its_own_parameter_and_no_other(strategy: Strategy) -> None:
    wanted = PARAMETER[strategy]
    own = {} if wanted is None else {wanted: VALUES[wanted]}
    check(Reset(strategy, **own))
    if wanted is not None:
        missing = refusal(Reset(strategy))
        assert missing.fields["field"] == wanted
        assert strategy.value in missing.detail
    for other in set(PARAMETERS) - {wanted}:
        foreign = refusal(Reset(strategy, **own, **{other: VALUES[other]}))
        assert foreign.fields["field"] == other
        assert strategy.value in foreign.detail


@pytest.mark.parametrize(
    ("scope", "field"),
    [
        ((), "topics"),
        ((("a", None), ("b", None), ("a", (1,))), "topics[2].name"),
        ((("a", (0, 1, 0)),), "topics[0].partitions"),
        ((("a", ()),), "topics[0].partitions"),
    ],
)
def test_a_scope_names_something_and_nothing_twice(scope: Any, field: str) -> None:
    assert refusal(Reset(Strategy.TO_LATEST, scope)).fields["field"] == field


def test_a_scope_of_topics_and_of_partitions_is_taken() -> None:
    check(Reset(Strategy.TO_LATEST, (("a", (0, 2, 1)), ("b", None), ("c", (0,)))))


def test_the_partition_that_is_named_twice_is_told() -> None:
    assert "1 is listed twice" in refusal(Reset(Strategy.TO_LATEST, (("a", (0, 1, 2, 1, 0)),))).detail


@pytest.mark.parametrize(
    ("reset", "told"),
    [
        (Reset(Strategy.TO_LATEST, by=1), "strategy to-latest, which takes none"),
        (Reset(Strategy.SHIFT_BY, by=1, offset=2), "strategy shift-by, which takes by: leave it out"),
    ],
)
def test_a_parameter_that_does_not_belong_is_told_with_what_does(reset: Reset, told: str) -> None:
    assert told in refusal(reset).detail


def test_a_file_is_its_own_scope() -> None:
    assert refusal(Reset(Strategy.FROM_FILE, (("orders", None),), csv={("orders", 0): 1})).fields["field"] == "topics"


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-01-31T12:00:00.000", NOON),
        ("2026-01-31T12:00:00.001", NOON + 1),
        ("2026-01-31T12:00:00.000Z", NOON),
        ("2026-01-31T13:00:00.000+01", NOON),
        ("2026-01-31T13:30:00.000+0130", NOON),
        ("2026-01-31T06:30:00.000-05:30", NOON),
        ("1970-01-01T00:00:00.000", 0),
    ],
)
def test_datetimes(text: str, instant: int) -> None:
    assert parse_datetime(text) == instant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-31 12:00:00.000",
        "2026-01-31T12:00:00",
        "2026-01-31T12:00:00.00",
        "2026-01-31T12:00:00.0000",
        "2026-01-31T12:00",
        "2026-02-30T12:00:00.000",
        "2026-01-31T24:00:00.000",
        "2026-01-31T12:00:00.000+25:00",
        "2026-01-31T12:00:00.000 Z",
        "2026-01-31T12:00:00.000z\n",
        "٢٠٢٦-01-31T12:00:00.000",
        "now",
    ],
)
def test_what_is_no_datetime(text: str) -> None:
    with pytest.raises(ProtocolError, match="datetime") as raised:
        parse_datetime(text)
    assert raised.value.fields["field"] == "at"


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("P1DT2H", DAY + 2 * HOUR),
        ("PT30M", 30 * 60_000),
        ("P2W", 14 * DAY),
        ("PT0.5S", 500),
        ("PT1,0019S", 1_001),
        ("P0D", 0),
        ("pt1h", HOUR),
        ("P400DT1H1M1S", 400 * DAY + HOUR + 61_000),
        ("PT48H", 2 * DAY),
    ],
)
def test_durations(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "PT",
        "P1DT",
        "1D",
        "P1Y",
        "P1M",
        "P1W2D",
        "PT-1H",
        "-P1D",
        "P-1D",
        "P1D2H",
        "PT1.S",
        "P1.5D",
        "P1D ",
        "P1D\n",
    ],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ProtocolError, match="ISO 8601") as raised:
        parse_duration(text)
    assert raised.value.fields["field"] == "duration"


TOPICS = st.text("abc.-_09", min_size=1, max_size=5)
GROUPS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="/"), min_size=1)
ROWS = st.dictionaries(st.tuples(TOPICS, st.integers(0, 2**31 - 1)), st.integers(0, 2**63 - 1), min_size=1)


@given(st.dictionaries(GROUPS, ROWS, min_size=1), st.sampled_from(["\n", "\r\n"]))
def test_what_is_written_with_groups_is_read_back(groups: dict[str, dict[tuple[str, int], int]], end: str) -> None:
    text = io.StringIO()
    rows = [(group, *key, offset) for group, offsets in groups.items() for key, offset in offsets.items()]
    csv.writer(text, lineterminator=end).writerows(rows)
    file = read_offset_file(text.getvalue())
    assert file.bad == ()
    assert file.names_groups
    assert file.groups == groups


@given(ROWS)
def test_what_is_written_of_one_group_is_any_groups(offsets: dict[tuple[str, int], int]) -> None:
    file = read_offset_file("\ufeff" + "\n".join(f"{topic},{p},{offset}" for (topic, p), offset in offsets.items()))
    assert not file.names_groups
    assert file.of_group("g") == file.of_group("h") == offsets


@given(st.text(max_size=60))
def test_no_text_makes_reading_fail(text: str) -> None:
    file = read_offset_file(text)
    read = sum(map(len, file.groups.values()))
    assert read + len(file.bad) == sum(1 for line in text.removeprefix("\ufeff").split("\n") if line.strip())


def test_every_bad_line_is_named_with_its_number() -> None:
    lines = [
        "g,orders,0,5",
        "GROUP,TOPIC,PARTITION,OFFSET",
        "orders,1,5",
        "",
        "g,orders,1,-5",
        "g,orders,1,9223372036854775808",
        "g,orders,2147483648,1",
        "g,orders,0,6",
        "g,or ders,3,1",
        "g,orders, 3,1",
        'g,"orders,3,1',
        "g/h,orders,4,1",
        "g,orders",
        "g,orders,4,٤",
        ",orders,4,1",
        "h,orders,0,5",
    ]
    file = read_offset_file("\n".join(lines))
    assert {bad.line: bad.problem for bad in file.bad} == {
        2: "the partition 'PARTITION' is not a whole number from 0 to 2147483647",
        3: "3 fields where line 1 has 4",
        5: "the offset '-5' is not a whole number from 0 to 9223372036854775807",
        6: "the offset '9223372036854775808' is not a whole number from 0 to 9223372036854775807",
        7: "the partition '2147483648' is not a whole number from 0 to 2147483647",
        8: "orders-0 is already listed in line 1",
        9: "'or ders' is not a valid topic name",
        10: "the partition ' 3' is not a whole number from 0 to 2147483647",
        11: "not valid CSV: unexpected end of data",
        12: "'g/h' is not a valid group id: use 1 to 255 characters without '/'",
        13: "2 fields; a line is topic,partition,offset or group,topic,partition,offset",
        14: "the offset '٤' is not a whole number from 0 to 9223372036854775807",
        15: "'' is not a valid group id: use 1 to 255 characters without '/'",
    }
    with pytest.raises(ProtocolError) as raised:
        file.of_group("g")
    assert raised.value.fields["bad_lines"] == 13
    assert [line["line"] for line in raised.value.fields["lines"]] == [bad.line for bad in file.bad]  # type: ignore[attr-defined]
    assert "line 2: the partition" in raised.value.detail


def test_of_very_many_bad_lines_the_number_is_told() -> None:
    with pytest.raises(ProtocolError) as raised:
        read_offset_file("x\n" * 5_000).of_group("g")
    assert raised.value.fields["bad_lines"] == 5_000
    assert len(raised.value.fields["lines"]) == MAX_REPORTED  # type: ignore[arg-type]
    assert "and 4990 more" in raised.value.detail


def test_each_bad_line_is_told_with_its_problem_and_the_message_ends_where_the_list_does() -> None:
    bad = "g,or ders,0,1\n"
    with pytest.raises(ProtocolError) as raised:
        read_offset_file(bad + "single\n").refuse_bad_lines()
    first, second = raised.value.fields["lines"]  # type: ignore[misc]
    assert first == {"line": 1, "problem": "'or ders' is not a valid topic name"}
    assert second["problem"] == "1 field; a line is topic,partition,offset or group,topic,partition,offset"
    assert raised.value.detail.endswith("; line 2: " + second["problem"])
    for lines, more in ((MAX_NAMED, False), (MAX_NAMED + 1, True)):
        with pytest.raises(ProtocolError) as raised:
            read_offset_file(bad * lines).refuse_bad_lines()
        assert raised.value.detail.endswith("; and 1 more") is more
        assert ("; and" in raised.value.detail) is more


@pytest.mark.parametrize("text", ["", "\n \r\n"])
def test_a_file_without_lines_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError, match="contains no offsets"):
        read_offset_file(text).of_group("g")
    with pytest.raises(ProtocolError, match="contains no offsets"):
        read_offset_file(text).refuse_bad_lines()


def test_a_group_gets_its_own_lines() -> None:
    file = read_offset_file("h,orders,0,5\ng,orders,0,6\ng,bills,2147483647,9223372036854775807")
    assert file.names_groups
    assert file.of_group("g") == {("orders", 0): 6, ("bills", 2**31 - 1): 2**63 - 1}
    assert file.of_group("h") == {("orders", 0): 5}


@pytest.mark.parametrize("group_id", ["g", "g" * 255, "ü \u2028"])
def test_group_ids(group_id: str) -> None:
    check_group(group_id)


@pytest.mark.parametrize("group_id", ["", "g" * 256, "a/b", "g\x00", "g\x85", "\ud800", "\x7f\x1f"])
def test_what_is_no_group_id(group_id: str) -> None:
    """The rule of http-api.md 1."""
    with pytest.raises(ValueError):
        check_group(group_id)


def test_a_group_that_the_file_does_not_name_is_refused() -> None:
    with pytest.raises(ProtocolError, match="contains no lines of group 'g'"):
        read_offset_file("h,orders,0,5").of_group("g")
