"""The page of the service's health: what is wrong, as of when, and what to do; a part that fails blanks only itself."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.test import Client

from frontend.pages.overview.health import CHECKS, MEANINGS, Section, sections, summary
from frontend.pages.overview.parts import (
    BAD,
    GOOD,
    PARTS,
    WATCH,
    Alerts,
    Archive,
    Celery,
    OverviewParts,
    Part,
    Postgres,
    Sampler,
)
from groups.engine.standing import checks
from groups.nodes.overview import Overview as Nodes
from kcoord.database.pool import PoolUsage
from kcoord.database.task_health import TaskHealth
from kcoord.door.http.health import Check, readiness
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.alerts.types import Outcomes
from offsets.runs.service import SparkRun
from tests.frontend.seed import Seed
from tests.frontend.test_overview import LIMITS, NODE, NOW, WELL


def parts(**changes: object) -> dict[str, Part]:
    """What was read just now."""
    return {name: Part(value, NOW) for name, value in {**WELL, **changes}.items()}


def found(**changes: object) -> dict[str, Section]:
    """The sections by their keys."""
    return {section.key: section for section in sections(parts(**changes), NOW, LIMITS, {})}


def test_nothing_has_to_be_done_about_a_service_that_is_well() -> None:
    shown = found()
    assert summary(list(shown.values())) == (GOOD, "All parts work.")
    assert set(shown) == set(PARTS) == set(MEANINGS)
    for section in shown.values():
        for line in section.lines:
            assert not line.advice or line.said.state.tone == "idle", line


@pytest.mark.parametrize(
    ("key", "value", "state", "advice"),
    [
        ("server", {"listener": Check(False, "not listening")}, BAD, "The check that fails says what to do"),
        ("nodes", Nodes(NOW, [], [replace(NODE, state="CLOSED")], []), BAD, "Restart a server"),
        ("celery", Celery(None, True, TaskHealth({}, 0)), BAD, "Look at Celery beat: no task waits"),
        ("celery", Celery(NOW - 99_000, True, TaskHealth({}, 40)), BAD, "Look at the worker: tasks wait"),
        ("celery", Celery(NOW - 99_000, False, TaskHealth({}, None)), BAD, "Look at Celery beat and a worker."),
        ("celery", Celery(NOW, True, TaskHealth({"x": 3}, 101)), WATCH, "Tasks wait because the worker"),
        ("sampler", Sampler(NOW - 999_000, {"members": NOW, "offsets": NOW}), WATCH, "whether it runs"),
        ("postgres", Postgres("18.1", 1.0, 99, 100, {"read": PoolUsage(1, 2, 8, 0)}), WATCH, "max_connections"),
        ("alerts", Alerts({"r": 1}, Outcomes(0, 0, 1, None, NOW - 5)), BAD, "which receiver did not take them"),
        ("alerts", Alerts({"r": 1}, Outcomes(0, 1, 0, NOW - 9_000_000, None)), WATCH, "see whether the Celery worker"),
    ],
)  # fmt: skip
def test_what_is_wrong_says_what_to_do(key: str, value: object, state: object, advice: str) -> None:
    section = found(**{key: value})[key]
    assert section.worst is state
    assert advice in " ".join(line.advice for line in section.lines)
    told, sentence = summary([section])
    assert told is state
    assert section.name in sentence


def test_a_failed_run_leads_to_its_log() -> None:
    run = SparkRun.__new__(SparkRun)
    for name in SparkRun.__dataclass_fields__:
        object.__setattr__(run, name, None)
    for name, value in {"kind": "archive", "state": "failed", "ended_at": NOW - 5, "findings": None}.items():
        object.__setattr__(run, name, value)
    section = found(archive=Archive("/a", [run]))["archive"]
    assert section.worst.tone == "bad"
    assert "its log says why" in section.lines[0].advice


def test_a_part_that_cannot_be_read_is_as_of_then_and_the_others_as_of_now() -> None:
    read = parts()
    read["nodes"] = Part(WELL["nodes"], NOW - 60_000, "It could not be read within 3 s.")
    read["celery"] = Part(None, None, "The database refused to read it.")
    shown = {section.key: section for section in sections(read, NOW, LIMITS, {})}
    assert shown["nodes"].read_at == NOW - 60_000
    assert "within 3 s" in shown["nodes"].lines[0].advice
    assert shown["celery"].facts == ()
    assert shown["postgres"].read_at == NOW
    state, sentence = summary(list(shown.values()))
    assert state is WATCH
    assert sentence == "Coordinator nodes and Celery could not be read now; what is shown is older."


async def test_every_check_of_a_server_has_its_name(runtime: Runtime) -> None:
    assert {*await readiness(runtime), *checks(runtime)} <= set(CHECKS)


def test_the_page_survives_a_part_that_fails(person: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(self: OverviewParts) -> object:
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "no connection was free")

    monkeypatch.setattr(OverviewParts, "_nodes", fails)
    answer = person.get("/health")
    assert answer.status_code == 200
    page = re.sub(r"<[^>]+>", " ", answer.content.decode())
    assert "no connection was free" in page
    assert "never read" in page
    assert "LISTEN connection" in page
    assert "max_connections" not in page
