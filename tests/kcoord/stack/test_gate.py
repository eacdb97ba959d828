"""A command imports while it is held back, and runs once the gate is open, or was."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kcoord.config import BASE_DIR, Config
from kcoord.stack import preflight, services
from kcoord.stack.gate import Gate

COMMAND = "print('import', flush=True)\nif __name__ == '__main__':\n    import sys\n    print('run', *sys.argv[1:])\n"


SUPERVISOR = """
import subprocess, sys
from kcoord.stack.gate import Gate
gate = Gate()
arguments = [sys.executable, "-m", "kcoord.stack.gate", str(gate.descriptor), "loud", "command"]
subprocess.Popen(arguments, pass_fds=[gate.descriptor])
input()
"""


def started(place: Path, arguments: list[str], *descriptors: int) -> "subprocess.Popen[str]":
    (place / "command.py").write_text(COMMAND)
    (place / "loud.py").write_text("print('loaded', flush=True)\n")
    (place / "bare.py").write_text("INSTALLED_APPS = ()\n")
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=place,
        env={"PYTHONPATH": f"{BASE_DIR}:{place}", "DJANGO_SETTINGS_MODULE": "bare"},
        pass_fds=descriptors,
    )


def held(gate: Gate, place: Path, imports: str) -> "subprocess.Popen[str]":
    command = ["-m", "kcoord.stack.gate", str(gate.descriptor), imports, "command", "--one"]
    return started(place, command, gate.descriptor)


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
    with started(tmp_path, ["-c", SUPERVISOR]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loaded\n"
        process.kill()
        assert process.stdout.read() == ""


def test_services_import_what_they_name_and_the_server_its_views() -> None:
    with socket.socket() as listener:
        plan = preflight.Plan(Config({}), Path("/nowhere"), listener, lock=77)
        commands = services.services(plan, {}, Gate())
    named = {command.name: command.argv[command.argv.index("kcoord.stack.gate") + 2] for command in commands}
    assert set(named) == {"server", "worker", "beat"}
    program = "import sys, django; django.setup()\n" + "".join(f"import {names}\n" for names in named.values())
    program += "print({'frontend.urls', 'groups.api.rest.urls', 'offsets.api.rest.urls'} <= set(sys.modules))"
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "kcoord.settings"}
    done = subprocess.run([sys.executable, "-c", program], cwd=BASE_DIR, env=environ, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True\n", "")
