"""docs/examples/billing.py, killed fifty times in each protocol at random points, bills every order exactly once."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.support.journal import assert_journal_agrees, journal_lines
from tests.support.processes import Running, start, start_server

pytestmark = [pytest.mark.processes, pytest.mark.whole("fifty kills for each protocol")]

PROGRAM = Path(__file__).resolve().parent.parent.parent / "docs" / "examples" / "billing.py"

KILLS = 50
WORKERS = 4
PARTITIONS = 6
VICTIMS = (1, 2, 3)
"""So many are killed in one round, within some milliseconds."""

ORDERS_A_ROUND = 100
PATIENCE_S = 1.5
"""Of a round with orders being billed. Then the kills hit a group that is still rebalancing."""

KILLING_S = 180.0
SETTLING_S = 60.0
"""What ends a test that hangs; on two idle cores both parts together take less than 30 s."""

SETTINGS = {
    "KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 0,
    "KCOORD_GROUP_MIN_SESSION_TIMEOUT_MS": 100,
    "KCOORD_GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS": 100,
    "KCOORD_GROUP_CONSUMER_SESSION_TIMEOUT_MS": 300,
    "KCOORD_GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS": 50,
    "KCOORD_GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS": 100,
}
WORKER: dict[str, dict[str, Any]] = {
    "classic": {"session_timeout_ms": 300, "heartbeat_interval_ms": 100, "max_poll_interval_ms": 5_000},
    "consumer": {"group_protocol": "consumer", "max_poll_interval_ms": 5_000},
}
COMMON = {"max_poll_records": 40, "fetch_wait_ms": 10, "retry_backoff_ms": 20, "retry_backoff_max_ms": 100}

SCHEMA = """
drop schema if exists shop cascade;
create schema shop;
create table shop.orders (partition integer, "offset" bigint, customer text, amount integer,
                          primary key (partition, "offset"));
create table shop.invoice_lines (partition integer, "offset" bigint, customer text, amount integer);
create table shop.balances (customer text primary key, amount bigint);
"""
SHOP_AFTER = "drop schema shop cascade"


class Shop:
    """Orders come in, and are billed by whoever does."""

    def __init__(self, connection: psycopg.Connection[Any], random: Random) -> None:
        self._connection = connection
        self._random = random
        self.orders = 0
        connection.execute(SCHEMA)

    def take_orders(self) -> None:
        """Some more, at the end of every partition."""
        rows = [
            (partition, self.orders + n, f"c{self._random.randrange(40)}", self._random.randrange(1, 100))
            for partition in range(PARTITIONS)
            for n in range(ORDERS_A_ROUND)
        ]
        self._connection.cursor().executemany("insert into shop.orders values (%s, %s, %s, %s)", rows)
        self.orders += ORDERS_A_ROUND

    def billed(self) -> int:
        """How many invoice lines there are."""
        return self._count("select count(*) from shop.invoice_lines")

    def is_written_by(self, name: str) -> bool:
        """The worker of this name is inside a transaction."""
        query = "select count(*) from pg_stat_activity where application_name = %s and xact_start is not null"
        row = self._connection.execute(query, (name,)).fetchone()
        return row is not None and row[0] > 0

    def committed(self) -> dict[int, int]:
        """The committed offsets."""
        return dict(self._connection.execute("select partition, committed_offset from kcoord.fetch_offsets('billing')"))

    def assert_billed_exactly_once(self) -> None:
        """Every order has one line, no line is without an order, and balances are the sums."""
        wrong = self._connection.execute(
            'select partition, "offset", count(l.customer) from shop.orders o'
            ' left join shop.invoice_lines l using (partition, "offset")'
            ' group by partition, "offset" having count(l.customer) <> 1 order by 1, 2 limit 20'
        ).fetchall()
        assert wrong == [], "(partition, offset, times billed)"
        assert self.billed() == self.orders * PARTITIONS
        sums = "select customer, sum(amount) from shop.orders group by 1 order by 1"
        balances = "select customer, amount from shop.balances order by 1"
        assert self._connection.execute(balances).fetchall() == self._connection.execute(sums).fetchall()

    def _count(self, query: str) -> int:
        row = self._connection.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture
def server(database: str) -> Iterator[Running]:
    """A server whose sessions are short."""
    with start_server(database, env=SETTINGS) as server:
        server.wait_ready()
        yield server


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_fifty_kills_bill_every_order_exactly_once(server: Running, database: str, token: str, protocol: str) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    random = Random(seed)
    headers = {"Authorization": f"Bearer {token}"}
    made = httpx.post(f"{server.url}/v1/topics", json={"name": "orders", "partitions": PARTITIONS}, headers=headers)
    assert made.status_code == 201, made.text
    settings = json.dumps({**COMMON, **WORKER[protocol], "url": server.url, "token": token})
    with psycopg.connect(database, autocommit=True) as connection, ExitStack() as workers:
        shop = Shop(connection, random)
        try:
            crew = Crew(workers, random, database, settings)
            kill_while_orders_come_in(crew, shop, random)
            finish(crew, shop)
            shop.assert_billed_exactly_once()
        finally:
            connection.execute(SHOP_AFTER)
    assert crew.died_by_themselves == [], "\n".join(crew.died_by_themselves)
    assert_journal_agrees(database)
    lines = journal_lines(database)
    generations = {line["generation_id"] for line in lines}
    members = Counter(line["member_id"] for line in lines)
    print(f"{shop.orders * PARTITIONS} orders, {len(generations)} generations, {len(members)} members committed")
    assert len(generations) > 10, "the group did not rebalance enough"
    assert len(members) > 10, "too few lived to commit anything"


class Crew:
    """Workers that are killed again and again, each replaced at once."""

    def __init__(self, workers: ExitStack, random: Random, database: str, settings: str) -> None:
        self._workers = workers
        self._random = random
        self._database = database
        self._settings = settings
        self._births = 0
        self.died_by_themselves: list[str] = []
        self.kills = 0
        self.in_transaction = 0
        self._living = [self._birth() for _ in range(WORKERS)]

    def _birth(self) -> tuple[str, Running]:
        self._births += 1
        name = f"billing-{self._births}"
        conninfo = make_conninfo(self._database, application_name=name)
        started = start(name, [str(PROGRAM), conninfo, self._settings], None, forked=True)
        return name, self._workers.enter_context(started)

    def kill_some(self, shop: Shop) -> None:
        """kill -9 for some of them, and others in their place."""
        self.replace_the_dead()
        for slot in self._random.sample(range(WORKERS), self._random.choice(VICTIMS)):
            time.sleep(self._random.uniform(0.0, 0.03))
            name, worker = self._living[slot]
            self.in_transaction += shop.is_written_by(name)
            worker.kill()
            worker.close()
            self.kills += 1
            self._living[slot] = self._birth()

    def replace_the_dead(self) -> None:
        """Nobody dies by himself here; who does is remembered with what it wrote."""
        for slot, (_, worker) in enumerate(self._living):
            if worker.popen.poll() is not None:
                self.died_by_themselves.append(worker.output)
                self._living[slot] = self._birth()


def kill_while_orders_come_in(crew: Crew, shop: Shop, random: Random) -> None:
    """Rounds: orders come in, some of them are billed, and then the kills."""
    deadline = time.monotonic() + KILLING_S
    while crew.kills < KILLS:
        assert time.monotonic() < deadline, f"only {crew.kills} kills"
        shop.take_orders()
        enough = shop.billed() + random.randrange(1, 300)
        patience = time.monotonic() + PATIENCE_S
        while shop.billed() < enough and time.monotonic() < patience:
            time.sleep(0.005)
        crew.kill_some(shop)
    print(f"{shop.billed()} orders billed among {crew.kills} kills, {crew.in_transaction} of them inside a transaction")
    assert crew.in_transaction >= KILLS // 10, "the kills hit nothing but joins"


def finish(crew: Crew, shop: Shop) -> None:
    """Let them come to the end of all orders."""
    deadline = time.monotonic() + SETTLING_S
    ends = dict.fromkeys(range(PARTITIONS), shop.orders)
    while shop.committed() != ends:
        crew.replace_the_dead()
        assert time.monotonic() < deadline, f"committed {shop.committed()}, not {shop.orders} each"
        time.sleep(0.05)
