"""The parts of the stack that need no process: back-off, log, readable lines, launch order of the grace times."""

from __future__ import annotations

import io
import stat
from pathlib import Path

from kcoord.stack import supervisor
from kcoord.stack.logbook import Logbook, readable
from kcoord.stack.process import describe_exit
from kcoord.stack.supervisor import FIRST_SECONDS, LONGEST_SECONDS, STEADY_SECONDS, Backoff


def test_backoff_doubles_up_to_its_bound() -> None:
    backoff = Backoff()
    delays = [backoff.after(0.0) for _ in range(9)]
    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert delays[0] == FIRST_SECONDS
    assert delays[-1] == LONGEST_SECONDS


def test_backoff_starts_again_after_a_steady_life() -> None:
    backoff = Backoff()
    for _ in range(4):
        backoff.after(1.0)
    assert backoff.after(STEADY_SECONDS) == FIRST_SECONDS
    assert backoff.after(STEADY_SECONDS - 1) == FIRST_SECONDS * 2


def test_the_grace_of_all_stages_together_stays_within_five_seconds() -> None:
    services = supervisor.GRACE_SECONDS + supervisor.KILL_SECONDS
    assert services < supervisor.ASKING_SECONDS
    assert supervisor.ASKING_SECONDS + 2 * supervisor.KILL_SECONDS < 5


def test_exits_are_told_as_people_know_them() -> None:
    assert describe_exit(3) == "exit status 3"
    assert describe_exit(-9) == "signal 9 (SIGKILL)"
    assert describe_exit(-250) == "signal 250"


def test_the_log_goes_to_standard_output_and_to_a_file_of_its_owner_alone(tmp_path: Path) -> None:
    shown = io.StringIO()
    log = Logbook(tmp_path / "kcoord.log", shown)
    log.write("server", "hello")
    log.show("a secret")
    log.close()
    line = shown.getvalue().splitlines()[0]
    assert line.endswith("Z server   | hello")
    assert (tmp_path / "kcoord.log").read_text() == line + "\n"
    assert "a secret" in shown.getvalue()
    assert stat.S_IMODE((tmp_path / "kcoord.log").stat().st_mode) == 0o600


def test_a_full_log_file_is_put_aside(tmp_path: Path) -> None:
    log = Logbook(tmp_path / "kcoord.log", io.StringIO(), max_bytes=100)
    for number in range(6):
        log.write("server", f"line {number}")
    log.close()
    kept = (tmp_path / "kcoord.log.1").read_text() + (tmp_path / "kcoord.log").read_text()
    assert "line 5" in (tmp_path / "kcoord.log").read_text()
    assert "line 4" in kept
    assert (tmp_path / "kcoord.log").stat().st_size <= 200


def test_the_log_goes_on_when_standard_output_is_gone(tmp_path: Path) -> None:
    shown = io.StringIO()
    log = Logbook(tmp_path / "kcoord.log", shown)
    shown.close()
    log.write("server", "still here")
    log.close()
    assert "still here" in (tmp_path / "kcoord.log").read_text()


def test_the_log_survives_what_its_terminal_cannot_show(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    terminal = io.TextIOWrapper(buffer, encoding="ascii")
    log = Logbook(tmp_path / "kcoord.log", terminal)
    log.write("server", "grüße")
    log.close()
    assert b"gr\\xfc\\xdfe" in buffer.getvalue()
    assert "grüße" in (tmp_path / "kcoord.log").read_text(encoding="utf-8")


def test_json_lines_become_words() -> None:
    line = '{"event":"group emptied","level":"warning","at":"…","group_id":"a b","generation":4,"note":null}'
    assert readable(line) == ['warning group emptied group_id="a b" generation=4']


def test_a_traceback_keeps_its_lines() -> None:
    line = '{"event":"failed","level":"error","exception":"Traceback\\n  File x\\nValueError"}'
    assert readable(line) == ["error failed", "Traceback", "  File x", "ValueError"]


def test_other_lines_stay_as_they_are() -> None:
    for line in ("LOG:  database system is ready", "{not json", '{"no": "event"}', "[1, 2]"):
        assert readable(line) == [line]
