"""A command imports while it is held back, and runs once the gate is open, or was."""

import subprocess
import sys
from pathlib import Path

import pytest

from kcoord.config import BASE_DIR
from kcoord.stack.gate import Gate

COMMAND = "print('import', flush=True)\nif __name__ == '__main__':\n    import sys\n    print('run', *sys.argv[1:])\n"


def held(gate: Gate, place: Path, imports: str) -> "subprocess.Popen[str]":
    (place / "command.py").write_text(COMMAND)
    (place / "loud.py").write_text("print('loaded', flush=True)\n")
    return subprocess.Popen(
        [sys.executable, "-m", "kcoord.stack.gate", str(gate.descriptor), imports, "command", "--one"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=place,
        env={"PYTHONPATH": f"{BASE_DIR}:{place}"},
        pass_fds=[gate.descriptor],
    )


def test_it_imports_before_the_gate_opens_and_runs_after_it(tmp_path: Path) -> None:
    gate = Gate()
    with held(gate, tmp_path, "loud") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loaded\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        gate.open()
        assert process.stdout.read() == "import\nrun --one\n"
    assert process.returncode == 0


def test_what_is_started_again_later_is_not_held(tmp_path: Path) -> None:
    gate = Gate()
    gate.open()
    with held(gate, tmp_path, "loud") as process:
        assert process.communicate()[0] == "loaded\nimport\nrun --one\n"


def test_an_import_that_fails_is_left_to_the_command(tmp_path: Path) -> None:
    gate = Gate()
    gate.open()
    with held(gate, tmp_path, "nowhere,loud") as process:
        assert process.communicate()[0] == "import\nrun --one\n"


def test_nothing_runs_when_the_supervisor_is_gone(tmp_path: Path) -> None:
    (tmp_path / "command.py").write_text(COMMAND)
    supervisor = (
        "import subprocess, sys\n"
        "from kcoord.stack.gate import Gate\n"
        "gate = Gate()\n"
        "arguments = [sys.executable, '-m', 'kcoord.stack.gate', str(gate.descriptor), 'loud', 'command']\n"
        "print(subprocess.Popen(arguments, pass_fds=[gate.descriptor]).stdout, flush=True)\n"
        "input()\n"
    )
    (tmp_path / "loud.py").write_text("print('loaded', flush=True)\n")
    with subprocess.Popen(
        [sys.executable, "-c", supervisor],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": f"{BASE_DIR}:{tmp_path}"},
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["None\n", "loaded\n"]
        process.kill()
        assert process.stdout.read() == ""
