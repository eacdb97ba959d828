"""A stream ends with the session of its reader, in whichever process that ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator

import httpx
import psycopg
import pytest

from frontend.live import while_signed_in
from tests.support.accounts import PASSWORD, USER, make_user
from tests.support.database import cloned_database
from tests.support.processes import Running, start_server


@pytest.fixture(scope="module")
def site(postgres: str) -> Iterator[tuple[Running, Running, str]]:
    """Two servers of one database, with an account."""
    with cloned_database(postgres) as conninfo, start_server(conninfo) as here, start_server(conninfo) as there:
        make_user(conninfo)
        for server in (here, there):
            server.wait_ready()
        yield here, there, conninfo


async def signed_in(server: Running) -> httpx.AsyncClient:
    """A browser of somebody who has signed in."""
    client = httpx.AsyncClient(base_url=server.url, timeout=60)
    answer = await post(client, "/sign-in", "/sign-in", username=USER, password=PASSWORD)
    assert answer.status_code == 302
    return client


async def post(client: httpx.AsyncClient, page: str, path: str, **form: str) -> httpx.Response:
    """Send a form of a page."""
    token = (await client.get(page)).text.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    return await client.post(path, data={"csrfmiddlewaretoken": token, **form})


async def read_to_its_end(client: httpx.AsyncClient, url: str, begun: asyncio.Event) -> None:
    async with client.stream("GET", f"{url}/live") as answer:
        assert answer.status_code == 200
        async for _line in answer.aiter_lines():
            begun.set()


@pytest.mark.processes
@pytest.mark.parametrize("how", ["signed out", "deactivated"])
async def test_a_stream_at_another_server_ends_at_once(site: tuple[Running, Running, str], how: str) -> None:
    """Long before the quarter of an hour after which any stream ends."""
    here, there, conninfo = site
    reader, begun = await signed_in(here), asyncio.Event()
    reading = asyncio.create_task(read_to_its_end(reader, there.url, begun))
    await asyncio.wait_for(begun.wait(), 60)
    if how == "signed out":
        browser = httpx.AsyncClient(base_url=here.url, cookies=reader.cookies, timeout=60)
        assert (await post(browser, "/password", "/sign-out")).status_code == 302
    else:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute("update auth_user set is_active = false")
    await asyncio.wait_for(reading, 60)
    assert (await reader.get(f"{there.url}/live")).status_code == 401


async def of(*events: str) -> AsyncGenerator[str, None]:
    """Some events, and then no more."""
    for event in events:
        yield event
    await asyncio.Event().wait()


async def test_events_pass_until_the_reader_is_out() -> None:
    changed, is_in = asyncio.Event(), [True, False]

    async def is_signed_in() -> bool:
        return is_in.pop(0)

    stream = while_signed_in(of("a", "b"), changed, is_signed_in, 600)
    assert await anext(stream) == "a"
    changed.set()  # of somebody else: still in
    assert await anext(stream) == "b"
    changed.set()
    async with asyncio.timeout(30):
        assert [event async for event in stream] == []
    assert is_in == []


async def test_a_stream_ends_with_the_time_of_its_session() -> None:
    async def is_signed_in() -> bool:
        raise AssertionError("nothing has changed")

    stream = while_signed_in(of("a"), asyncio.Event(), is_signed_in, 0.2)
    async with asyncio.timeout(30):
        assert [event async for event in stream] == ["a"]
