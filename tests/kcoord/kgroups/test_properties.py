"""Properties of the tables and of the CSV, for any content."""

from __future__ import annotations

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from kcoord.client.kgroups.describing import assignment_text
from kcoord.client.kgroups.output import Column, cell, render
from kcoord.client.kgroups.resetting import csv_lines
from kcoord.resets.offset_file import read_offset_file

GROUPS = st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/"), min_size=1, max_size=20)
TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=20)
OFFSETS = st.integers(0, 2**63 - 1)
PARTITIONS = st.integers(0, 2**31 - 1)


@example({("a\u2028b\u2029c", "t", 0): 1})
@given(st.dictionaries(st.tuples(GROUPS, TOPICS, PARTITIONS), OFFSETS, min_size=1))
def test_what_is_exported_is_what_is_read_back(offsets: dict[tuple[str, str, int], int]) -> None:
    rows = [(*key, offset) for key, offset in offsets.items()]
    file = read_offset_file("\n".join(csv_lines(rows, names_group=True)))
    assert not file.bad
    assert {(g, *key): offset for g, found in file.groups.items() for key, offset in found.items()} == offsets


@given(st.dictionaries(st.tuples(TOPICS, PARTITIONS), OFFSETS, min_size=1))
def test_so_it_is_without_the_group(offsets: dict[tuple[str, int], int]) -> None:
    rows = [("any", *key, offset) for key, offset in offsets.items()]
    file = read_offset_file("\n".join(csv_lines(rows, names_group=False)))
    assert not file.bad
    assert file.of_group("any") == offsets


@given(st.lists(st.tuples(st.text(), st.text(), st.integers())))
def test_a_table_has_a_line_for_each_row_and_its_columns_are_straight(rows: list[tuple[str, str, int]]) -> None:
    lines = render([Column("FIRST", 15, grows=True), Column("SECOND", 10, grows=True), Column("THIRD")], rows)
    assert len(lines) == len(rows) + 1
    second, third = lines[0].index("SECOND"), lines[0].index("THIRD")
    for line, row in zip(lines[1:], rows, strict=True):
        assert line[: second - 1] == cell(row[0]).ljust(second - 1)
        assert line[second : third - 1].rstrip(" ") == cell(row[1]).rstrip(" ")
        assert line[third:] == str(row[2])


@given(st.text())
def test_a_cell_is_never_empty_and_has_nothing_that_moves_a_cursor(text: str) -> None:
    shown = cell(text)
    assert shown
    assert not any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in shown)
    assert shown.encode()


@given(st.sets(st.tuples(TOPICS.filter(lambda topic: ":" not in topic), st.integers(0, 200))))
def test_an_assignment_says_every_partition_once_in_order(assignment: set[tuple[str, int]]) -> None:
    text = assignment_text(list(assignment))
    read = [
        (topic, int(partition))
        for topic, partitions in (part.split(":") for part in text.split(";") if part)
        for partition in partitions.split(",")
    ]
    assert read == sorted(assignment)
