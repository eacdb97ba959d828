"""The command line: exit status, what is printed, and files that cannot be run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.__main__ import main
from tests.conformance.cases import DIRECTORY_VARIABLE, Suite, conformance_directory
from tests.conformance.support import case_file
from tests.conformance.test_mutations import LONE_MEMBER

GOOD = {"name": "good", "area": "join", "config": {}, "steps": LONE_MEMBER}
BAD = {**GOOD, "name": "bad", "steps": [*LONE_MEMBER, {"inspect": "g", "expect": {"state": "Empty"}}]}
LEFT_OUT = {**GOOD, "name": "linger", "config": {"group.coordinator.append.linger.ms": 10}}


def write(path: Path, *cases: object) -> str:
    """A file of cases; its name."""
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return str(path)


def test_nothing_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--through", "core", write(tmp_path / "classic.jsonl", GOOD, LEFT_OUT)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "skipped 1: append.linger.ms: Postgres replaces the replicated log",
        "1 passed, 0 failed, 1 skipped",
    ]


def test_a_failure_names_the_step_and_the_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--through", "core", write(tmp_path / "classic.jsonl", GOOD, BAD)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "FAILED classic: bad",
        f'    step {len(LONE_MEMBER) + 1}: inspect "g"  [core, timers at their deadlines]',
        '    state: expected "Empty", got "Stable"',
        "1 passed, 1 failed, 0 skipped",
    ]


def test_one_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "classic.jsonl", GOOD, BAD)
    assert main(["--through", "core", "--case", "good", path]) == 0
    assert main(["--through", "core", "--case", "none", path]) == 2
    assert "no such case: none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("other.jsonl", "{}", "the base name must be one of"),
        ("classic.json", "{}", "the base name must be one of"),
        ("classic.jsonl", "{", "classic.jsonl:1:"),
        ("classic.jsonl", '{"name": "x", "area": "join"}', "x: missing keys ['steps']"),
        ("classic.jsonl", '{"name": "x", "area": "join", "steps": [], "stesp": 1}', "x: unknown keys ['stesp']"),
        ("assignors.jsonl", '{"name": "x", "topics": {}}', "x: missing keys ['assignor', 'members', 'expect']"),
    ],
)
def test_a_file_that_cannot_be_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, words: str
) -> None:
    (tmp_path / name).write_text(text)
    assert main(["--through", "core", str(tmp_path / name)]) == 2
    assert words in capsys.readouterr().err


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--through", "core", str(tmp_path / "classic.jsonl")]) == 2
    assert "classic.jsonl" in capsys.readouterr().err


def test_another_directory_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    assert conformance_directory() == tmp_path
    with pytest.raises(FileNotFoundError, match=r"classic\.jsonl"):
        case_file(Suite.CLASSIC)
    write(tmp_path / "classic.jsonl", GOOD)
    assert [parameter.id for parameter in case_file(Suite.CLASSIC)] == ["good"]


def test_a_plain_clone_has_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DIRECTORY_VARIABLE, raising=False)
    assert {suite.value: len(case_file(suite)) for suite in Suite} == {
        "assignors": 60,
        "classic": 108,
        "consumer": 98,
        "offsets": 86,
    }


def test_without_files_the_whole_directory_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    assert main(["--through", "core"]) == 2
    assert f"no cases in {tmp_path}" in capsys.readouterr().err
    write(tmp_path / "classic.jsonl", GOOD)
    assert main(["--through", "core"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 0 failed, 0 skipped"
