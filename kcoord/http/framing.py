"""Where the requests of a connection end, and requests that say it in two ways or in none that is valid.

A parser that is given one piece at a time never reads beyond the request that is being answered: pipelined requests
wait as bytes, and nothing that belongs to the next request can reach the one before. The cutter finds ends; whether the
pieces are valid is the parser's matter, and both must agree where a request ends.

A proxy in front may follow the other way: then it takes the rest of a body for a request that it let through (request
smuggling). Such a request is answered 400 and its connection closed.
Source: RFC 9112, section 2, 3, 6.1, 7.1 and 11.2.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from enum import Enum
from http import HTTPStatus

Headers = list[tuple[bytes, bytes]]

CHUNKED = b"chunked"


class BadFraming(Exception):
    """What a peer sent is not a request, or does not say where it ends; the text is for the peer.

    `ambiguous`: it says so in two ways.
    """

    def __init__(self, detail: str, *, ambiguous: bool = False) -> None:
        super().__init__(detail)
        self.ambiguous = ambiguous


def ambiguous_framing(http_version: bytes, names: Iterable[bytes]) -> str | None:
    """What is wrong with the framing of a request, None if nothing.

    Parameters: `http_version` such as b"1.1"; `names` of its headers, in lower case.
    """
    given = frozenset(names)
    if b"transfer-encoding" not in given:
        return None
    if b"content-length" in given:
        return "the request has both Content-Length and Transfer-Encoding; send one of them"
    if http_version < b"1.1":
        return f"HTTP/{http_version.decode('latin-1')} has no Transfer-Encoding; send Content-Length"
    return None


def body_length(http_version: bytes, headers: Collection[tuple[bytes, bytes]]) -> int | None:
    """Bytes of a request's body, 0 if it has none, None if it comes in chunks.

    Parameters: `headers` with names in lower case, among them at most one Content-Length, which consists of digits.
    Raises BadFraming for any transfer coding but chunked, and unless there is exactly one Host (HTTP/1.0: at most one).
    """
    hosts = length = 0
    codings: list[bytes] = []
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"content-length":
            length = int(value)
        elif name == b"transfer-encoding":
            codings.append(value.lower())
    if hosts > 1 or (hosts == 0 and http_version >= b"1.1"):
        raise BadFraming("the request must have one Host header")
    if not codings:
        return length
    ambiguity = ambiguous_framing(http_version, (name for name, _ in headers))
    if ambiguity is not None:
        raise BadFraming(ambiguity, ambiguous=True)
    if codings != [CHUNKED]:
        raise BadFraming("the only Transfer-Encoding is chunked, and it is sent once")
    return None


_END = b"\r\n\r\n"
_BARE_END = re.compile(rb"\n\r?\n")
"""The end of a head that is not valid, so that it is refused at once."""
_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) HTTP/(1\.[01])\r\n")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[^\r\n]*)?\r\n")
_BLANK_LINE = b"\r\n"
_SPACE = 0x20


class Part(Enum):
    """What the next byte belongs to."""

    HEAD = "the head of a request"
    BODY = "a body of known length"
    SIZE = "the line before a chunk"
    CHUNK = "a chunk"
    TRAILERS = "what follows the last chunk"


class Cutter:
    """The bytes of one connection that were not parsed yet.

    Parameters: `longest` head of a request, line between chunks, or trailers, in bytes; a longer one raises BadFraming.
    """

    __slots__ = ("_at", "_data", "_left", "_longest", "_part", "_searched")

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._data = b""
        self._at = 0
        self._searched = 0
        self._part = Part.HEAD
        self._left = 0
        """Bytes that remain: of the body, of the chunk with its line end, or allowed for trailers."""

    @property
    def in_body(self) -> bool:
        """The head of a request was taken, and its body not all of it."""
        return self._part is not Part.HEAD

    @property
    def waiting(self) -> int:
        """Bytes that have come and were not taken."""
        return len(self._data) - self._at

    def received(self, data: bytes) -> None:
        """This has come."""
        self._data = self._data[self._at :] + data if self.waiting else data
        self._at = 0

    def head(self) -> tuple[bytes, bytes, bytes, bytes] | None:
        """Method, target, version (b"1.1") and the whole head of the next request; None if it has not come.

        Raises BadFraming if this cannot become a request.
        """
        end = self._data.find(_END, self._at + self._searched) + len(_END)
        if end < len(_END):
            found = _BARE_END.search(self._data, self._at + self._searched)
            end = -1 if found is None else found.end()
        size = self.waiting if end < 0 else end - self._at
        if size > self._longest:
            raise BadFraming(f"the head of the request is larger than {self._longest} bytes")
        if size and self._data[self._at] <= _SPACE:
            raise BadFraming("a request begins with its method")
        if end < 0:
            self._searched = max(size - 3, 0)
            return None
        head = self._take(size)
        self._searched = 0
        line = _REQUEST_LINE.match(head)
        if line is None:
            raise BadFraming("the request does not begin with a request line of HTTP/1.1 or 1.0")
        return line[1], line[2], line[3], head

    def take(self, length: int) -> bytes | None:
        """Take the next `length` bytes; None, and nothing is taken, if they have not all come."""
        return None if self.waiting < length else self._take(length)

    def expect(self, length: int | None) -> None:
        """The head that was taken announces a body of `length` bytes, None: in chunks."""
        self._part = Part.SIZE if length is None else Part.BODY if length else Part.HEAD
        self._left = length or 0

    def body(self) -> bytes | None:
        """The next piece of the body; None if it has not come. Pieces of chunked bodies are chunks and lines between.

        Raises BadFraming for a line that is too long, and for one that is not the size of a chunk.
        """
        if self._part is Part.BODY or self._part is Part.CHUNK:
            return self._content()
        end = self._data.find(b"\n", self._at) + 1
        size = end - self._at if end else self.waiting
        if size > (self._left if self._part is Part.TRAILERS else self._longest):
            raise BadFraming(f"a line between chunks, or the trailers, are larger than {self._longest} bytes")
        if not end:
            return None
        line = self._take(size)
        if self._part is Part.SIZE:
            self._begin_chunk(line)
        else:
            self._left -= size
            if line == _BLANK_LINE:
                self._part = Part.HEAD
        return line

    def _content(self) -> bytes | None:
        piece = self._take(min(self._left, self.waiting))
        self._left -= len(piece)
        if not self._left:
            self._part = Part.HEAD if self._part is Part.BODY else Part.SIZE
        return piece or None

    def _begin_chunk(self, line: bytes) -> None:
        found = _CHUNK_SIZE.fullmatch(line)
        if found is None:
            raise BadFraming("the size of a chunk is not a hexadecimal number")
        size = int(found[1], 16)
        self._part = Part.CHUNK if size else Part.TRAILERS
        self._left = size + len(_BLANK_LINE) if size else self._longest

    def _take(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        self._at += size
        return piece


def answer_head(status: int, headers: Headers) -> bytes:
    """The head of an answer."""
    try:
        phrase = HTTPStatus(status).phrase.encode()
    except ValueError:
        phrase = b""
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    return b"HTTP/1.1 %d %b\r\n%b\r\n" % (status, phrase, lines)
