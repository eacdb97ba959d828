"""The systemd units: systemd's own checks where it is installed, and what it cannot know. No unit is started here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kcoord.config import Config
from kcoord.setting_table import BY_NAME
from kcoord.stack.run import ROLES
from kcoord.stack.server import GRACE_SECONDS, OTHER_FILES
from tests.support.processes import ROOT

FOLDER = ROOT / "deploy" / "systemd"
ANALYZE = shutil.which("systemd-analyze")
PYTHON = "/opt/kcoord/.venv/bin/python"
MAIN = "kcoord-migrate.service"
HIGHEST_EXPOSURE = 20
"""Tenths of systemd's points; 100 is a unit without any restriction."""


def unit(role: str) -> dict[str, str]:
    """The assignments of a unit; a later one of the same name replaces an earlier one."""
    lines = (FOLDER / f"kcoord-{role}.service").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def seconds(text: str) -> int:
    """A duration of a unit."""
    return int(text.removesuffix("min")) * 60 if text.endswith("min") else int(text)


def copies(to: Path, change: tuple[str, str] = ("", "")) -> list[str]:
    """The units with a Python and a page that exist here."""
    for path in FOLDER.glob("*.service"):
        text = path.read_text().replace(PYTHON, sys.executable).replace("/opt/kcoord/docs", str(ROOT / "docs"))
        (to / path.name).write_text(text.replace(*change) if change[0] else text)
    return [str(path) for path in sorted(to.glob("*.service"))]


def analyze(*arguments: str) -> tuple[int, str]:
    """Run systemd-analyze; returns its exit status and all it wrote."""
    if ANALYZE is None:
        pytest.skip("systemd-analyze is not installed")
    done = subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def test_there_is_a_unit_for_every_role() -> None:
    assert {path.name for path in FOLDER.glob("*.service")} == {f"kcoord-{role}.service" for role in ROLES}
    for role in ROLES:
        assert unit(role)["ExecStart"] == f"{PYTHON} -m kcoord.stack.run {role}"


def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    assert analyze("verify", "--man=no", *copies(tmp_path)) == (0, "")


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("RestartSec=2", "RestartSecs=2", "'RestartSecs'"),
        ("Restart=always", "Restart=ever", "ignoring: ever"),
        ("ProtectSystem=strict", "ProtectSystem=strictest", "ignoring: strictest"),
    ],
)
def test_systemd_would_find_it(tmp_path: Path, before: str, after: str, complaint: str) -> None:
    _, output = analyze("verify", "--man=no", *copies(tmp_path, (before, after)))
    assert complaint in output


@pytest.mark.parametrize("role", ROLES)
def test_it_is_exposed_to_little(role: str, tmp_path: Path) -> None:
    path = [path for path in copies(tmp_path) if role in path]
    status, output = analyze("security", "--offline=true", f"--threshold={HIGHEST_EXPOSURE}", "--no-pager", *path)
    assert status == 0, output


@pytest.mark.parametrize("role", ROLES)
def test_it_runs_as_somebody_and_writes_to_its_state_alone(role: str) -> None:
    found = unit(role)
    assert found["User"] == "kcoord"
    assert (found["ProtectSystem"], found["NoNewPrivileges"], found["CapabilityBoundingSet"]) == ("strict", "true", "")
    assert f"KCOORD_DATA_DIR=/var/lib/{found['StateDirectory']} " in found["Environment"]


@pytest.mark.parametrize("role", sorted(set(ROLES) - {"migrate"}))
def test_it_is_restarted_and_stopped_with_patience_once_the_database_is_migrated(role: str) -> None:
    found = unit(role)
    assert found["Requires"] == MAIN
    assert MAIN in found["After"].split()
    assert found["Restart"] == "always"
    assert found["StartLimitIntervalSec"] == "0", "systemd gives up after five starts: an outage may be longer"
    assert seconds(found["TimeoutStopSec"]) > GRACE_SECONDS + 5


def test_a_migration_ends_and_counts_as_done() -> None:
    found = unit("migrate")
    assert (found["Type"], found["RemainAfterExit"]) == ("oneshot", "yes")
    assert "Restart" not in found


def test_the_server_may_open_as_many_connections_as_it_accepts() -> None:
    most = BY_NAME["http.max.connections"].default
    assert int(unit("server")["LimitNOFILE"]) >= int(most) + OTHER_FILES


def test_the_example_of_the_environment_has_settings_only() -> None:
    lines = (FOLDER / "kcoord.env.example").read_text().splitlines()
    environment = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    assert environment["KCOORD_SECRET_KEY"] == "", "everybody chooses one"
    assert Config.from_env(environment).problems == ()
