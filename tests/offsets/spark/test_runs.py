"""Records of runs and their lock, without Spark."""

from __future__ import annotations

import socket
import sys
import threading
import uuid
from dataclasses import fields
from typing import Any

import psycopg
import pytest
from psycopg.rows import class_row, dict_row

from kcoord.access.audit.acts import ACTS
from kcoord.access.audit.encoding import Record, digest
from offsets.spark.errors import JobError, RunCancelled, RunInProgress
from offsets.spark.postgres import Q
from offsets.spark.runs import Outcome, Run, RunRequest, running

PATIENCE_SECONDS = 30


def row(conninfo: str, run_id: uuid.UUID) -> dict[str, Any]:
    """The record of a run."""
    with psycopg.connect(conninfo, row_factory=dict_row) as connection:
        found = connection.execute("select * from offsets_sparkrun where id = %s", [run_id]).fetchone()
    assert found is not None
    return found


def change(conninfo: str, statement: str, *parameters: object) -> None:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(statement.encode(), parameters)


def test_a_run_leaves_a_record(database: str) -> None:
    with running(database, "report", RunRequest("ada", {"days": 3}, log_path="/tmp/log")) as run:
        run.progress = lambda: (2, 7)
        run.enter("read")
        during = row(database, run.id)
        run.outcome = Outcome(rows=5, findings=1, result={"rows": 5})
    assert (during["state"], during["stage"], during["slices_done"], during["slices_total"]) == (
        "running",
        "read",
        2,
        7,
    )
    assert during["started_at"] <= during["heartbeat_at"]
    after = row(database, run.id)
    assert (after["kind"], after["state"], after["rows"], after["findings"]) == ("report", "succeeded", 5, 1)
    assert (after["requested_by"], after["parameters"], after["result"]) == ("ada", {"days": 3}, {"rows": 5})
    assert (after["log_path"], after["error"]) == ("/tmp/log", "")
    assert after["ended_at"] >= after["started_at"]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_is_told_the_stages(
    database: str, is_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    with running(database, "archive", RunRequest("ada")) as run:
        run.enter("start Spark")
        run.enter("read")
    assert capsys.readouterr().err == ("archive: start Spark\narchive: read\n" if is_terminal else "")


def audited(conninfo: str) -> list[Record]:
    """The records of the audit."""
    columns = ", ".join(field.name for field in fields(Record))
    with psycopg.connect(conninfo, row_factory=class_row(Record)) as connection:
        return connection.execute(f"select {columns} from kcoord_auditrecord order by seq".encode()).fetchall()


def test_a_run_that_a_terminal_begins_is_in_the_audit(database: str) -> None:
    with running(database, "archive", RunRequest("local:ada")) as run:
        (found,) = audited(database)
    assert (found.kind, found.principal, found.address, found.door) == (
        "local",
        "local:ada",
        socket.gethostname(),
        "command",
    )
    assert (found.act, found.resource, found.name) == ("run.start", "run", str(run.id))
    assert (found.before, found.after, found.result) == (None, '{"kind":"archive","state":"running"}', "done")
    assert found.act in ACTS
    assert found.hash == digest(found)
    # What did not begin, and what the service was asked for and has recorded, leaves nothing.
    with (
        running(database, "archive", RunRequest()),
        pytest.raises(RunInProgress),
        running(database, "archive", RunRequest("local:eve")),
    ):
        pass
    wanted = requested(database, "archive")
    with pytest.raises(JobError), running(database, "report", RunRequest(run_id=wanted)):
        pass
    with running(database, "archive", RunRequest(run_id=wanted)):
        pass
    assert [one.principal for one in audited(database)] == ["local:ada", "local"]


def requested(conninfo: str, kind: str) -> uuid.UUID:
    """A run that was requested over the API."""
    wanted = uuid.uuid4()
    change(
        conninfo,
        "insert into offsets_sparkrun (id, kind, state, parameters, requested_at, requested_by, log_path, stage,"
        " slices_done, slices_total, system_identifier, archive_path, archive_id, host, manifest_sha256, error)"
        " values (%s, %s, 'requested', '{}', 1, 'token', '/log', '', 0, 0, '', '', '', '', '', '')",
        wanted,
        kind,
    )
    return wanted


def test_kinds_do_not_wait_for_each_other_unless_asked(database: str) -> None:
    with running(database, "report", RunRequest()), running(database, "archive", RunRequest()):
        with pytest.raises(RunInProgress), running(database, "import", RunRequest(), also=("archive",)):
            pass
        with pytest.raises(RunInProgress), running(database, "report", RunRequest()):
            pass


def test_a_lock_of_a_session_that_is_ending_is_waited_for(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = 0
    with psycopg.connect(database, autocommit=True) as ending:
        ending.execute(Q.lock_kind.encode(), {"kind": "archive"})

        def end(_seconds: float) -> None:
            nonlocal waits
            waits += 1
            ending.execute(Q.unlock_kinds.encode())

        # The module's own name for it: the clock itself belongs to every thread, Spark's included.
        monkeypatch.setattr("offsets.spark.runs.sleep", end)
        with running(database, "archive", RunRequest()) as run:
            pass
        assert waits == 1
        assert row(database, run.id)["state"] == "succeeded"
        ending.execute(Q.lock_kind.encode(), {"kind": "archive"})
        monkeypatch.setattr("offsets.spark.runs.LOCK_SECONDS", 0)
        monkeypatch.setattr("offsets.spark.runs.sleep", lambda _seconds: None)
        with pytest.raises(RunInProgress), running(database, "archive", RunRequest()):
            pass


def test_a_failed_run_says_why_and_leaves_the_lock(database: str) -> None:
    with pytest.raises(JobError), running(database, "archive", RunRequest()) as run:
        raise JobError("no space")
    assert (row(database, run.id)["state"], row(database, run.id)["error"]) == ("failed", "no space")
    with running(database, "archive", RunRequest()):
        pass


def test_a_run_that_was_asked_for_begins_once(database: str) -> None:
    wanted = requested(database, "archive")
    with (
        pytest.raises(JobError, match="is not a requested run of report"),
        running(database, "report", RunRequest(run_id=wanted)),
    ):
        pass
    with running(database, "archive", RunRequest("local", run_id=wanted)):
        pass
    found = row(database, wanted)
    assert (found["state"], found["requested_by"], found["requested_at"], found["log_path"]) == (
        *("succeeded", "token", 1),
        "/log",
    )
    with pytest.raises(JobError, match="has yet to start"), running(database, "archive", RunRequest(run_id=wanted)):
        pass


def test_a_run_is_cancelled_between_its_steps(database: str) -> None:
    cancelled = threading.Event()

    def work(run: Run) -> None:
        run.on_cancel = cancelled.set
        run.enter("read")
        change(database, "update offsets_sparkrun set cancel_requested_at = 1 where id = %s", run.id)
        assert cancelled.wait(PATIENCE_SECONDS)
        run.confirm()

    with pytest.raises(RunCancelled), running(database, "archive", RunRequest()) as run:
        work(run)
    assert row(database, run.id)["state"] == "cancelled"


def test_a_run_that_lost_its_session_publishes_nothing(database: str) -> None:
    """Its lock is gone with the session: another run may be going on."""
    terminate = "select pg_terminate_backend(pid) from pg_stat_activity"
    terminate += " where application_name = 'kcoord-spark' and datname = current_database()"

    def work(run: Run) -> None:
        change(database, terminate)
        run.confirm()

    lost = pytest.raises(JobError, match="lost the database session with the run's lock")
    with lost, running(database, "archive", RunRequest()) as run:
        work(run)
    assert row(database, run.id)["state"] == "running"
    with running(database, "archive", RunRequest()):
        pass
    assert row(database, run.id)["state"] == "lost"
