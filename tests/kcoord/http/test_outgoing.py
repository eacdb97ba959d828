"""Requests that the service sends: one deadline for everything, whatever the peer does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from kcoord.door.http import outgoing
from kcoord.door.http.outgoing import AnswerTooLarge, OutgoingError, exchange

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
ENOUGH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345"


@asynccontextmanager
async def peer(answer: Peer) -> AsyncIterator[str]:
    """The address of a peer that answers like this."""

    async def and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        finally:
            writer.close()  # else Python 3.12 waits for it at the end of the server

    server = await asyncio.start_server(and_close, "127.0.0.1")
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/secret"


def piecewise(first: bytes, piece: bytes) -> Peer:
    """Sends `first`, and then a piece every 20 ms without an end."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while not writer.is_closing():
            writer.write(piece)
            await asyncio.sleep(0.02)

    return answer


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def whole(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(ENOUGH)


@pytest.mark.parametrize(
    "answer",
    [
        silent,
        piecewise(b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n"),
        piecewise(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
    ids=["silence", "a line of the head now and then", "a byte of the body now and then"],
)
async def test_one_deadline_ends_it(answer: Peer) -> None:
    async with peer(answer) as url:
        began = time.monotonic()
        with pytest.raises(OutgoingError, match=r"no answer within 0\.3 s") as refusal:
            await exchange("GET", url, 0.3)
    assert time.monotonic() - began >= 0.3
    assert "secret" not in str(refusal.value)


async def test_what_is_answered_in_time() -> None:
    async with peer(whole) as url:
        answer = await exchange("POST", url, 10, content=b"{}")
    assert (answer.status, answer.body) == (200, b"12345")


async def test_a_body_has_a_limit_unless_nobody_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "LARGEST_ANSWER", 4)
    async with peer(whole) as url:
        with pytest.raises(AnswerTooLarge, match="more than 4 bytes"):
            await exchange("GET", url, 10)
        assert (await exchange("GET", url, 10, reads_body=False)).status == 200


async def test_an_address_where_nobody_listens_is_not_repeated_in_the_error() -> None:
    async with peer(whole) as url:
        pass
    with pytest.raises(OutgoingError, match="could not be reached") as refusal:
        await exchange("GET", url, 10)
    assert "secret" not in str(refusal.value)
