"""Sources over files and lists: offsets, ends, what is not complete yet, what is out of range."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcoord.client import OffsetOutOfRangeError
from kcoord.client.sources import lines
from kcoord.client.sources.lines import LineFiles
from kcoord.client.sources.lists import Lists


@pytest.fixture
def files(tmp_path: Path) -> LineFiles:
    """A topic `t` with an empty partition 0."""
    (tmp_path / "t").mkdir()
    return LineFiles(tmp_path)


def append(files: LineFiles, text: bytes) -> None:
    with files.path("t", 0).open("ab") as file:
        file.write(text)


def read(files: LineFiles, offset: int = 0, limit: int = 100) -> list[tuple[int, bytes]]:
    return [(record.offset, record.value) for record in files.fetch("t", 0, offset, limit)]


def test_lines_follow_each_other_and_nothing_is_left(files: LineFiles) -> None:
    append(files, b"first\n\nthird\n")
    assert read(files) == [(5, b"first"), (6, b""), (12, b"third")]
    assert read(files, limit=1) == [(5, b"first")]
    assert read(files, 5 + 1) == [(6, b""), (12, b"third")]
    assert read(files, 12 + 1) == []
    assert files.end_offset("t", 0) == 12 + 1


def test_a_line_that_is_being_written_is_not_read(files: LineFiles) -> None:
    append(files, b"done\nhal")
    assert read(files) == [(4, b"done")]
    assert files.end_offset("t", 0) == 5
    append(files, b"f\n")
    assert read(files, 5) == [(9, b"half")]
    assert files.end_offset("t", 0) == 10


def test_an_offset_within_a_line_is_that_of_the_line(files: LineFiles) -> None:
    append(files, b"first\nsecond\n")
    assert {offset: read(files, offset, 1)[0][1] for offset in range(13)} == {
        **dict.fromkeys(range(6), b"first"),
        **dict.fromkeys(range(6, 13), b"second"),
    }


def test_nothing_written_yet_is_empty_and_less_than_read_is_out_of_range(files: LineFiles) -> None:
    assert (read(files), files.beginning_offset("t", 0), files.end_offset("t", 0)) == ([], 0, 0)
    append(files, b"123\n")
    with pytest.raises(OffsetOutOfRangeError, match="4 bytes: was it cut off"):
        read(files, 5)
    files.path("t", 0).unlink()
    with pytest.raises(OffsetOutOfRangeError, match="0 bytes"):
        read(files, 4)


@given(st.lists(st.binary(max_size=12).filter(lambda line: b"\n" not in line)), st.integers(1, 5))
def test_every_line_is_read_once(tmp_path_factory: pytest.TempPathFactory, written: list[bytes], limit: int) -> None:
    source = LineFiles(tmp_path_factory.mktemp("lines"))
    source.path("t", 0).parent.mkdir()
    source.path("t", 0).write_bytes(b"".join(line + b"\n" for line in written))
    found, offset = [], 0
    while records := source.fetch("t", 0, offset, limit):
        found += [record.value for record in records]
        offset = records[-1].offset + 1
    assert found == written
    assert offset == source.end_offset("t", 0)


def test_newlines_are_found_across_blocks(files: LineFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK", 4)
    append(files, b"a\n" + b"x" * 20 + b"\nopen")
    assert read(files, 15, 1) == [(22, b"x" * 20)]
    assert files.end_offset("t", 0) == 23


def test_lists_grow_and_know_their_ends() -> None:
    source = Lists({("t", 0): ["a"]})
    assert source.append("t", 0, "b", "c") == 3
    assert [(record.offset, record.value) for record in source.fetch("t", 0, 1, 10)] == [(1, "b"), (2, "c")]
    assert [record.value for record in source.fetch("t", 0, 0, 2)] == ["a", "b"]
    assert (source.beginning_offset("t", 0), source.end_offset("t", 0), source.end_offset("t", 1)) == (0, 3, 0)
    assert source.fetch("t", 0, 3, 10) == []
    for offset in (-1, 4):
        with pytest.raises(OffsetOutOfRangeError, match="t-0 has 3 values"):
            source.fetch("t", 0, offset, 1)
