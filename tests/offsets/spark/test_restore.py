"""Restore: groups put back to any instant, from the journal, from the archive, and from both."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

from groups.engine.service import GroupService
from groups.topics import TopicService, Watermark
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.door.http.local_transport import local_operator
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.strategies import Reset, Strategy
from offsets.commits.deletion import OffsetDeletion
from offsets.commits.service import OffsetService
from offsets.core.days import DAY_MS
from offsets.core.deletion import OffsetDelete
from offsets.journal.journal_days import JournalDays
from offsets.plans.service import PlanService
from offsets.runs.refilling import RefillService
from offsets.runs.restore_jobs import RefillJob, RestoreJob, UndoJob
from offsets.runs.restoring import RestoreOrder
from offsets.spark.command import Installation, SparkStart
from offsets.spark.errors import JobError
from offsets.spark.runs import Outcome, RunRequest, running
from tests.conftest import EMPTIED, START_MS
from tests.offsets.spark.support import Archive, journal_rows
from tests.support.commits import OffsetCommit, PartitionCommit
from tests.support.journal import assert_journal_agrees
from tests.support.members import stable_member
from tests.support.offsets import reply_to

pytestmark = pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")

GROUPS = ("a", "b", "c")
TOPICS = ("orders", "payments")
PARTITIONS = 3
OPERATOR = local_operator()

Offsets = Mapping[tuple[str, str, int], int]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """With an archive, where the fixture `archive` has it."""
    return Config({"archive.path": str(tmp_path / "archive")})


def committed(conninfo: str) -> Offsets:
    """All committed offsets."""
    with psycopg.connect(conninfo) as connection:
        rows = connection.execute(
            "select g.group_id, o.topic, o.partition, o.committed_offset from offsets_committedoffset o"
            " join groups_group g on g.id = o.group_id"
        ).fetchall()
    return {(group, topic, partition): offset for group, topic, partition, offset in rows}


class Shadow:
    """A copy of what was committed after each of many changes."""

    def __init__(self, runtime: Runtime, clock: VirtualClock, conninfo: str, seed: int) -> None:
        self._runtime, self._clock, self._conninfo = runtime, clock, conninfo
        self._random = random.Random(seed)
        self.states: list[tuple[int, Offsets]] = []

    async def begin(self) -> None:
        """Make the topics, and the first commit."""
        topics = self._runtime.get(TopicService)
        for name in TOPICS:
            await topics.create(name, PARTITIONS)
            await topics.set_watermarks(name, [Watermark(p, 0, 1_000) for p in range(PARTITIONS)])
        first = OffsetCommit(GROUPS[0], "", None, -1, (PartitionCommit(TOPICS[0], 0, 1),))
        await reply_to(self._runtime.get(OffsetService), first)
        self.states.append((self._clock.now_ms(), committed(self._conninfo)))

    async def live(self, changes: int, longest_ms: int) -> None:
        """Some changes: commits, resets, deletions of offsets and of groups, which commits make again."""
        for _ in range(changes):
            self._clock.advance(self._random.randint(1, longest_ms))
            await self._change(self._random.choice(GROUPS))
            self.states.append((self._clock.now_ms(), committed(self._conninfo)))

    async def _change(self, group: str) -> None:
        topic, partition = self._random.choice(TOPICS), self._random.randrange(PARTITIONS)
        what = self._random.random()
        if what < 0.75:
            entry = PartitionCommit(topic, partition, self._random.randrange(1_000))
            await reply_to(self._runtime.get(OffsetService), OffsetCommit(group, "", None, -1, (entry,)))
        elif what < 0.85:
            await self._runtime.get(OffsetDeletion).delete(OffsetDelete(group, ((topic, partition),)))
        elif what < 0.95:
            plans = self._runtime.get(PlanService)
            reset = Reset(Strategy.TO_OFFSET, ((topic, None),), offset=self._random.randrange(1_000))
            plan = await plans.create(group, reset, OPERATOR)
            await plans.apply(group, plan.id, OPERATOR)
        else:
            await self._runtime.get(GroupService).delete(group)

    def at(self, instant: int) -> Offsets:
        """What was committed then."""
        return next((state for at, state in reversed(self.states) if at <= instant), {})

    def moments(self, count: int) -> list[int]:
        """Instants from the first change to the last, each once."""
        return self._random.sample(range(self.states[0][0], self.states[-1][0] + 1), count)


async def restore(
    archive: Archive, at: int, groups: list[str] | None = None, topics: tuple[str, ...] = (), *, apply: bool = True
) -> Outcome:
    """A run of restore in this process."""

    def run() -> Outcome:
        config = Config({"archive.path": archive.path})
        job = RestoreJob(
            Installation(config, archive.conninfo, Path(archive.path).parent), order(at, topics), groups, apply
        )
        with running(archive.conninfo, "restore", RunRequest("test"), ("archive",)) as run:
            run.outcome = job(run, started(archive))
        return run.outcome

    return await asyncio.to_thread(run)


def order(at: int, topics: tuple[str, ...] = ()) -> RestoreOrder:
    """What the command asks for."""
    return RestoreOrder(at, topics, OPERATOR, "a test")


def started(archive: Archive) -> SparkStart:
    """The Spark of these tests, as jobs are given it."""
    start = SparkStart(None)  # type: ignore[arg-type]
    start._session = archive.start()
    return start


async def test_ten_moments_of_the_journal(runtime: Runtime, clock: VirtualClock, archive: Archive) -> None:
    shadow = Shadow(runtime, clock, archive.conninfo, 1)
    await shadow.begin()
    await shadow.live(60, 10 * 3_600_000)
    for at in shadow.moments(10):
        clock.advance(1_000)
        outcome = await restore(archive, at, list(GROUPS))
        assert outcome.findings == 0
        assert committed(archive.conninfo) == shadow.at(at), rfc3339(at)


async def test_ten_moments_of_an_archive_whose_days_were_dropped(
    runtime: Runtime, clock: VirtualClock, archive: Archive
) -> None:
    """Some moments are known to the archive alone, some to the journal alone, most to both."""
    shadow = Shadow(runtime, clock, archive.conninfo, 2)
    await shadow.begin()
    for _ in range(3):
        await shadow.live(20, 6 * 3_600_000)
        clock.advance(25 * DAY_MS)
        await asyncio.to_thread(archive.run)
        await runtime.get(JournalDays).keep()
    await shadow.live(20, 6 * 3_600_000)
    first, kept = shadow.states[0][0], journal_rows(archive.conninfo)[0][1]
    assert kept > first + 30 * DAY_MS, "days were dropped"
    moments = shadow.moments(8) + [random.Random(at).randint(first, kept) for at in (1, 2)]
    for number, at in enumerate(moments):
        clock.advance(1_000)
        outcome = await restore(archive, at, None if number % 4 == 3 else list(GROUPS))
        assert outcome.findings == 0, outcome.result
        assert committed(archive.conninfo) == shadow.at(at), rfc3339(at)


async def test_a_restore_can_be_looked_at_and_taken_back(
    runtime: Runtime, clock: VirtualClock, archive: Archive
) -> None:
    shadow = Shadow(runtime, clock, archive.conninfo, 3)
    await shadow.begin()
    await shadow.live(20, 3_600_000)
    at, before = shadow.states[5][0], committed(archive.conninfo)
    clock.advance(1)
    looked_at = (await restore(archive, at, list(GROUPS), apply=False)).result
    assert looked_at is not None
    assert {plan["state"] for plan in looked_at["plans"]} == {"planned"}
    assert committed(archive.conninfo) == before
    outcome = await restore(archive, at, list(GROUPS), ("orders",))
    assert outcome.result is not None
    expected = {key: offset for key, offset in shadow.at(at).items() if key[1] == "orders"}
    expected |= {key: offset for key, offset in before.items() if key[1] != "orders"}
    assert committed(archive.conninfo) == expected
    applied = [(plan["group"], plan["plan"]) for plan in outcome.result["plans"]]

    def undo() -> Outcome:
        with running(archive.conninfo, "restore", RunRequest("test")) as run:
            run.outcome = UndoJob(str(run.id), applied, OPERATOR)(run, started(archive))
        return run.outcome

    assert (await asyncio.to_thread(undo)).findings == 0
    assert committed(archive.conninfo) == before


async def test_a_group_with_members_keeps_all_from_being_restored(
    runtime: Runtime, clock: VirtualClock, archive: Archive
) -> None:
    shadow = Shadow(runtime, clock, archive.conninfo, 4)
    await shadow.begin()
    await shadow.live(20, 3_600_000)
    await stable_member(runtime.get(GroupService), clock, "a")
    before = committed(archive.conninfo)
    at = next(at for at, state in shadow.states if {k: v for k, v in state.items() if k[0] == "a"} != before)
    outcome = await restore(archive, at)
    assert outcome.findings == 1
    assert outcome.result is not None
    assert [one["error"] for one in outcome.result["refused"]] == [Error.NON_EMPTY_GROUP.name]
    assert committed(archive.conninfo) == before


async def test_what_had_an_offset_and_is_gone_is_told(runtime: Runtime, clock: VirtualClock, archive: Archive) -> None:
    shadow = Shadow(runtime, clock, archive.conninfo, 5)
    await shadow.begin()
    await shadow.live(30, 3_600_000)
    at, then = shadow.states[-1]
    clock.advance(1)
    await runtime.get(TopicService).delete("orders")
    outcome = await restore(archive, at)
    assert outcome.result is not None
    gone = {(one["group"], one["topic"], one["partition"]) for one in outcome.result["left_out"]}
    assert gone == {key for key in then if key[1] == "orders"} != set()


async def test_instants_of_which_nothing_is_known(runtime: Runtime, clock: VirtualClock, archive: Archive) -> None:
    with pytest.raises(JobError, match="must not be in the future"):
        await restore(archive, clock.now_ms() + 1)
    with pytest.raises(JobError, match=r"before the journal begins; it is kept for 30 days .*days\)$"):
        await restore(archive, START_MS - 31 * DAY_MS, ["a"])
    shadow = Shadow(runtime, clock, archive.conninfo, 6)
    await shadow.begin()
    await shadow.live(5, 3_600_000)
    await asyncio.to_thread(archive.run)
    clock.advance(40 * DAY_MS)
    begins = rfc3339(shadow.states[0][0])
    with pytest.raises(JobError, match=f"and the archive begins at {begins}"):
        await restore(archive, shadow.states[0][0] - 1, ["a"])
    await restore(archive, shadow.states[0][0], ["a"])


async def test_a_damaged_archive_restores_nothing(runtime: Runtime, clock: VirtualClock, archive: Archive) -> None:
    shadow = Shadow(runtime, clock, archive.conninfo, 7)
    await shadow.begin()
    await shadow.live(5, 3_600_000)
    await asyncio.to_thread(archive.run)
    clock.advance(DAY_MS)
    file = next(Path(archive.path).glob("journal/date=*/*.parquet"))
    manifest = next(Path(archive.path).glob("manifests/*.json"))
    data, text = file.read_bytes(), manifest.read_text()
    for harm, told in (
        (file.unlink, f"{file.parent.name}/{file.name} is missing"),
        (lambda: file.write_bytes(data[:-1]), f"{file.parent.name}/{file.name} has .* bytes instead"),
        (lambda: manifest.write_text(text.replace(file.name, "other.parquet")), "was changed"),
    ):
        harm()
        outcome = await restore(archive, shadow.states[2][0], ["a"])
        assert outcome.result is not None
        (refused,) = outcome.result["refused"]
        assert refused["error"] == Error.UNKNOWN_SERVER_ERROR.name
        assert re.search(told, refused["detail"])
        with pytest.raises(JobError, match="the archive is damaged"):
            await restore(archive, shadow.states[2][0])
        file.write_bytes(data)
        manifest.write_text(text)


async def test_a_filling_that_was_cut_short_goes_on(runtime: Runtime, clock: VirtualClock, archive: Archive) -> None:
    shadow = Shadow(runtime, clock, archive.conninfo, 9)
    await shadow.begin()
    await shadow.live(30, 3_600_000)
    await asyncio.to_thread(archive.run)
    known = committed(archive.conninfo)
    assert len({key[0] for key in known}) > 1
    with psycopg.connect(archive.conninfo, autocommit=True) as connection:
        connection.execute(EMPTIED)
        connection.execute("truncate groups_revision")  # an empty database has had no topics
    clock.advance(1)
    fill = RefillService.fill

    async def cut(service: RefillService, group_id: str, *rest: Any) -> bool:
        if group_id != min(key[0] for key in known):
            raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "cut short")
        return await fill(service, group_id, *rest)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RefillService, "fill", cut)
        with pytest.raises(JobError, match="cut short"):
            await refill(archive)
    assert committed(archive.conninfo) != known
    await refill(archive)
    assert committed(archive.conninfo) == known
    assert_journal_agrees(archive.conninfo)
    assert len(journal_rows(archive.conninfo)) == len(known)


async def refill(archive: Archive, *, create_topics: bool = False) -> Outcome:
    """A run of restore --into-empty in this process."""

    def run() -> Outcome:
        config = Config({"archive.path": archive.path})
        job = RefillJob(
            Installation(config, archive.conninfo, Path(archive.path).parent), None, create_topics, OPERATOR.name
        )
        with running(archive.conninfo, "restore", RunRequest("test"), ("archive",)) as run:
            run.outcome = job(run, started(archive))
        return run.outcome

    return await asyncio.to_thread(run)


def details(conninfo: str) -> list[tuple[Any, ...]]:
    """What is stored of every committed offset."""
    with psycopg.connect(conninfo) as connection:
        return connection.execute(
            "select g.group_id, o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata,"
            " o.expire_timestamp from offsets_committedoffset o"
            " join groups_group g on g.id = o.group_id order by 1, 2, 3"
        ).fetchall()


def of_another_cluster(archive: Archive) -> None:
    """Have the newest manifest say that another cluster wrote it: no second Postgres is started for that."""
    path = max(Path(archive.path).glob("manifests/*.json"))
    written = json.loads(path.read_text())
    path.write_text(json.dumps({**written, "system_identifier": "7000000000000000000"}))
