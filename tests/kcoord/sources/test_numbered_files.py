"""A directory whose files are records: numbers without gaps, complete files, several writers."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kcoord.client import OffsetOutOfRangeError
from kcoord.client.sources.files import NumberedFiles
from tests.support.processes import ROOT

EACH = 150
WRITER = """
import sys
from kcoord.client.sources.files import NumberedFiles
files = NumberedFiles(sys.argv[1], ".txt")
for turn in range(int(sys.argv[3])):
    print(files.append("t", 0, f"{sys.argv[2]} {turn}".encode()))
"""


@pytest.fixture
def files(tmp_path: Path) -> NumberedFiles:
    """No files yet."""
    return NumberedFiles(tmp_path, ".txt")


def filled(files: NumberedFiles, count: int) -> NumberedFiles:
    for number in range(count):
        assert files.append("t", 0, b"%d" % number) == number
    return files


def read(files: NumberedFiles, offset: int = 0, limit: int = 100) -> list[tuple[int, bytes]]:
    return [(record.offset, record.value.read_bytes()) for record in files.fetch("t", 0, offset, limit)]


def ends(files: NumberedFiles) -> tuple[int, int]:
    return files.beginning_offset("t", 0), files.end_offset("t", 0)


def test_files_follow_each_other(files: NumberedFiles) -> None:
    assert (read(files), ends(files)) == ([], (0, 0))
    filled(files, 3)
    assert read(files) == [(0, b"0"), (1, b"1"), (2, b"2")]
    assert read(files, 1, 1) == [(1, b"1")]
    assert read(files, 3) == []
    assert ends(files) == (0, 3)
    (record,) = files.fetch("t", 0, 2, 5)
    assert record.key == "000000000002.txt"
    assert files.fetch("t", 1, 0, 5) == [], "another partition"


def test_only_numbered_files_count(files: NumberedFiles, tmp_path: Path) -> None:
    filled(files, 1)
    for name in (".being-written", "000000000001", "7.txt", "notes.txt", "00000000000x.txt"):
        (tmp_path / "t" / "0" / name).write_text("no record")
    assert read(files) == [(0, b"0")]
    assert ends(files) == (0, 1)


def test_a_missing_number_is_waited_for(files: NumberedFiles) -> None:
    filled(files, 2)
    files.path("t", 0, 3).write_bytes(b"3")
    assert read(files) == [(0, b"0"), (1, b"1")]
    assert read(files, 2) == []
    assert ends(files) == (0, 4), "it counts as lag"
    files.path("t", 0, 2).write_bytes(b"2")
    assert read(files, 2) == [(2, b"2"), (3, b"3")]


def test_the_oldest_may_be_deleted_and_the_newest_stays(files: NumberedFiles) -> None:
    filled(files, 5)
    assert files.delete_before("t", 0, 3) == 3
    assert ends(files) == (3, 5)
    assert files.delete_before("t", 0, 99) == 1
    assert ends(files) == (4, 5)
    assert read(files, 5) == []
    assert files.append("t", 0, b"5") == 5
    with pytest.raises(OffsetOutOfRangeError, match=r"t-0\) has the files 4 to 5"):
        files.fetch("t", 0, 2, 10)


def test_more_was_read_than_there_is(files: NumberedFiles) -> None:
    filled(files, 2)
    with pytest.raises(OffsetOutOfRangeError):
        files.fetch("t", 0, 4, 10)


def test_a_file_that_could_not_be_numbered_leaves_nothing(
    files: NumberedFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(OSError, match="hard links"):
        files.append("t", 0, b"lost")
    assert list((tmp_path / "t" / "0").iterdir()) == []


def test_several_programs_write_at_once(files: NumberedFiles, tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), name, str(EACH)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for name in ("a", "b")
    ]
    seen: list[bytes] = []
    while any(writer.poll() is None for writer in writers):
        seen.extend(content for _, content in read(files, len(seen)))
    told = [writer.communicate()[0].split() for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    seen.extend(content for _, content in read(files, len(seen), 2 * EACH))
    assert sorted(int(number) for numbers in told for number in numbers) == list(range(2 * EACH))
    for name, numbers in zip(("a", "b"), told, strict=True):
        assert [seen[int(number)] for number in numbers] == [f"{name} {turn}".encode() for turn in range(EACH)]
