"""The bench as a whole: copies of groups, its sections, and a tiny run against a real server."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import psycopg
import pytest

from groups.core.model.group import partition_of
from groups.engine.service import GroupService
from kcoord.config import Config
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from tests.bench import __main__ as bench
from tests.bench.figures import Results
from tests.bench.populate import Template, copies
from tests.bench.targets import TARGETS
from tests.support.members import heartbeat, join, sync

PATIENCE_SECONDS = 400
"""For a run of 40 s: one beside other work with a load of 15 took more than the two minutes that `--tiny` has."""


@pytest.mark.processes
@pytest.mark.whole("of a program for developers; it loads the cores for a minute")
def test_a_tiny_run_has_its_figures_and_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results.json"
    options = ["--tiny", "--only", "offsets,wire", "--limit", str(PATIENCE_SECONDS)]
    assert bench.main([*options, "--json", str(path)]) == 0
    results = Results.read(path)
    found = {figure.key: figure for figure in results.figures}
    assert found.keys() >= {key for key in TARGETS if key.startswith(("commits", "wire"))}
    for figure in results.figures:
        assert figure.value > 0
        assert figure.base > 0
    details = found["commits.50"].details
    assert details["server_us"] > 0
    assert details["wal_bytes"] > 0
    assert details["rss_mb"] > 20
    assert 0 < details["p50_ms"] <= details["p99_ms"]
    wire = {"heartbeats", "heartbeats.cpu", "commits", "commits.cpu", "idle", "joins", "joins.joined", "joins.beside"}
    assert {key.partition(".")[2] for key in found if key.startswith("wire.")} == wire
    assert [point.x for point in results.curve("partitions")] == [1, 5, 20, 50]
    assert json.loads(path.read_text())["missing"] == {}
    assert "the model and what was measured" in capsys.readouterr().out


async def test_copies_of_a_group_are_groups_at_work(database: str) -> None:
    runtime = Runtime(Config({"group.initial.rebalance.delay.ms": 0}), database)
    await runtime.start()
    service = runtime.get(GroupService)
    asked = await service.join(join("template"))
    joined = await service.join(join("template", asked.member_id))
    await service.sync(sync(joined, {joined.member_id: b""}, "template"))
    await runtime.stop()

    people = copies(database, Template("template", [joined.member_id], joined.generation_id), "many", 3, 4)

    assert (people.count, people.group(2), list(people.members)) == (12, "many-2", [f"m-00000{n}" for n in range(4)])
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "select g.group_id, g.partition, g.leader_id, count(m.id), count(distinct m.member_id) from groups_group g "
            "join groups_member m on m.group_id = g.id where g.group_id like 'many-%' group by g.id order by 1"
        ).fetchall()
    names = [people.group(number) for number in range(3)]
    assert rows == [(name, partition_of(name, 50), "m-000000", 4, 4) for name in names]
    other = Runtime(Config({}), database)
    await other.start()
    for member in people.members:
        reply = await settled(other.get(GroupService).heartbeat(heartbeat(replace(joined, member_id=member), "many-1")))
        assert reply.error.code == 0
    await other.stop()


def test_every_section_can_be_run() -> None:
    for name in bench.SECTIONS:
        assert callable(import_module(f"tests.bench.sections.{name}").run), name
