"""What `kcoord.acquire` and `kcoord.settle` refuse, and who may call them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.offsets.share.test_racing import acquired, prepared

Connection = psycopg.Connection[Any]


@pytest.fixture
def connection(database: str) -> Iterator[Connection]:
    prepared(database)
    with psycopg.connect(database) as found:
        yield found


def refusal(connection: Connection, call: str, *parameters: object) -> str:
    with pytest.raises(psycopg.Error) as raised:
        connection.execute(call, parameters)
    connection.rollback()
    return raised.value.sqlstate or ""


def settled(connection: Connection, member_id: str, *items: object) -> str:
    call = "select kcoord.settle('mailing', %s, %s::text::jsonb)"
    return refusal(connection, call, member_id, json.dumps(items))


def test_what_is_asked_must_make_sense(connection: Connection) -> None:
    acquire = "select kcoord.acquire(%s, %s, %s, %s)"
    assert refusal(connection, acquire, "nobody", "w", "job", 1) == "KC069"
    assert refusal(connection, acquire, "mailing", "", "job", 1) == "KC042"
    assert refusal(connection, acquire, "mailing", "w", "nothing", 1) == "KC003"
    assert refusal(connection, acquire, "mailing", "w", "job", 0) == "KC042"
    settle = "select kcoord.settle(%s, %s, %s::text::jsonb)"
    assert refusal(connection, settle, "nobody", "w", '[{"lock": 1, "accept": [[0, 0]]}]') == "KC069"
    assert refusal(connection, settle, "mailing", None, '[{"lock": 1, "accept": [[0, 0]]}]') == "KC042"


def test_only_the_holder_settles_what_it_holds_and_once(connection: Connection) -> None:
    found = acquired(connection, "w", 3)
    lock, offsets = found[0][0], [[offset, offset] for _, _, offset in found]
    assert settled(connection, "v", {"lock": lock, "accept": offsets}) == "KC121"
    assert settled(connection, "", {"lock": lock, "accept": offsets}) == "KC042"
    assert settled(connection, "w", {"lock": lock, "accept": [[99, 99]]}) == "KC121"
    assert settled(connection, "w", {"lock": lock, "accept": offsets[:1], "reject": offsets[:1]}) == "KC042"
    assert settled(connection, "w", {"lock": lock, "accept": [*offsets, offsets[0]]}) == "KC042"
    assert settled(connection, "w", {"lock": lock}) == "KC042"
    assert settled(connection, "w", {"lock": lock, "accept": "all"}) == "KC042"
    wrong = json.dumps([{"lock": lock, "accepted": offsets}])
    with pytest.raises(psycopg.Error, match=r"items\[0\]\.accepted is unknown"):
        connection.execute("select kcoord.settle('mailing', 'w', %s::text::jsonb)", [wrong])
    connection.rollback()
    assert settled(connection, "w") == "KC042"
    good = json.dumps([{"lock": lock, "accept": offsets}])
    connection.execute("select kcoord.settle('mailing', 'w', %s::text::jsonb)", [good])
    connection.commit()
    assert settled(connection, "w", {"lock": lock, "accept": offsets}) == "KC121"


def test_a_rolled_back_settlement_leaves_the_lock(connection: Connection) -> None:
    ((lock, _, offset),) = acquired(connection, "w", 1)
    good = json.dumps([{"lock": lock, "accept": [[offset, offset]]}])
    for _ in range(2):
        connection.execute("select kcoord.settle('mailing', 'w', %s::text::jsonb)", [good])
        connection.rollback()


def test_nobody_may_call_them_unless_told(connection: Connection) -> None:
    named = "kcoord.acquire(text,text,text,integer,jsonb)", "kcoord.settle(text,text,jsonb)"
    for function in named:
        row = connection.execute("select has_function_privilege('public', %s, 'execute')", [function]).fetchone()
        assert row == (False,)
