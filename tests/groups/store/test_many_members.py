"""Members in bulk: one statement writes many, and a change of one looks at no other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from groups.core.model.types import ClassicGroup, ClassicMember, Members, PendingIds, Protocol
from groups.store import classic
from groups.store.rows import MISSING, Change, Stored, bytea_array, text_array
from groups.store.store import GroupStore
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
awkward = st.sampled_from(("", "NULL", "null", '"', "\\", '\\"', "{", "}", "a,b", " ", "é", "\\x41"))


def member(number: int, *protocols: str) -> ClassicMember:
    return ClassicMember(
        member_id=f"m{number}",
        instance_id=None,
        client_id="c",
        client_host="h",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=tuple(Protocol(name, name.encode() + b'\x00\\"') for name in protocols),
        session_deadline=number,
    )


@given(st.lists(texts | awkward, max_size=5), st.lists(st.binary(max_size=5), max_size=5))
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
def test_arrays_as_texts_are_read_as_they_were(database: str, names: list[str], values: list[bytes]) -> None:
    with psycopg.connect(database) as connection:
        row = connection.execute(
            "select %s::text::text[], %s::text::bytea[]", (text_array(names), bytea_array(values))
        ).fetchone()
    assert row == (names, values)


def statements_sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The statements that are sent from now on."""
    sent: list[bytes] = []
    execute = psycopg.AsyncConnection.execute

    async def noted(connection: Any, query: Any, *arguments: Any, **named: Any) -> Any:
        sent.append(query if isinstance(query, bytes) else str(query).encode())
        return await execute(connection, query, *arguments, **named)

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", noted)
    return sent


async def persisted(store: GroupStore, runtime: Runtime, before: Stored, after: ClassicGroup) -> Stored:
    (kept,) = await runtime.db.transaction(lambda connection: store.persist(connection, [Change(before, after, 1)]))
    assert kept is not None
    return kept


def test_members_are_written_at_once_and_read_in_order(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names: Sequence[tuple[str, ...]] = [(), ("range",), ("range", "a,b"), ('"', "\\", "NULL"), ("", "é")]
    members = [member(number, *names[number % len(names)]) for number in range(50)]

    async def write_and_read() -> tuple[list[bytes], list[ClassicMember]]:
        runtime = Runtime(Config({}), database, VirtualClock(1_000))
        await runtime.db.open()
        store = GroupStore(runtime)
        first = await persisted(store, runtime, MISSING, ClassicGroup("g"))
        sent = statements_sent(monkeypatch)
        await persisted(store, runtime, first, ClassicGroup("g", members=Members(members)))
        found = (await GroupStore(runtime).read("g")).group
        await runtime.db.close()
        assert isinstance(found, ClassicGroup)
        return sent, list(found.members.values())

    sent, found = asyncio.run(write_and_read())
    assert found == members
    assert sum(b"insert into groups_member " in statement for statement in sent) == 1


def test_a_change_of_one_member_looks_at_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ClassicGroup("g", members=Members(member(number, "range") for number in range(5_000)))
    before = replace(before, pending_join=PendingIds({f"p{number}": number for number in range(5_000)}))
    renewed = replace(before.members["m700"], session_deadline=77)
    after = replace(before, members=before.members.put(renewed), pending_join=before.pending_join.drop("p9"))
    looked = []
    monkeypatch.setattr(ClassicMember, "__eq__", lambda one, other: bool(looked.append(one)) or one is other)
    found = classic.changes(before, after)
    assert (found.progressed, found.pending_removed, found.upserted, found.removed) == ((renewed,), ("p9",), (), ())
    assert [found.member_id for found in looked] == ["m700"]
