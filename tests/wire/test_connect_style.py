"""Workers in the style of Kafka Connect: a protocol type and metadata of their own, a leader, and the next one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.processes.test_examples import Worker, until
from tests.support.processes import environment
from tests.wire.kafka_workers import WORKERS, Listening

pytestmark = [
    pytest.mark.processes,
    pytest.mark.xdist_group("kafka-clients"),
    pytest.mark.whole("more Kafka clients and tools; the default has librdkafka, Java and aiokafka once each"),
]

TASKS = ["a", "b", "c", "d", "e"]
GROUP = "connect-style"


def start(listening: Listening, name: str, directory: Path) -> Worker:
    """A worker that shares the tasks of this directory."""
    (directory / "tasks").write_text("\n".join(TASKS))
    env = environment(None, directory) | {
        "KCOORD_KAFKA": f"127.0.0.1:{listening.port}",
        "KCOORD_TOKEN": listening.service.token,
        "KCOORD_GROUP": GROUP,
    }
    command = [sys.executable, str(WORKERS / "worker_connect.py"), name, str(directory / "tasks")]
    return Worker(command, env, directory)


def told(worker: Worker) -> dict[str, Any]:
    """What the worker was told last."""
    found: dict[str, Any] = json.loads(worker.lines[-1]) if worker.lines else {}
    return found


def test_another_worker_leads_when_the_leader_is_killed(listening: Listening, tmp_path: Path) -> None:
    pytest.importorskip("kafka")
    with start(listening, "one", tmp_path) as one:
        until(lambda: told(one).get("tasks") == TASKS, one, what="the only worker has all tasks")
        with start(listening, "two", tmp_path) as two:
            until(lambda: told(one).get("tasks") == ["a", "c", "e"], one, two, what="the first has its share")
            until(lambda: told(two).get("tasks") == ["b", "d"], one, two, what="the second has the others")
            shared = told(one)
            assert (told(two)["leader"], told(two)["generation"]) == ("one", shared["generation"])
            described = listening.service.describe(GROUP)
            assert (described["protocol_type"], described["protocol_name"]) == ("connect", "shared-out")
            assert {member["client_id"] for member in described["members"]} == {"one", "two"}
            one.popen.kill()
            until(lambda: told(two)["leader"] == "two", two, what="the second leads")
            assert told(two)["tasks"] == TASKS
            assert told(two)["generation"] > shared["generation"]
            two.stop()
    until(lambda: not listening.service.describe(GROUP)["members"], what="it left when it ended")
