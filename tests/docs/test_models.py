"""docs/models: what its list of runs names exists; the checker, where it is installed, still tells designs apart."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

import pytest

from tests.docs.pages import ROOT

MODELS = ROOT / "docs" / "models"
SECONDS = 300
_INCLUDE = re.compile(r'^#include "(.+)"', re.MULTILINE)
_CONDITION = re.compile(r"^ *#(?:ifdef|ifndef|if|elif) (.+)$", re.MULTILINE)
_DEFINED = re.compile(r"^ *#define (\w+)", re.MULTILINE)
_NAME = re.compile(r"\b[A-Z][A-Z_0-9]*\b")
_QUOTED = re.compile(r"`(?:-D)?([A-Z][A-Z_0-9]*)(?:=\w+)?`")

needs_checker = pytest.mark.skipif(
    not (shutil.which("spin") and shutil.which("gcc")), reason="spin and gcc are needed to check the models"
)


@dataclass(frozen=True)
class Run:
    """A line of runs.txt."""

    level: str
    expected: str
    model: str
    switches: frozenset[str]


def runs() -> list[Run]:
    lines = [line.split() for line in (MODELS / "runs.txt").read_text(encoding="utf-8").splitlines()]
    return [
        Run(level, expected, model, frozenset(flag.removeprefix("-D").partition("=")[0] for flag in flags))
        for level, expected, model, *flags in (line for line in lines if line and line[0] not in ("#", "title"))
    ]


def switches(model: str) -> set[str]:
    """What a model asks the preprocessor for, the files that it includes counted in."""
    text = (MODELS / f"{model}.pml").read_text(encoding="utf-8")
    text += "".join((MODELS / name).read_text(encoding="utf-8") for name in _INCLUDE.findall(text))
    return {name for condition in _CONDITION.findall(text) for name in _NAME.findall(condition)}


def test_runs_name_switches_that_exist() -> None:
    known = {model: switches(model) for model in ("sessions", "fence")}
    assert [(run, missing) for run in runs() if (missing := run.switches - known[run.model])] == []


def test_every_switch_is_used_by_a_run() -> None:
    for model in ("sessions", "fence"):
        text = (MODELS / f"{model}.pml").read_text(encoding="utf-8")
        named = {name for run in runs() if run.model == model for name in run.switches}
        assert switches(model) - named - set(_DEFINED.findall(text)) == set()


def test_the_page_names_switches_that_exist() -> None:
    named = set(_QUOTED.findall((MODELS / "README.md").read_text(encoding="utf-8")))
    assert {"WRITE_THROUGH", "NO_SECOND_CHECK"} <= named
    assert named - switches("sessions") - switches("fence") - {"QUICK"} == set()


def test_both_results_are_expected_somewhere() -> None:
    assert {(run.model, run.expected) for run in runs()} == {
        (model, expected) for model in ("sessions", "fence") for expected in ("holds", "fails")
    }
    assert {run.level for run in runs()} == {"smoke", "quick", "full"}


@needs_checker
def test_the_design_holds_and_three_variants_are_refuted() -> None:
    command, environment = ["/bin/sh", str(MODELS / "run.sh")], {**os.environ, "SMOKE": "1"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    lines = [line.split()[:2] for line in result.stdout.splitlines() if not line.startswith("==")]
    assert result.returncode == 0, result.stdout + result.stderr
    assert sorted(lines) == [["ok", "fails"], ["ok", "fails"], ["ok", "fails"], ["ok", "holds"]]
