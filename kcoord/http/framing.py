"""Where the body of a request ends, and requests that say it in two ways or in none that is valid.

A proxy in front may follow the other way: then it takes the rest of a body for a request that it let through (request
smuggling). Such a request is answered 400 and its connection closed.
Source: RFC 9112, section 3.2, 6.1 and 11.2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

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
