"""Detects requests that state in two ways where their body ends.

A proxy in front may follow the other one: then it takes the rest of a body for a request that it let through (request
smuggling). Such a request is answered 400 and its connection closed.
Source: RFC 9112, section 6.1 and 11.2.
"""

from __future__ import annotations

from collections.abc import Iterable


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
