"""`manage.py restore` without an archive: what it shows, applies and takes back, and its exit status."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable, Iterator

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.door.http import logs
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from offsets.commits.service import OffsetService
from tests.conftest import START_MS
from tests.support.commits import OffsetCommit, PartitionCommit
from tests.support.members import stable_member
from tests.support.offsets import reply_to

Command = Callable[..., Awaitable[tuple[int, str, str]]]
AT = rfc3339(START_MS)


@pytest.fixture(autouse=True)
def _log_level_stays() -> Iterator[None]:
    """The command makes the log of its process quiet."""
    yield
    logs.configure("info")


@pytest.fixture
async def run(runtime: Runtime, clock: VirtualClock) -> Command:
    """Two groups that were at 10 at AT and are at 20; runs the command: exit status, standard output and error."""
    await runtime.get(TopicService).create("orders", 2)
    for offset in (10, 20):
        for group in ("a", "b"):
            entry = (PartitionCommit("orders", 0, offset),)
            await reply_to(runtime.get(OffsetService), OffsetCommit(group, "", None, -1, entry))
        clock.advance(60_000)

    async def command(*arguments: str) -> tuple[int, str, str]:
        return await asyncio.to_thread(_call, arguments)

    return command


def _call(arguments: tuple[str, ...]) -> tuple[int, str, str]:
    out, err, status = io.StringIO(), io.StringIO(), 0
    try:
        call_command("restore", *arguments, stdout=out, stderr=err)
    except SystemExit as ended:
        status = int(str(ended.code))
    except CommandError as error:
        status = error.returncode
        err.write(str(error))
    finally:
        connections.close_all()
    return status, out.getvalue(), err.getvalue()


def offsets(database: str) -> dict[str, int]:
    """The committed offset of each group."""
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "select g.group_id, o.committed_offset from offsets_committedoffset o"
            " join groups_group g on g.id = o.group_id"
        ).fetchall()
    return dict(rows)


async def test_a_dry_run_shows_plans_and_commits_nothing(run: Command, database: str) -> None:
    status, out, err = await run("--all-groups", "--at", AT)
    assert status == 0
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["a", "orders", "0", "20", "10"],
        ["b", "orders", "0", "20", "10"],
    ]
    assert "dry run: nothing is committed" in err
    assert offsets(database) == {"a": 20, "b": 20}


async def test_json_is_one_object_with_the_lines_of_the_plans(run: Command, database: str) -> None:
    status, out, err = await run("--group", "a", "--at", AT, "--format", "json", "--apply", "--reason", "a bad release")
    told = json.loads(out)
    assert (status, err) == (0, "")
    assert (told["kind"], told["state"], told["at"], told["groups"]) == ("restore", "succeeded", AT, 1)
    (plan,) = told["plans"]
    assert (plan["group"], plan["state"], plan["changed"]) == ("a", "applied", 1)
    assert plan["lines"] == [{"topic": "orders", "partition": 0, "old_offset": 20, "new_offset": 10, "note": ""}]
    assert offsets(database) == {"a": 10, "b": 20}


async def test_a_run_is_taken_back_as_a_whole(run: Command, database: str) -> None:
    _, out, _ = await run("--all-groups", "--at", AT, "--apply", "--format", "json")
    assert offsets(database) == {"a": 10, "b": 10}
    run_id = json.loads(out)["run"]
    assert (await run("--undo", run_id))[0] == 0
    assert offsets(database) == {"a": 20, "b": 20}
    status, _, err = await run("--undo", run_id)
    assert status == 1
    assert "the plan cannot be undone: it was undone" in err


async def test_a_group_with_members_is_a_finding(
    run: Command, runtime: Runtime, clock: VirtualClock, database: str
) -> None:
    await stable_member(runtime.get(GroupService), clock, "a")
    status, _, err = await run("--all-groups", "--at", AT, "--apply")
    assert status == 1
    assert "group a: NON_EMPTY_GROUP: group 'a' has 1 members: stop them first" in err
    assert "nothing is committed" in err
    assert offsets(database) == {"a": 20, "b": 20}


async def test_nothing_to_change(run: Command, clock: VirtualClock) -> None:
    clock.advance(1)
    status, out, _ = await run("--all-groups", "--at", rfc3339(clock.now_ms() - 1) or "", "--format", "json")
    told = json.loads(out)
    assert (status, told["groups"], told["unchanged"], told["plans"]) == (0, 2, 2, [])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--group", "a"), "--at is required"),
        (("--group", "a", "--at", "yesterday"), "--at: 'yesterday' is not an instant in RFC 3339"),
        (("--group", "a/b", "--at", AT), "--group: the group id must not contain '/'"),
        (("--all-groups", "--at", rfc3339(START_MS + 10**10)), "at: must not be in the future"),
        (("--all-groups", "--at", "2023-01-01T00:00:00Z"), "at: before the journal begins"),
        (("--all-groups", "--at", AT, "--create-topics"), "--create-topics requires --into-empty"),
        (("--into-empty", "--apply"), "--apply cannot be used with --into-empty"),
        (("--into-empty",), "no archive is configured: set KCOORD_ARCHIVE_PATH"),
        (("--undo", "7b1c1bd0-0000-4000-8000-000000000001"), "is not a run of restore that applied plans"),
    ],
)
async def test_what_cannot_run_is_one_line_and_status_2(
    run: Command, database: str, arguments: tuple[str, ...], told: str
) -> None:
    status, out, err = await run(*arguments)
    assert (status, out) == (2, "")
    assert told in err
    assert len(err.splitlines()) == 1
    assert offsets(database) == {"a": 20, "b": 20}
