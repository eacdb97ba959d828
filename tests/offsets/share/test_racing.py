"""Workers, and a timer that ends their locks all the time, race for the items of one topic: each is done once.

The timer is the harshest there can be: for it every lock is over at once.
"""

from __future__ import annotations

import json
import threading
import uuid
from random import Random
from typing import Any

import psycopg
import pytest

from tests.offsets.commit_function.test_commit_function import wait_until_blocked
from tests.support.placed import misplaced

ITEMS = 300
FAR_MS = 10**15
RULES = "(30000,1000000,2000,0,0,1,earliest)"


EXPIRE = "select kcoord.share_expire(id, 5, %s::text::kcoord.share_rules, %s) from groups_group"


def prepared(database: str) -> int:
    """The key of an empty share group `mailing`, and a topic `job` of two partitions with all items."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "insert into groups_topic (name, topic_id, partitions, labels, created_at) values ('job', %s, 2, '{}', 0)",
            [uuid.uuid4()],
        )
        connection.execute("drop table if exists done")  # the database outlives a test
        connection.execute("create table done (partition integer, item bigint)")
        row = connection.execute(
            "insert into groups_group (group_id, type, state, previous_state, state_since, generation_id,"
            " protocol_type, new_member_added, version, created_at, updated_at)"
            " values ('mailing', 'share', 'Empty', '', 0, 1, 'share', false, 1, 0, 0) returning id"
        ).fetchone()
        assert row is not None
        return int(row[0])


def acquired(connection: psycopg.Connection[Any], member_id: str, most: int) -> list[tuple[int, int, int]]:
    ends = json.dumps({str(partition): ITEMS // 2 for partition in range(2)})
    found = connection.execute(
        'select lock, "partition", "offset" from kcoord.acquire(%s, %s, %s, %s, %s::text::jsonb)',
        ["mailing", member_id, "job", most, ends],
    ).fetchall()
    connection.commit()
    return [(lock, partition, offset) for lock, partition, offset in found]


def settle(connection: psycopg.Connection[Any], member_id: str, found: list[tuple[int, int, int]]) -> bool:
    """Results and settlement in one transaction. False: the locks are lost, and so are the results."""
    items: dict[int, list[list[int]]] = {}
    for lock, _, offset in found:
        items.setdefault(lock, []).append([offset, offset])
    asked = json.dumps([{"lock": lock, "accept": offsets} for lock, offsets in items.items()])
    try:
        connection.execute("select kcoord.settle(%s, %s, %s::text::jsonb)", ["mailing", member_id, asked])
    except psycopg.Error as error:
        connection.rollback()
        if error.sqlstate != "KC121":
            raise
        return False
    for _, partition, offset in found:
        connection.execute("insert into done values (%s, %s)", [partition, offset])
    connection.commit()
    return True


def work(database: str, member_id: str, seed: int, failures: list[Exception], lost: list[int]) -> None:
    random = Random(seed)
    try:
        with psycopg.connect(database) as connection:
            for _ in range(20 * ITEMS):
                found = acquired(connection, member_id, random.randint(1, 12))
                if found and random.random() < 0.8:  # else it dies and never settles
                    lost.append(not settle(connection, member_id, found))
                elif not found and connection.execute("select count(*) >= %s from done", [ITEMS]).fetchone() == (True,):
                    return
                connection.commit()
    except Exception as error:  # noqa: BLE001 - the test tells what a thread met
        failures.append(error)


def expire(database: str, stop: threading.Event) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        while not stop.is_set():
            connection.execute(EXPIRE, [RULES, FAR_MS])
            # A retry is due when it is returned, by the clock of the timer: that of the workers is behind it.
            connection.execute("update offsets_shareretry set not_before = 0 where not_before <> 0")


def test_each_item_is_done_once(database: str) -> None:
    group = prepared(database)
    failures: list[Exception] = []
    lost: list[int] = []
    stop = threading.Event()
    timer = threading.Thread(target=expire, args=(database, stop))
    workers = [threading.Thread(target=work, args=(database, f"w{n}", n, failures, lost)) for n in range(4)]
    for thread in (timer, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    timer.join()
    assert not failures, failures
    with psycopg.connect(database) as connection:
        done = connection.execute("select count(*), count(distinct (partition, item)) from done").fetchone()
        assert done == (ITEMS, ITEMS), "each once"
        left = """
            select count(l.id), count(r.id), count(d.id)
            from offsets_sharepartition p
            left join offsets_sharelock l on l.share_partition_id = p.id
            left join offsets_shareretry r on r.share_partition_id = p.id
            left join offsets_sharedead d on d.share_partition_id = p.id
            where p.group_id = %s
        """
        assert connection.execute(left, [group]).fetchone() == (0, 0, 0), "what is done has no row"
        ends = connection.execute(
            "select partition, next_offset from offsets_sharepartition where group_id = %s order by 1", [group]
        ).fetchall()
        assert misplaced(connection) == {}, "and the journal has each once"
    assert ends == [(0, ITEMS // 2), (1, ITEMS // 2)]
    assert any(lost), "locks were lost, or the race proves nothing"
    assert not all(lost)


REPLAY = "select kcoord.share_replay(%(group)s, array(select id from offsets_sharedead), true, %(rules)s, 0)"
RELEASE = """
select kcoord.share_operate(p.id, '{[0,2)}', 'release', null, %(rules)s, 0)
from offsets_sharepartition p where p.partition = 0
"""
BEGIN_AGAIN = "select kcoord.share_alter(%(group)s, t.topic_id, 0, 0) from groups_topic t"
FORGET = "select kcoord.share_forget(%(group)s, null)"


@pytest.mark.parametrize("change", [BEGIN_AGAIN, FORGET], ids=["begin again", "forget"])
@pytest.mark.parametrize("act", [REPLAY, RELEASE], ids=["replay", "release"])
def test_what_operators_return_is_gone_once_the_partition_begins_again_or_goes(
    database: str, act: str, change: str
) -> None:
    """Of both at the same time: else an item was available twice."""
    parameters = {"group": prepared(database), "rules": RULES}
    with psycopg.connect(database) as operator, psycopg.connect(database, autocommit=True) as other:
        (lock,) = {lock for lock, partition, _ in acquired(operator, "w", ITEMS) if partition == 0}
        items = [{"lock": lock, "release": [[0, 1]], "delay_ms": 10**6}, {"lock": lock, "reject": [[2, 3]]}]
        other.execute("select kcoord.settle('mailing', 'w', %s::text::jsonb)", [json.dumps(items)])
        operator.execute(act, parameters)
        changing = threading.Thread(target=other.execute, args=(change, parameters))
        changing.start()
        wait_until_blocked(database, other.info.backend_pid)
        operator.commit()
        changing.join()
        assert other.execute("select held from offsets_shareretry").fetchall() == []
