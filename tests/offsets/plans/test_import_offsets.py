"""`manage.py import_offsets`: files of kafka-consumer-groups become plans that are applied and can be undone."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from groups.engine.service import GroupService
from groups.topics import TopicService, Watermark
from kcoord.database.clock import VirtualClock
from kcoord.door.http import logs
from kcoord.door.http.local_transport import local_operator
from kcoord.process.runtime import Runtime
from offsets.management.commands import import_offsets
from offsets.plans.service import PlanService
from tests.support.members import stable_member

Import = Callable[..., Awaitable[tuple[str, str]]]


@pytest.fixture(autouse=True)
def _log_level_stays() -> Iterator[None]:
    """The command makes the log of its process quiet."""
    yield
    logs.configure("info")


@pytest.fixture
async def run(runtime: Runtime, tmp_path: Path) -> Import:
    """Run the command on a file with this text; what it wrote to standard output and standard error."""
    topics = runtime.get(TopicService)
    await topics.create("orders", 3)
    await topics.set_watermarks("orders", [Watermark(p, 10, 100) for p in range(3)])
    path = tmp_path / "offsets.csv"

    async def importing(text: str | bytes, **options: Any) -> tuple[str, str]:
        await asyncio.to_thread(path.write_bytes, text if isinstance(text, bytes) else text.encode())
        return await asyncio.to_thread(_call, path, options)

    return importing


def _call(path: Path, options: dict[str, Any]) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("import_offsets", str(path), stdout=out, stderr=err, **options)
    except CommandError as error:
        error.args = (f"{error}\n{err.getvalue()}",)
        raise
    finally:
        connections.close_all()
    return out.getvalue(), err.getvalue()


def offsets(database: str) -> dict[tuple[str, str, int], int]:
    """All committed offsets."""
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "select g.group_id, o.topic, o.partition, o.committed_offset from offsets_committedoffset o"
            " join groups_group g on g.id = o.group_id"
        ).fetchall()
    return {(group, topic, partition): offset for group, topic, partition, offset in rows}


FOUR = "a,orders,0,20\na,orders,1,500\nb,orders,0,30\n"


async def test_four_columns_are_groups_of_their_own(run: Import, database: str, runtime: Runtime) -> None:
    out, err = await run(FOUR, reason="moved from the old cluster")
    assert offsets(database) == {("a", "orders", 0): 20, ("a", "orders", 1): 100, ("b", "orders", 0): 30}
    assert [line.split(maxsplit=5) for line in out.splitlines()] == [
        ["GROUP", "TOPIC", "PARTITION", "OLD-OFFSET", "NEW-OFFSET", "NOTE"],
        ["a", "orders", "0", "-", "20"],
        ["a", "orders", "1", "-", "100", "500 is outside the log, which ends at 100"],
        ["b", "orders", "0", "-", "30"],
    ]
    with psycopg.connect(database) as connection:
        lines = connection.execute("select distinct kind, principal from offset_commit_log").fetchall()
    assert lines == [("import", local_operator().name)]
    plans = runtime.get(PlanService)
    (plan,) = (await plans.recent("a")).items
    assert plan.id in err
    assert plan.reason == "moved from the old cluster"
    await plans.undo("a", plan.id, local_operator())
    assert offsets(database) == {("b", "orders", 0): 30}


async def test_the_log_does_not_stand_between_the_lines(run: Import, capsys: pytest.CaptureFixture[str]) -> None:
    _, err = await run("a b,orders,0,20\n")
    assert "kgroups --reset-offsets --group 'a b' --undo" in err
    assert capsys.readouterr() == ("", "")


async def test_three_columns_need_the_group(run: Import, database: str) -> None:
    with pytest.raises(CommandError, match="name the group with --group"):
        await run("orders,0,20\n")
    assert offsets(database) == {}
    await run("orders,0,20\n", group="c")
    assert offsets(database) == {("c", "orders", 0): 20}


async def test_one_group_of_a_file_of_many(run: Import, database: str) -> None:
    await run(FOUR, group="b")
    assert offsets(database) == {("b", "orders", 0): 30}
    with pytest.raises(CommandError, match="contains no lines of group 'x'"):
        await run(FOUR, group="x")
    with pytest.raises(CommandError, match="--group: the group id must not contain '/'"):
        await run(FOUR, group="x/y")


async def test_a_dry_run_shows_and_commits_nothing(run: Import, database: str, runtime: Runtime) -> None:
    out, err = await run(FOUR, dry_run=True)
    assert len(out.splitlines()) == 4
    assert "nothing is committed" in err
    assert offsets(database) == {}
    (plan,) = (await runtime.get(PlanService).recent("a")).items
    assert plan.state.value == "planned"
    assert f"group a: plan {plan.id}" in err


async def test_every_bad_line_is_named_and_nothing_is_imported(run: Import, database: str) -> None:
    with pytest.raises(CommandError) as raised:
        await run("a,orders,0,20\na,orders,x,20\n\nb,orders,1\nb,orders,1,-7\n")
    told = str(raised.value)
    assert "offsets.csv: 3 bad lines; nothing is imported" in told
    for place in ("offsets.csv:2: the partition 'x'", "offsets.csv:4: 3 fields", "offsets.csv:5: the offset '-7'"):
        assert place in told
    assert offsets(database) == {}
    with pytest.raises(CommandError, match=": 1 bad line; nothing is imported"):
        await run("orders\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,orders,0,20\nb,orders,9,5", "group b: no plan was made: orders-9: does not exist"),
        ("a,orders,0,20\nb,nothing,0,5", "group b: no plan was made: nothing-0: does not exist"),
        ("", "contains no offsets"),
        (b"a,orders,0,20\n\xff", "not UTF-8 at byte 14"),
    ],
)
async def test_what_is_refused_imports_no_group(run: Import, database: str, text: str | bytes, told: str) -> None:
    with pytest.raises(CommandError, match=told):
        await run(text)
    assert offsets(database) == {}


async def test_a_group_with_members_stops_the_import_before_it_begins(
    run: Import, database: str, runtime: Runtime, clock: VirtualClock
) -> None:
    await stable_member(runtime.get(GroupService), clock)
    with pytest.raises(CommandError, match="NON_EMPTY_GROUP: group g: it has 1 members"):
        await run("a,orders,0,20\ng,orders,0,5\n")
    assert offsets(database) == {}


async def test_a_file_that_is_not_there_or_too_large(
    run: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CommandError, match=r"missing\.csv: No such file"):
        await asyncio.to_thread(_call, tmp_path / "missing.csv", {})
    monkeypatch.setattr(import_offsets, "MAX_BYTES", 10)
    with pytest.raises(CommandError, match="larger than 10 bytes"):
        await run(FOUR)
