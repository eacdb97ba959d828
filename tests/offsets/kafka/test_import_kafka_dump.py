"""`manage.py import_offsets --from-kafka-dump`: the history of `__consumer_offsets` becomes journal and offsets."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.door.http import logs
from kcoord.door.http.local_transport import local_operator
from kcoord.process.runtime import Runtime
from kcoord.resets.strategies import Reset, Strategy
from offsets.commits.service import OffsetService
from offsets.kafka import KafkaOffset, read_kafka_dump
from offsets.plans.service import PlanService
from tests.conftest import START_MS
from tests.support.commits import OffsetCommit, PartitionCommit
from tests.support.journal import assert_journal_agrees, journal_lines
from tests.support.members import stable_member
from tests.support.offsets import reply_to

HOUR = 3_600_000
T0 = START_MS - 10 * HOUR

Import = Callable[..., Awaitable[tuple[str, str]]]


def record(offset: int | None, at: int, *, group: str = "g", topic: str = "orders", partition: int = 0) -> str:
    """As `kafka-console-consumer` of Kafka 4 prints it."""
    key = {"type": 1, "data": {"group": group, "topic": topic, "partition": partition}}
    data = {"offset": offset, "leaderEpoch": 3, "metadata": f"at {offset}", "commitTimestamp": at}
    return json.dumps({"key": key, "value": None if offset is None else {"version": 4, "data": data}})


CONSOLE_4 = record(5, T0) + "\n" + record(7, T0 + HOUR) + record(9, T0 + 2 * HOUR, partition=1) + "\n"
"""Kafka's formatter writes no line end between objects."""

CONSOLE_3 = f"""\
[g,orders,0]::OffsetAndMetadata(offset=5, leaderEpoch=Optional[3], metadata=at 5, commitTimestamp={T0}, expireTimestamp=None)
[g,orders,0]::OffsetAndMetadata(offset=7, leaderEpoch=Optional[3], metadata=at 7, commitTimestamp={T0 + HOUR}, expireTimestamp=None)
[g,orders,1]::OffsetAndMetadata(offset=9, leaderEpoch=Optional[3], metadata=at 9, commitTimestamp={T0 + 2 * HOUR}, expireTimestamp=None)
"""  # noqa: E501

BATCH = (
    "baseOffset: {0} lastOffset: {0} count: 1 baseSequence: 0 lastSequence: 0 producerId: {1} producerEpoch: 0 "
    "partitionLeaderEpoch: 0 isTransactional: {2} isControl: {3} deleteHorizonMs: OptionalLong.empty position: 0 "
    "CreateTime: 1 size: 232 magic: 2 compresscodec: none crc: 1 isvalid: true\n"
)
RECORD = "| offset: {0} CreateTime: {1} keySize: 26 valueSize: 24 sequence: 0 headerKeys: [] "


def logged(number: int, key: str, payload: str, at: int) -> str:
    """As `kafka-dump-log` prints a batch of one record."""
    return BATCH.format(number, -1, "false", "false") + RECORD.format(number, at) + f"key: {key} payload: {payload}\n"


def logged_json(number: int, offset: int, at: int, partition: int = 0) -> str:
    """A record of Kafka 4."""
    key = {"type": "1", "data": {"group": "g", "topic": "orders", "partition": partition}}
    data = {"offset": offset, "leaderEpoch": 3, "metadata": f"at {offset}", "commitTimestamp": at}
    return logged(number, json.dumps(key), json.dumps({"version": "3", "data": data}), at)


HEAD = "Dumping 00000000000000000000.log\nLog starting offset: 0\n"
LOG_4 = HEAD + logged_json(0, 5, T0) + logged_json(1, 7, T0 + HOUR) + logged_json(2, 9, T0 + 2 * HOUR, 1)
LOG_3 = (
    HEAD
    + logged(0, "offset_commit::group=g,partition=orders-0", "offset=5,metadata=at 5", T0)
    + logged(1, "group_metadata::group=g", '{"protocolType":"consumer"}', T0)
    + logged(2, "offset_commit::group=g,partition=orders-0", "offset=7,metadata=at 7", T0 + HOUR)
    + logged(3, "offset_commit::group=g,partition=orders-1", "offset=9,metadata=at 9", T0 + 2 * HOUR)
)
FORMATS = {"console 4": CONSOLE_4, "console 3": CONSOLE_3, "log 4": LOG_4, "log 3": LOG_3}


@pytest.fixture(autouse=True)
def _log_level_stays() -> Iterator[None]:
    """The command makes the log of its process quiet."""
    yield
    logs.configure("info")


@pytest.fixture
async def run(runtime: Runtime, tmp_path: Path) -> Import:
    """Run the command on a dump; what it wrote to standard output and standard error."""
    await runtime.get(TopicService).create("orders", 3)
    path = tmp_path / "dump.txt"

    async def importing(text: str, **options: Any) -> tuple[str, str]:
        await asyncio.to_thread(path.write_text, text)
        return await asyncio.to_thread(_call, path, options)

    return importing


def _call(path: Path, options: dict[str, Any]) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("import_offsets", str(path), from_kafka_dump=True, stdout=out, stderr=err, **options)
    except CommandError as error:
        error.args = (f"{error}\n{err.getvalue()}",)
        raise
    finally:
        connections.close_all()
    return out.getvalue(), err.getvalue()


def stored(database: str) -> list[tuple[Any, ...]]:
    """All committed offsets."""
    with psycopg.connect(database) as connection:
        return connection.execute(
            "select g.group_id, o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata,"
            " o.commit_timestamp from offsets_committedoffset o"
            " join groups_group g on g.id = o.group_id order by 1, 2, 3"
        ).fetchall()


@pytest.mark.parametrize("form", FORMATS)
async def test_history_and_offsets_are_imported_from_each_format(run: Import, database: str, form: str) -> None:
    epoch = -1 if form == "log 3" else 3
    out, _ = await run(FORMATS[form])
    assert stored(database) == [
        ("g", "orders", 0, 7, epoch, "at 7", START_MS),
        ("g", "orders", 1, 9, epoch, "at 9", START_MS),
    ]
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["g", "orders", "0", "-", "7"],
        ["g", "orders", "1", "-", "9"],
    ]
    lines = journal_lines(database, "at, kind, partition, committed_offset, leader_epoch, metadata, principal")
    assert [tuple(line.values()) for line in lines] == [
        (at, "import", partition, offset, epoch, f"at {offset}", local_operator().name)
        for at, partition, offset in (
            (T0, 0, 5),
            (T0 + HOUR, 0, 7),
            (T0 + 2 * HOUR, 1, 9),
            (START_MS, 0, 7),
            (START_MS, 1, 9),
        )
    ]
    assert_journal_agrees(database)


@pytest.mark.parametrize(
    ("at", "expected"), [(T0 - 1, None), (T0, 5), (T0 + HOUR - 1, 5), (T0 + HOUR, 7), (T0 + 9 * HOUR, 7)]
)
async def test_every_moment_of_the_import_can_be_restored(
    run: Import, runtime: Runtime, clock: VirtualClock, at: int, expected: int | None
) -> None:
    await run(CONSOLE_4)
    clock.advance(1_000)
    plans = runtime.get(PlanService)
    made = await plans.create("g", Reset(Strategy.TO_COMMITTED_AT, (("orders", (0,)),), at=at), local_operator())
    assert [line.new for line in (await plans.lines(made)).items] == [expected]


async def test_a_tombstone_removes_and_can_be_looked_behind(
    run: Import, runtime: Runtime, clock: VirtualClock, database: str
) -> None:
    await run(CONSOLE_4 + record(None, 0) + record(None, 0, partition=2) + record(4, T0 + 3 * HOUR, partition=1))
    assert [row[:4] for row in stored(database)] == [("g", "orders", 1, 4)]
    clock.advance(1)
    plans = runtime.get(PlanService)
    for at, expected in ((T0 + HOUR, 7), (T0 + 2 * HOUR, None)):
        made = await plans.create("g", Reset(Strategy.TO_COMMITTED_AT, (("orders", (0,)),), at=at), local_operator())
        assert [line.new for line in (await plans.lines(made)).items] == [expected]
    assert_journal_agrees(database)


async def test_only_transactions_that_committed_count(run: Import, database: str) -> None:
    def transaction(number: int, producer: int, offset: int, end: str) -> str:
        begun = (
            BATCH.format(number, producer, "true", "false") + logged_json(number, offset, T0 + number).split("\n", 1)[1]
        )
        marker = RECORD.format(number + 1, T0) + f"endTxnMarker: {end} coordinatorEpoch: 0\n"
        return begun + (BATCH.format(number + 1, producer, "true", "true") + marker if end else "")

    _, err = await run(HEAD + transaction(0, 7, 5, "COMMIT") + transaction(2, 8, 6, "ABORT") + transaction(4, 9, 7, ""))
    assert [row[:4] for row in stored(database)] == [("g", "orders", 0, 5)]
    assert "ignored 2 records of transactions that were aborted or had not ended" in err


async def test_one_group_of_a_dump_and_what_is_not_used(run: Import, database: str) -> None:
    about_a_group = json.dumps({"key": {"type": 2, "data": {"group": "g"}}, "value": None})
    _, err = await run(record(1, T0, group="a,b") + record(2, T0, group="c") + about_a_group, group="c")
    assert [row[:4] for row in stored(database)] == [("c", "orders", 0, 2)]
    assert "ignored 1 records about groups and members" in err
    with pytest.raises(CommandError, match="no committed offsets of the group 'x'"):
        await run(CONSOLE_4, group="x")


def test_a_group_name_may_hold_commas_and_brackets() -> None:
    text = CONSOLE_3.splitlines()[0].replace("[g,", "[a,[b],").replace("metadata=at 5", "metadata=x, commitTimestamp=1")
    (found,) = read_kafka_dump([text]).records
    assert found == KafkaOffset(1, "a,[b]", "orders", 0, 5, T0, 3, "x, commitTimestamp=1")


async def test_time_that_runs_backwards_is_put_in_order(run: Import, database: str) -> None:
    _, err = await run(record(5, T0) + record(6, T0 - HOUR) + record(7, START_MS + HOUR))
    assert [line["at"] for line in journal_lines(database)] == [T0, T0, START_MS, START_MS]
    assert "adjusted the time of 2 lines" in err


async def test_a_dry_run_shows_and_writes_nothing(run: Import, database: str) -> None:
    out, err = await run(CONSOLE_4, dry_run=True)
    assert len(out.splitlines()) == 3
    assert "nothing is imported" in err
    assert (stored(database), journal_lines(database)) == ([], [])


BAD = {
    CONSOLE_4[:-9]: "not valid JSON",
    CONSOLE_3[:-20]: "is the line cut off",
    LOG_4[:-5]: "not valid JSON",
    LOG_3[:-40]: "no record|is the line cut off|key",
    record(5, T0).replace('"version": 4', '"version": 9'): "version 9 of an offset's value; this release reads up to 4",
    record(5, T0).replace('"offset": 5', '"offset": -5'): "the offset -5 is not from 0",
    record(5, T0).replace('"orders"', '"or/ders"'): "is not a valid topic name",
    record(5, T0).replace(f'"commitTimestamp": {T0}', '"x": 1'): "commitTimestamp is missing",
    "[g,orders,0]::[OffsetMetadata[5,NO_METADATA],CommitTime 1,ExpirationTime 2]\n": "not a known value",
    "g,orders,0,5\n": "is not a record printed by kafka-console-consumer",
    "| offset: 1 CreateTime: 1 keySize: 26 valueSize: 24 sequence: 0 headerKeys: []\n": "--offsets-decoder",
}


@pytest.mark.parametrize("text", BAD)
async def test_a_bad_line_is_named_and_nothing_is_imported(run: Import, database: str, text: str) -> None:
    number = len(text.splitlines())
    with pytest.raises(
        CommandError, match=f"(?s)dump.txt: 1 bad line; nothing is imported.*dump.txt:{number}: .*({BAD[text]})"
    ):
        await run(text)
    assert (stored(database), journal_lines(database)) == ([], [])


async def test_bad_lines_are_left_out_when_told_to(run: Import, database: str) -> None:
    _, err = await run("nonsense\n" + CONSOLE_4, skip_bad_lines=True)
    assert "dump.txt:1: 'nonsense' is not a record" in err
    assert "1 bad line left out" in err
    assert len(stored(database)) == 2


async def test_a_file_that_is_not_there(tmp_path: Path, run: Import) -> None:
    with pytest.raises(CommandError, match=r"missing\.txt: No such file"):
        await asyncio.to_thread(_call, tmp_path / "missing.txt", {})
    with pytest.raises(CommandError, match="contains no committed offsets"):
        await run("")


async def test_two_histories_are_not_mixed(run: Import, runtime: Runtime, database: str) -> None:
    await run(CONSOLE_4)
    before = journal_lines(database)
    with pytest.raises(CommandError, match="INVALID_REQUEST: group g: it already has offsets or a commit history"):
        await run(record(1, T0, group="a") + CONSOLE_4)
    await runtime.get(GroupService).delete("g")
    with pytest.raises(CommandError, match="group g: it already has offsets or a commit history"):
        await run(CONSOLE_4)
    entry = (PartitionCommit("orders", 0, 1),)
    await reply_to(runtime.get(OffsetService), OffsetCommit("b", "", None, -1, entry))
    with pytest.raises(CommandError, match="group b: it already has offsets or a commit history"):
        await run(record(1, T0, group="b"))
    assert [line for line in journal_lines(database) if line["kind"] == "import"] == before


async def test_members_and_topics_are_looked_at_before_anything_is_written(
    run: Import, runtime: Runtime, clock: VirtualClock, database: str
) -> None:
    with pytest.raises(CommandError, match="UNKNOWN_TOPIC_OR_PARTITION: orders-3, payments-0: does not exist"):
        await run(record(1, T0) + record(1, T0, partition=3) + record(1, T0, topic="payments"))
    await stable_member(runtime.get(GroupService), clock)
    with pytest.raises(CommandError, match="NON_EMPTY_GROUP: group g: it has 1 members"):
        await run(record(1, T0, group="a") + CONSOLE_4)
    assert (stored(database), journal_lines(database)) == ([], [])
