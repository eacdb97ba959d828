"""A frozen server holds no group for long, and what it writes after the thaw comes too late for nobody.

Frozen, not killed: its connections stay open, its sockets take requests, and it goes on where it stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import httpx
import psycopg
import pytest

from tests.support.freezing import POINTS, Site, seen, site, tcp_postgres
from tests.support.http_members import Answer, HttpMember

pytestmark = [
    pytest.mark.processes,
    pytest.mark.whole("a frozen server at every point of a write; the default freezes one in its short run of chaos"),
]

FROZEN_SECONDS = 3.0
"""How long a server stays frozen after the healthy one has answered; long enough that it knows."""
SESSION_MS = 15_000
"""Far longer than it takes to freeze a server, and the 3 s that it may hold a group then, on a busy machine too."""

FREEZES = int(os.environ.get("FREEZES", "4"))
"""For each patience of a client."""

LATE = (503, "COORDINATOR_NOT_AVAILABLE")


@pytest.fixture
async def servers(request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    with contextlib.ExitStack() as stack:
        tcp = getattr(request, "param", "unix socket") == "tcp"
        async with site(stack.enter_context(tcp_postgres()) if tcp else request.getfixturevalue("database")) as made:
            yield made


each_address = pytest.mark.parametrize("servers", ["unix socket", "tcp"], indirect=True)


@each_address
async def test_a_frozen_server_gives_up_the_groups_it_holds_and_no_member_is_removed(servers: Site) -> None:
    members = [await servers.member(f"g{number}", SESSION_MS) for number in range(4)]
    healthy = [servers.at(servers.healthy, member) for member in members]
    held = members[0]

    async def commit(client: httpx.AsyncClient) -> Answer:
        return await servers.at(servers.victim, held, client).commit(0, 1)

    frozen, backend = await servers.freeze("in_transaction", held.group_id, commit)
    try:
        assert backend is not None
        assert (await servers.keep_trying(healthy[0].heartbeat))["error"] is None, "the group is served"
        assert not await servers.holds(backend)
        # As long as a session lasts, and longer.
        for _ in range(SESSION_MS // 1_000 + 2):
            answers = await asyncio.gather(*(member.heartbeat() for member in healthy))
            assert [status for status, _ in answers] == [200] * len(members), answers
            await asyncio.sleep(1)
    finally:
        servers.thaw()
    assert named(await frozen) == LATE
    for member in members:
        await servers.keep_trying(servers.at(servers.victim, member).heartbeat)
    cursor = await servers.backends.execute("select count(*) from groups_event where kind = 'member_removed'")
    assert await cursor.fetchone() == (0,)


@each_address
async def test_a_commit_that_a_frozen_server_had_undoes_none_of_another_server(servers: Site) -> None:
    for point in POINTS:
        member = await servers.member(point)

        async def commit(client: httpx.AsyncClient, member: HttpMember = member) -> Answer:
            return await servers.at(servers.victim, member, client).commit(0, 5101)

        frozen, _ = await servers.freeze(point, point, commit)
        try:
            await servers.keep_trying(lambda member=member: servers.at(servers.healthy, member).commit(0, 6100))
            await asyncio.sleep(FROZEN_SECONDS)
        finally:
            servers.thaw()
        assert named(await frozen) == LATE, point
        assert await servers.committed(point) == 6100, point
        # It serves as before when it has settled, also the member whose request it refused.
        await servers.keep_trying(lambda member=member: servers.at(servers.victim, member).commit(0, 6101))
        assert await servers.committed(point) == 6101


@pytest.mark.parametrize("patience", [1.0, 3.0])
async def test_a_commit_whose_client_gave_it_up_undoes_none_of_another_server(servers: Site, patience: float) -> None:
    """However early it gives up: the server thaws at any time from then on."""
    chance, undone = Random(7), []
    for number in range(FREEZES):
        point = POINTS[number % len(POINTS)]
        member = await servers.member(f"{point}-{number}")

        async def commit(client: httpx.AsyncClient, member: HttpMember = member) -> Answer:
            return await servers.at(servers.victim, member, client).commit(0, 5101)

        frozen, _ = await servers.freeze(point, member.group_id, commit)
        try:
            await asyncio.sleep(patience)
            healthy = asyncio.create_task(
                servers.keep_trying(lambda member=member: servers.at(servers.healthy, member).commit(0, 6100))
            )
            await asyncio.sleep(chance.uniform(0, 0.4))
        finally:
            servers.thaw()
        await asyncio.gather(frozen, healthy)
        if await servers.committed(member.group_id) != 6100:
            undone.append((point, await frozen, await healthy))
        await servers.keep_trying(lambda member=member: servers.at(servers.victim, member).commit(0, 6101))
    print(f"patience {patience:g} s: {len(undone)} of {FREEZES} freezes turned an acknowledged offset back")
    assert undone == []


async def test_twelve_groups_that_somebody_holds_do_not_hold_up_another(servers: Site) -> None:
    """More than a pool has connections; the holder is ended by nobody, as a program of somebody else's is not."""
    locked = [servers.at(servers.healthy, await servers.member(f"locked-{number}")) for number in range(12)]
    other = servers.at(servers.healthy, await servers.member("other"))
    async with await psycopg.AsyncConnection.connect(servers.database) as holder:
        await holder.execute("select from groups_group where group_id like 'locked-%' for update")
        ended = asyncio.Event()

        async def insist(member: HttpMember) -> set[tuple[int, str | None]]:
            answers = set()
            while not ended.is_set():
                answers.add(named(await member.commit(0, 1)))
            return answers

        waiting = [asyncio.create_task(insist(member)) for member in locked for _ in range(2)]
        await seen(lambda: servers.waits_for(holder), "a commit waits for the holder")
        async with asyncio.timeout(60):  # each would take seconds if it had to wait for a connection
            for _ in range(50):
                assert (await other.heartbeat())[0] == 200
        ended.set()
        assert set().union(*await asyncio.gather(*waiting)) == {LATE}
    assert [(await member.commit(0, 2))[0] for member in locked] == [200] * 12


async def test_no_write_of_a_thawed_server_takes_effect(servers: Site) -> None:
    names = ("leave", "kick", "hold", "join", "delete")
    members = {name: await servers.member(name) for name in names}
    here = servers.victim.url
    joining = {
        "member_id": members["join"].member_id,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "subscription": {"topics": ["other"]}}],
    }
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "groups/leave/leave", {"members": [{"member_id": members["leave"].member_id}]}),
        ("POST", f"groups/kick/members/{members['kick'].member_id}/kick", {"reason": "late"}),
        ("POST", "groups/hold/hold", {"duration_ms": 60_000, "reason": "late"}),
        ("POST", "groups/join/join", joining),
        ("POST", "topics", {"name": "late", "partitions": 1}),
        ("POST", "transactions/late/init", {}),
        ("PATCH", "groups/delete/config", {"consumer.session.timeout.ms": 50_000}),
        ("PATCH", "topics/t", {"partitions": 9}),
    ]

    async def send(client: httpx.AsyncClient) -> Answer:
        answers = await asyncio.gather(
            *(client.request(method, f"{here}/v1/{path}", json=body) for method, path, body in requests)
        )
        refused = {
            (path, *named((answer.status_code, answer.json())))
            for answer, (_, path, _) in zip(answers, requests, strict=True)
        }
        assert refused == {(path, *LATE) for _, path, _ in requests}
        return LATE[0], {"error": LATE[1]}

    frozen, _ = await servers.freeze("in_socket", "g", send)
    try:
        await asyncio.sleep(FROZEN_SECONDS)
    finally:
        servers.thaw()
    assert named(await frozen) == LATE
    for member in members.values():
        assert (await servers.at(servers.healthy, member).heartbeat())[0] == 200
    cursor = await servers.backends.execute(
        "select (select array_agg((name, partitions)::text) from groups_topic),"
        " (select count(*) from offsets_producer),"
        " (select count(*) from groups_groupconfigoverride), (select count(*) from groups_group where held_until > 0)"
    )
    assert await cursor.fetchone() == (["(t,3)"], 0, 0, 0)


def named(answer: Answer) -> tuple[int, str | None]:
    """Status and error of an answer."""
    return answer[0], answer[1].get("error")
