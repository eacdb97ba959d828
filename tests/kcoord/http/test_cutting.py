"""Where requests, chunks and heads end, however the bytes arrive; and where bodies do, by their headers."""

from __future__ import annotations

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcoord.door.http.connection import Cutter
from kcoord.door.http.door import BadFraming, body_length

LONGEST = 200
HEADS = {
    "plain": (b"GET /a?b HTTP/1.1\r\nHost: a\r\n\r\n", 0),
    "length": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", 5),
    "chunks": (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", None),
}
BODIES = {
    "plain": b"",
    "length": b"\r\n\r\nx",
    "chunks": b"3;x=y\r\n\r\n\r\r\n00a\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n",
}
CONTENT = {"plain": b"", "length": b"\r\n\r\nx", "chunks": b"\r\n\r0123456789"}


class Reader:
    """Cuts, parses the pieces, and keeps what the parser found; never two requests in one piece."""

    def __init__(self) -> None:
        self.cut = Cutter(LONGEST)
        self.parser = httptools.HttpRequestParser(self)
        self.bodies: list[bytes] = []
        self.complete = 0

    def on_message_begin(self) -> None:
        self.bodies.append(b"")

    def on_body(self, body: bytes) -> None:
        self.bodies[-1] += body

    def on_message_complete(self) -> None:
        self.complete += 1

    def read(self, data: bytes) -> None:
        """Take all that there is."""
        self.cut.received(data)
        while True:
            piece = self._next()
            if piece is None:
                return
            before = self.complete
            self.parser.feed_data(piece)
            assert len(self.bodies) <= before + 1, "the piece has a part of the next request"
            assert (self.complete > before) is (not self.cut.in_body), "cutter and parser see different ends"

    def _next(self) -> bytes | None:
        if self.cut.in_body:
            return self.cut.body()
        found = self.cut.head()
        if found is None:
            return None
        self.cut.expect(next(length for head, length in HEADS.values() if head == found[3]))
        return found[3]


@given(st.lists(st.sampled_from(sorted(HEADS)), min_size=1, max_size=6), st.lists(st.integers(1, 40)))
def test_ends_are_found_however_the_bytes_arrive(names: list[str], sizes: list[int]) -> None:
    stream = b"".join(HEADS[name][0] + BODIES[name] for name in names)
    reader = Reader()
    for size in [*sizes, len(stream)]:
        if not stream:
            break
        part, stream = stream[:size], stream[size:]
        reader.read(part)
    assert reader.complete == len(names)
    assert reader.bodies == [CONTENT[name] for name in names]
    assert reader.cut.waiting == 0


def test_what_belongs_to_the_next_request_waits() -> None:
    cut = Cutter(LONGEST)
    head, second = HEADS["length"][0], HEADS["plain"][0]
    cut.received(head + b"hello" + second)
    assert cut.head() == (b"POST", b"/", b"1.1", head)
    cut.expect(5)
    assert cut.in_body
    assert cut.body() == b"hello"
    assert not cut.in_body
    assert cut.waiting == len(second)


@pytest.mark.parametrize(
    "head",
    [
        b"GARBAGE\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET  / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1 \r\n\r\n",
        b"GET / HTTP/0.9\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"GET / HTTP/1.10\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET /\x01 HTTP/1.1\r\n\r\n",
        b"G\xc3T / HTTP/1.1\r\n\r\n",
        b"GET\t/\tHTTP/1.1\r\n\r\n",
        b"\r\nGET / HTTP/1.1\r\n\r\n",
        b" GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01",
        b"GET / HTTP/1.1\r\nX: " + b"y" * LONGEST,
        b"GET / HTTP/1.1\r\nX: " + b"y" * LONGEST + b"\r\n\r\n",
        b"y" * (LONGEST + 1),
    ],
)
def test_heads_that_are_none(head: bytes) -> None:
    cut = Cutter(LONGEST)
    cut.received(head)
    with pytest.raises(BadFraming):
        cut.head()


@pytest.mark.parametrize(
    "body",
    [
        b"\r\n",
        b"ZZ\r\n",
        b"-1\r\n",
        b"+1\r\n",
        b"0x1\r\n",
        b"1_0\r\n",
        b" 1\r\n",
        b"1 \r\n",
        b"1\n",
        b"1\r\r\n",
        b"1;a\rb\r\n",
        b"f" * 17 + b"\r\n",
        b"1;" + b"x" * LONGEST,
        b"1;" + b"x" * LONGEST + b"\r\n",
        b"0\r\n" + b"X: y\r\n" * LONGEST,
        b"0\r\nX: " + b"y" * LONGEST,
    ],
)
def test_chunks_that_are_none(body: bytes) -> None:
    cut = Cutter(LONGEST)
    cut.received(HEADS["chunks"][0] + body)
    assert cut.head()
    cut.expect(None)
    with pytest.raises(BadFraming):
        for _ in iter(cut.body, None):
            pass


@pytest.mark.parametrize(
    ("version", "headers", "length"),
    [
        (b"1.1", [(b"host", b"a")], 0),
        (b"1.0", [], 0),
        (b"1.1", [(b"content-length", b"17"), (b"host", b"a")], 17),
        (b"1.1", [(b"host", b"a"), (b"transfer-encoding", b"Chunked")], None),
    ],
)
def test_the_length_of_a_body(version: bytes, headers: list[tuple[bytes, bytes]], length: int | None) -> None:
    assert body_length(version, headers) == length


@pytest.mark.parametrize(
    ("version", "headers", "ambiguous"),
    [
        (b"1.1", [], False),
        (b"1.1", [(b"host", b"a"), (b"host", b"a")], False),
        (b"1.0", [(b"host", b"a"), (b"host", b"b")], False),
        (b"1.1", [(b"host", b"a"), (b"transfer-encoding", b"gzip, chunked")], False),
        (b"1.1", [(b"host", b"a"), (b"transfer-encoding", b"identity"), (b"transfer-encoding", b"chunked")], False),
        (b"1.1", [(b"host", b"a"), (b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")], False),
        (b"1.1", [(b"host", b"a"), (b"transfer-encoding", b"chunked"), (b"content-length", b"1")], True),
        (b"1.0", [(b"transfer-encoding", b"chunked")], True),
    ],
)
def test_requests_that_do_not_say_where_they_end(
    version: bytes, headers: list[tuple[bytes, bytes]], ambiguous: bool
) -> None:
    with pytest.raises(BadFraming) as refused:
        body_length(version, headers)
    assert refused.value.ambiguous is ambiguous
