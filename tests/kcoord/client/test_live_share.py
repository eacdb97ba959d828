"""Workers of share groups against a real server: items are settled once, come again, are handed back, never lost."""

from __future__ import annotations

import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, cast

import psycopg
import pytest
from psycopg.types.json import Jsonb

from kcoord.client import (
    Acknowledged,
    ClientTimeoutError,
    IllegalStateError,
    InvalidConfigurationError,
    InvalidRecordStateError,
    Item,
    ShareConsumer,
    WakeupError,
)
from kcoord.client.sources.lists import Lists
from kcoord.client.sources.postgres import PostgresTable
from tests.kcoord.client.blocking import BlockingShareConsumer
from tests.kcoord.client.drivers import DRIVERS, THREADS
from tests.kcoord.client.live import DEADLINE_S, FAST, Service, running_service
from tests.kcoord.client.worker import start_worker_process
from tests.support.database import cloned_database
from tests.support.http_members import make_token
from tests.support.processes import start_server
from tests.support.selection import sample

pytestmark = pytest.mark.processes

LONG_MS = 60_000
SHORT_MS = 1_000
SETTLE = "select kcoord.settle(%s, %s, %s)"


@pytest.fixture(scope="module")
def service(postgres: str) -> Iterator[Service]:
    with cloned_database(postgres) as conninfo, running_service(conninfo) as running:
        yield running


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


class Queue:
    """A topic of one partition with a list as its source, and a share group for it."""

    def __init__(self, service: Service, stack: ExitStack, name: str) -> None:
        self.service, self.stack, self.name = service, stack, name
        self.topic, self.group = service.topic(1), f"group-{secrets.token_hex(4)}"
        self.source: Any = Lists({(self.topic, 0): []})

    def fill(self, count: int) -> None:
        """Add items, whose values are their offsets."""
        end = self.source.end_offset(self.topic, 0)
        self.source.append(self.topic, 0, *range(end, end + count))

    def worker(self, **settings: Any) -> ShareConsumer[int]:
        """A worker that the test closes at its end."""
        kind = ShareConsumer if self.name == THREADS else BlockingShareConsumer
        settings = {"source": self.source, **self.service.share_settings(self.group, **settings)}
        return self.stack.enter_context(cast("ShareConsumer[int]", kind(self.topic, **settings)))

    def rows(self, table: str, columns: str = "count(*)") -> list[Any]:
        """What the database has of this group."""
        query = (
            f"select {columns} from offsets_share{table} x join offsets_sharepartition p on p.id = x.share_partition_id"
        )
        query += " join groups_group g on g.id = p.group_id where g.group_id = %s order by 1"
        with psycopg.connect(self.service.conninfo) as connection:
            return connection.execute(query, [self.group]).fetchall()  # type: ignore[arg-type]

    def unsettled(self) -> bool:
        """Something is locked, or to be delivered again."""
        return self.rows("lock") + self.rows("retry") != [(0,), (0,)]


@pytest.fixture(params=sample(DRIVERS, "workers of share groups on an event loop; the default has their handlers"))
def queue(request: pytest.FixtureRequest, service: Service, stack: ExitStack) -> Queue:
    return Queue(service, stack, request.param)


@pytest.fixture(params=DRIVERS)
def either(request: pytest.FixtureRequest, service: Service, stack: ExitStack) -> Queue:
    return Queue(service, stack, request.param)


@pytest.fixture
def threads(service: Service, stack: ExitStack) -> Queue:
    return Queue(service, stack, THREADS)


def items(worker: ShareConsumer[Any], count: int, **options: Any) -> list[Item[Any]]:
    """The items of the first poll that returns some, of which there must be `count`."""
    found = until(lambda: [item for many in worker.poll(1_000, **options).values() for item in many])
    assert len(found) == count, found
    return found


def until(condition: Callable[[], Any]) -> Any:
    """What `condition` returns once it is true."""
    deadline = time.monotonic() + DEADLINE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition did not come true"
    return found


def counts(found: list[Item[Any]]) -> list[tuple[int, int]]:
    return [(item.offset, item.delivery_count) for item in found]


def test_an_acquire_takes_few_items_by_default(threads: Queue) -> None:
    """Differs from Kafka: 10, not 500, so that others can take what would wait here."""
    threads.fill(11)
    worker, other = threads.worker(), threads.worker()
    assert [len(items(worker, 10)), len(items(other, 1))] == [10, 1]


def test_polls_accept_what_the_poll_before_returned(queue: Queue) -> None:
    queue.fill(5)
    worker, other = queue.worker(), queue.worker()
    assert counts(items(worker, 2, max_records=2)) == [(0, 1), (1, 1)]
    assert counts(items(other, 3)) == [(2, 1), (3, 1), (4, 1)]
    assert worker.poll() == {}
    until(lambda: len(queue.rows("lock", "x.held")) == 1)
    assert [(each.offset, each.error) for each in other.commit()] == [(2, None), (3, None), (4, None)]
    assert not queue.unsettled()
    queue.fill(1)
    assert [item.value for item in items(worker, 1)] == [5]


def test_each_item_is_acknowledged_on_its_own(queue: Queue) -> None:
    """Differs from Kafka: an item that is renewed stays here, and is not returned by a poll again."""
    queue.fill(6)
    worker = queue.worker(acknowledgement_mode="explicit")
    a, b, c, d, e, f = items(worker, 6)
    worker.acknowledge(a)
    worker.acknowledge(b, "release", delay=0, error=ValueError("try again"))
    worker.acknowledge(c, "reject", error="no such address")
    worker.acknowledge(d, "release", delay=timedelta(hours=1))
    worker.acknowledge(e, "renew")
    with pytest.raises(IllegalStateError, match=f"1 items are not acknowledged, the first is {queue.topic}-0 offset 5"):
        worker.poll()
    worker.acknowledge_offset(queue.topic, 0, f.offset)
    with pytest.raises(IllegalStateError, match="offset 5 is not with this worker: it was acknowledged before"):
        worker.acknowledge(f)
    results = worker.commit()
    assert sorted((r.offset, r.type, r.error) for r in results) == [
        (0, "accept", None),
        (1, "release", None),
        (2, "reject", None),
        (3, "release", None),
        (4, "renew", None),
        (5, "accept", None),
    ]
    assert worker.commit() == []
    assert queue.rows("dead", "x.offset, x.cause, x.error") == [(2, "rejected", "no such address")]
    again = items(worker, 1)
    assert (counts(again), again[0].last_error) == ([(1, 2)], "ValueError: try again")
    worker.acknowledge(again[0])
    worker.acknowledge(e)
    assert {r.error for r in worker.commit()} == {None}
    assert queue.rows("retry", "x.held::text") == [("{[3,4)}",)]


def test_an_iteration_accepts_the_item_that_is_left_and_releases_the_one_that_raises(queue: Queue) -> None:
    queue.fill(4)
    worker = queue.worker()

    def work() -> None:
        with worker:
            for item in worker:
                if item.offset == 2:
                    raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        work()
    assert not queue.rows("lock", "x.held")
    other = queue.worker(acknowledgement_mode="explicit", consumer_timeout_ms=2_000)
    with other:
        found = []
        for item in other:
            found.append((item.offset, item.delivery_count, item.last_error))
            other.acknowledge(item)
    assert sorted(found) == [(2, 2, "OSError: broken"), (3, 2, None)]
    assert not queue.unsettled()


def test_mistakes_say_what_to_do(queue: Queue) -> None:
    queue.fill(1)
    worker = queue.worker()
    (item,) = items(worker, 1)
    with pytest.raises(IllegalStateError, match='set acknowledgement_mode="explicit"'):
        worker.acknowledge(item)
    explicit = queue.worker(acknowledgement_mode="explicit")
    with pytest.raises(ValueError, match="type: 'ack': expected one of 'accept', 'release', 'reject', 'renew'"):
        explicit.acknowledge(item, "ack")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="delay: only of an item that is released, not for 'accept'"):
        explicit.acknowledge(item, "accept", delay=3)
    with pytest.raises(ValueError, match="delay: -1: expected 0 to"):
        explicit.acknowledge(item, "release", delay=-1)
    with pytest.raises(TypeError, match="expected an item that this consumer returned"):
        explicit.acknowledge(5)  # type: ignore[arg-type]
    with pytest.raises(IllegalStateError, match="offset 0 is not with this worker"):
        explicit.acknowledge(item)
    with pytest.raises(InvalidConfigurationError, match=r"auto_offset_reset: .*share\.auto\.offset\.reset"):
        queue.worker(auto_offset_reset="latest")
    with pytest.raises(InvalidConfigurationError, match="acknowledgement_mode: 'auto': expected 'implicit' or"):
        queue.worker(acknowledgement_mode="auto")
    with pytest.raises(InvalidConfigurationError, match="concurrency: 0: expected a whole number from 1"):
        queue.worker(concurrency=0)


def test_items_of_a_killed_worker_come_again(threads: Queue) -> None:
    """Whether its lock is over first, or its session."""
    threads.service.configure(threads.group, share_record_lock_duration_ms=SHORT_MS)
    report = {"partitions": [{"partition": 0, "log_start_offset": 0, "log_end_offset": 3}]}
    assert threads.service.request("POST", f"topics/{threads.topic}/watermarks", json=report).status_code == 200
    threads.source = None
    settings = threads.service.share_settings(threads.group)
    victim = threads.stack.enter_context(start_worker_process(threads.topic, settings, "share"))
    victim.wait_for_output("begun 0")
    survivor = threads.worker()
    assert survivor.poll(1_500) == {}, "its locks are renewed while it lives"
    victim.send(signal.SIGKILL)
    assert victim.wait() == -signal.SIGKILL
    found = items(survivor, 3)
    assert (counts(found), found[0].value) == ([(0, 2), (1, 2), (2, 2)], None)
    assert {r.error for r in survivor.commit()} == {None}
    assert not threads.unsettled()


def test_a_lost_lock_is_a_result(queue: Queue) -> None:
    queue.service.configure(queue.group, share_record_lock_duration_ms=SHORT_MS)
    queue.fill(2)
    slow = queue.worker(auto_renew=False)
    items(slow, 2)
    other = queue.worker()
    assert counts(items(other, 2)) == [(0, 2), (1, 2)]
    results = slow.commit()
    assert [(r.offset, r.type, type(r.error)) for r in results] == [
        (0, "accept", InvalidRecordStateError),
        (1, "accept", InvalidRecordStateError),
    ]
    assert "has it now" in str(results[0].error)
    assert {r.error for r in other.commit()} == {None}
    assert not queue.unsettled()


def test_one_lost_item_does_not_take_its_neighbours_along(queue: Queue) -> None:
    """They are settled in one entry, which the service refuses as a whole."""
    queue.fill(4)
    worker = queue.worker()
    items(worker, 4)
    chosen = {"items": [{"topic": queue.topic, "partition": 0, "offsets": [[2, 2]]}]}
    rejected = queue.service.request("POST", f"groups/{queue.group}/items/reject", json=chosen)
    assert rejected.status_code == 200, rejected.text
    results = {r.offset: type(r.error) for r in worker.commit()}
    assert results == {0: type(None), 1: type(None), 2: InvalidRecordStateError, 3: type(None)}
    assert queue.rows("dead", "x.offset") == [(2,)]
    assert not queue.unsettled()


def test_what_takes_longer_than_allowed_is_given_to_another(queue: Queue) -> None:
    """The item is released by the worker itself, which goes on with what it has beside it."""
    queue.fill(2)
    slow = queue.worker(max_processing_s=1, acknowledgement_mode="explicit")
    stuck, _ = items(slow, 2)
    other = queue.worker()
    found = until(lambda: [item for many in other.poll(200).values() for item in many])
    assert found[0].last_error == "not settled within max_processing_s=1"
    slow.acknowledge(stuck, "release", error="too late, and no reason to end")
    with pytest.raises(InvalidRecordStateError):
        slow.locks_for([stuck])
    assert [(r.offset, type(r.error)) for r in slow.commit()] == [(stuck.offset, InvalidRecordStateError)]


def test_handlers_work_on_several_items_at_once(either: Queue) -> None:
    """All are accepted but the one that raises, which comes again; stop ends it after what is in hand."""
    queue = either
    queue.fill(12)
    worker = queue.worker(concurrency=4, max_poll_records=3)
    together, done, failed = threading.Barrier(4, timeout=DEADLINE_S), [], []

    def blocking(item: Item[int]) -> None:
        if item.offset < 4 and item.delivery_count == 1:
            together.wait()
        if item.offset == 5 and item.delivery_count == 1:
            failed.append(item)
            raise OSError("once")
        done.append(item.offset)
        if len(done) == 12:
            worker.stop()

    async def awaited(item: Item[int]) -> None:
        import asyncio

        await asyncio.to_thread(blocking, item)

    worker.run(blocking if queue.name == THREADS else awaited)
    assert sorted(done) == list(range(12))
    assert len(failed) == 1
    worker.close()
    assert not queue.unsettled()


def test_a_handler_that_ends_the_program_ends_the_run(threads: Queue) -> None:
    """Its item is released, and what the others had begun is finished."""
    threads.fill(2)
    worker = threads.worker(concurrency=2)
    begun = threading.Barrier(2, timeout=DEADLINE_S)

    def handle(item: Item[int]) -> None:
        begun.wait()
        if item.offset == 1:
            raise SystemExit("enough")

    with pytest.raises(SystemExit, match="enough"):
        worker.run(handle)
    worker.close()
    assert threads.rows("retry", "x.held::text, x.last_error") == [("{[1,2)}", "SystemExit: enough")]

    async def awaited(item: Item[int]) -> None: ...

    other = threads.worker()
    with pytest.raises(TypeError, match=r"use kcoord\.client\.AsyncShareConsumer"):
        other.run(awaited)


def test_what_was_not_begun_is_handed_back_at_once(queue: Queue) -> None:
    queue.service.configure(queue.group, share_record_lock_duration_ms=LONG_MS)
    queue.fill(5)
    worker = queue.worker(max_poll_records=5)
    with worker:
        for _ in worker:
            worker.stop()
    other = queue.worker()
    assert counts(items(other, 4)) == [(1, 2), (2, 2), (3, 2), (4, 2)]


def test_news_and_callbacks_come_to_the_one_who_waits(queue: Queue) -> None:
    queue.fill(1)
    worker = queue.worker()
    items(worker, 1)
    told: list[list[Acknowledged]] = []
    worker.commit_async(told.append)
    until(lambda: [worker.poll(50), told][1])
    assert [(r.offset, r.error) for r in told[0]] == [(0, None)]
    waker = threading.Timer(0.2, worker.wakeup)
    waker.start()
    with pytest.raises(WakeupError):
        worker.poll(60_000)
    filler = threading.Timer(0.2, queue.fill, [1])
    filler.start()
    assert counts(items(worker, 1)) == [(1, 1)]
    worker.stop()
    assert worker.poll(60_000) == {}
    with pytest.raises(WakeupError, match="told to stop"):
        worker.poll()


def test_a_commit_that_cannot_be_sent_ends_in_time_and_is_sent_again(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer of the first is lost: the second is the same, and succeeds."""
    queue.fill(1)
    worker = queue.worker(retry_backoff_ms=300, retry_backoff_max_ms=300)
    items(worker, 1)
    core: Any = getattr(worker, "consumer", worker)._core
    link = core._settling._link
    sent: list[Any] = []

    class Lossy:
        async def call(self, path: str, body: Any, *arguments: Any, **options: Any) -> Any:
            from kcoord.client.core.http import Disconnected

            answer = await link.call(path, body, *arguments, **options)
            sent.append(answer)
            if len(sent) == 1:
                raise Disconnected("lost")
            return answer

    monkeypatch.setattr(core._settling, "_link", Lossy())
    with pytest.raises(ClientTimeoutError, match="not everything that was acknowledged is answered yet"):
        worker.commit(timeout_ms=100)
    assert [(r.offset, r.error) for r in worker.commit()] == [(0, None)]
    assert [answer.items[0].error_code for answer in sent] == [0, 0]


# With a table

TABLES = """
create schema shop;
create table shop.job (id bigint generated always as identity primary key, amount bigint not null);
create table shop.result (job bigint not null, amount bigint not null, worker text not null);
"""


@pytest.fixture
def shop(service: Service) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(service.conninfo, autocommit=True) as connection:
        connection.execute(TABLES)
        yield connection
        connection.execute("drop schema shop cascade")


def table(service: Service, stack: ExitStack, partitions: int = 1) -> PostgresTable:
    source = PostgresTable(lambda: psycopg.connect(service.conninfo), "shop.job", partitions)
    stack.callback(source.close)
    return source


def test_ids_that_are_missing_are_gaps_and_late_rows_are_none(
    queue: Queue, shop: psycopg.Connection[Any], stack: ExitStack
) -> None:
    """A row that commits after larger ids were handed out would be lost, had it been taken for a gap."""
    queue.source = table(queue.service, stack)
    insert = "insert into shop.job (amount) values (1) returning id"
    shop.execute("insert into shop.job (amount) select 1 from generate_series(1, 30)")
    shop.execute("delete from shop.job where id % 5 <> 0")
    worker = queue.worker(max_poll_records=3)
    seen: list[int] = []
    until(lambda: seen.extend(i.offset for many in worker.poll(200).values() for i in many) or len(seen) == 6)
    assert sorted(seen) == [5, 10, 15, 20, 25, 30]
    with psycopg.connect(queue.service.conninfo) as late:
        late.execute(insert)
        shop.execute(insert)
        assert worker.poll(300) == {}, "nothing is given out above what may still come"
        late.commit()
    until(lambda: seen.extend(i.offset for many in worker.poll(200).values() for i in many) or len(seen) == 8)
    assert sorted(seen[6:]) == [31, 32]
    worker.commit()
    assert not queue.unsettled()


def test_results_and_settlement_are_one_transaction(
    threads: Queue, shop: psycopg.Connection[Any], stack: ExitStack
) -> None:
    """Two workers, of which one rolls back now and then and one loses all locks once: each job has one result."""
    threads.service.configure(threads.group, share_release_backoff_ms=0, share_delivery_count_limit=10)
    jobs = 60
    shop.execute("insert into shop.job (amount) select n from generate_series(1, %s) n", [jobs])
    finished = threading.Event()

    def work(name: str, fails_at: int) -> None:
        with ExitStack() as mine:
            source = table(threads.service, mine)
            database = mine.enter_context(psycopg.connect(threads.service.conninfo))
            settings = threads.service.share_settings(threads.group, acknowledgement_mode="explicit")
            worker = mine.enter_context(ShareConsumer(threads.topic, source=source, **settings))
            turn = 0
            while not finished.is_set():
                batch = [item for many in worker.poll(200, max_records=4).values() for item in many]
                turn += bool(batch)
                if not batch:
                    continue
                try:
                    with database.transaction(), database.cursor() as cursor:
                        member = worker.generation.member_id
                        cursor.execute(SETTLE, (threads.group, member, Jsonb(worker.locks_for(batch))))
                        rows = [(item.offset, item.value["amount"], name) for item in batch]
                        cursor.executemany("insert into shop.result values (%s, %s, %s)", rows)
                        if turn % fails_at == 0:
                            raise OSError("before it commits")
                except OSError as error:
                    for item in batch:
                        worker.acknowledge(item, "release", delay=0, error=error)

    workers = [threading.Thread(target=work, args=(f"w{n}", n)) for n in (2, 3)]
    for worker in workers:
        worker.start()
    try:
        until(lambda: shop.execute("select count(distinct job) from shop.result").fetchone() == (jobs,))
    finally:
        finished.set()
        for worker in workers:
            worker.join(DEADLINE_S)
    found = shop.execute("select count(*), sum(amount), count(distinct worker) from shop.result").fetchone()
    assert found is not None
    assert found[:2] == (jobs, jobs * (jobs + 1) // 2)
    assert not threads.unsettled()
    assert threads.rows("dead") == [(0,)]


def test_a_transaction_that_lost_its_lock_is_undone(threads: Queue, shop: psycopg.Connection[Any]) -> None:
    threads.service.configure(threads.group, share_record_lock_duration_ms=SHORT_MS)
    threads.fill(1)
    slow, other = threads.worker(), threads.worker()
    held = items(slow, 1)
    locks = slow.locks_for(held)
    assert counts(items(other, 1)) == [(0, 2)], "it is not renewed while the transaction has it"

    def work() -> None:
        with shop.transaction():
            shop.execute("insert into shop.result values (0, 0, 'slow')")
            shop.execute(SETTLE, (threads.group, slow.generation.member_id, Jsonb(locks)))

    with pytest.raises(psycopg.Error, match="INVALID_RECORD_STATE") as raised:
        work()
    assert raised.value.sqlstate == "KC121"
    assert shop.execute("select count(*) from shop.result").fetchone() == (0,)


@pytest.mark.whole("a server of its own that is killed under workers and their transactions")
def test_a_killed_server_loses_no_item_and_doubles_no_result(postgres: str) -> None:
    """Four workers, one of them on an event loop; the server is killed twice while rows are inserted and settled."""
    jobs, stop = 400, threading.Event()
    with cloned_database(postgres) as conninfo, ExitStack() as stack:
        server = stack.enter_context(start_server(conninfo, env=FAST))
        server.wait_ready()
        service = Service(server, conninfo, make_token(conninfo))
        shop = stack.enter_context(psycopg.connect(conninfo, autocommit=True))
        shop.execute(TABLES)
        topic = service.topic(2)
        service.configure("jobs", share_record_lock_duration_ms=SHORT_MS, share_delivery_count_limit=10)

        def work(kind: Any) -> None:
            with ExitStack() as mine:
                source = PostgresTable(lambda: psycopg.connect(conninfo), "shop.job", 2)
                mine.callback(source.close)
                database = mine.enter_context(psycopg.connect(conninfo))
                settings = service.share_settings("jobs", acknowledgement_mode="explicit", retry_backoff_ms=50)
                worker = mine.enter_context(kind(topic, source=source, **settings))
                while not stop.is_set():
                    batch = [item for many in worker.poll(200).values() for item in many]
                    try:
                        with database.transaction(), database.cursor() as cursor:
                            if batch:
                                member = worker.generation.member_id
                                cursor.execute(SETTLE, ("jobs", member, Jsonb(worker.locks_for(batch))))
                            rows = [(item.offset, item.value["amount"], str(kind)) for item in batch]
                            cursor.executemany("insert into shop.result values (%s, %s, %s)", rows)
                    except (psycopg.Error, InvalidRecordStateError) as error:
                        if isinstance(error, psycopg.Error) and error.sqlstate != "KC121":
                            raise

        kinds = (ShareConsumer, ShareConsumer, ShareConsumer, BlockingShareConsumer)
        workers = [threading.Thread(target=work, args=(kind,)) for kind in kinds]
        for worker in workers:
            worker.start()

        def results() -> Any:
            return shop.execute(
                "select count(*), count(distinct job), coalesce(sum(amount), 0) from shop.result"
            ).fetchone()

        for killed in range(3):
            shop.execute("insert into shop.job (amount) select n from generate_series(1, %s) n", [jobs])
            until(lambda killed=killed: results()[0] > jobs * killed + 50)  # type: ignore[misc]
            if killed < 2:
                server.send(signal.SIGKILL)
                server.wait()
                server = stack.enter_context(start_server(conninfo, port=server.port or 0, env=FAST))
                server.wait_ready()
        until(lambda: results()[1] == 3 * jobs)
        stop.set()
        for worker in workers:
            worker.join(DEADLINE_S)
        assert results() == (3 * jobs, 3 * jobs, 3 * jobs * (jobs + 1) // 2)
        assert shop.execute("select count(*) from offsets_sharedead").fetchone() == (0,)
        left = shop.execute(
            "select (select count(*) from offsets_sharelock), (select count(*) from offsets_shareretry)"
        )
        assert left.fetchone() == (0, 0)
