"""`kgroups --completion SHELL`: the script completes every option that the tool has, and files where it takes them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kcoord.client.kgroups import completion, options
from kcoord.client.kgroups.__main__ import main

SUPPRESSED = ("token", *options.OF_KAFKA)


def printed(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["--completion", shell])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_option_is_there(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    hyphens = "-l " if shell == "fish" else "--"
    words = printed(shell, capsys).replace("[", " ").replace("'", " ").replace("*", " ") + " "
    for option in (*options.TAKEN_BY, *(action.value for action in options.Action), "url", "token-file", "timeout"):
        assert f"{hyphens}{option} " in words, option
    assert not [option for option in SUPPRESSED if f"{hyphens}{option} " in words]


def test_other_shells_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--completion", "tcsh"]) == 1
    assert "--completion" in capsys.readouterr().err


def completed(script: Path, word: str, before: str) -> list[str]:
    """What bash offers for a word after another one."""
    program = 'source "$1"; _kgroups kgroups "$2" "$3"; printf "%s\\n" "${COMPREPLY[@]}"'
    argv = [shutil.which("bash") or "bash", "--norc", "-c", program, "bash", str(script), word, before]
    ended = subprocess.run(argv, cwd=script.parent, capture_output=True, text=True, timeout=60, check=True)
    return ended.stdout.split("\n")[:-1]


def test_bash_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "kgroups.bash"
    script.write_text(printed("bash", capsys))
    (tmp_path / "my plan.csv").touch()
    assert completed(script, "--to-e", "--reset-offsets") == ["--to-earliest"]
    assert completed(script, "my", "--from-file") == ["my plan.csv"]
    assert completed(script, "--", "--group") == [""]
    assert "--verbose" in completed(script, "--", "--state"), "it may have no value"
