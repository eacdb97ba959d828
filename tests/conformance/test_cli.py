"""The command line: exit status, what is printed, and files that cannot be run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.__main__ import main
from tests.conformance.cases import DIRECTORY_VARIABLE, Suite
from tests.conformance.support import case_file
from tests.conformance.test_mutations import LONE_MEMBER

GOOD = {"name": "good", "area": "join", "config": {}, "steps": LONE_MEMBER}
BAD = {**GOOD, "name": "bad", "steps": [*LONE_MEMBER, {"inspect": "g", "expect": {"state": "Empty"}}]}
LEFT_OUT = {**GOOD, "name": "linger", "config": {"group.coordinator.append.linger.ms": 10}}


def write(path: Path, *cases: object) -> str:
    """A file of cases; its name."""
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return str(path)


def test_statuses_and_totals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "classic.jsonl", GOOD, BAD, LEFT_OUT)
    assert main(["--through", "core", path]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "FAILED classic: bad"
    assert f"step {len(LONE_MEMBER) + 1}: " in lines[1]
    assert lines[-1] == "1 passed, 1 failed, 1 skipped"
    assert main(["--through", "core", "--case", "good", path]) == 0
    assert main(["--through", "core", "--case", "none", path]) == 2
    assert "none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("other.jsonl", "{}"),
        ("classic.json", "{}"),
        ("classic.jsonl", "{"),
        ("classic.jsonl", '{"name": "x", "area": "join"}'),
        ("classic.jsonl", '{"name": "x", "area": "join", "steps": [], "stesp": 1}'),
        ("assignors.jsonl", '{"name": "x", "topics": {}}'),
        ("missing.jsonl", None),
    ],
)
def test_a_file_that_cannot_be_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str | None
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    assert main(["--through", "core", str(tmp_path / name)]) == 2
    assert name in capsys.readouterr().err


def test_another_directory_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    with pytest.raises(FileNotFoundError):
        case_file(Suite.CLASSIC)
    assert main(["--through", "core"]) == 2
    assert str(tmp_path) in capsys.readouterr().err
    write(tmp_path / "classic.jsonl", GOOD)
    assert main(["--through", "core"]) == 0


def test_a_plain_clone_has_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DIRECTORY_VARIABLE, raising=False)
    assert {suite.value: len(case_file(suite)) for suite in Suite} == {
        "assignors": 60,
        "classic": 108,
        "consumer": 99,
        "offsets": 86,
    }
