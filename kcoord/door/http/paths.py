"""Group ids in paths, bodies and query strings; transactional ids in paths, by the same rule.

Source: http-api.md 1: 1 to 255 characters, any character but `/` and control characters, percent-encoded
UTF-8 in paths.
Differs from Kafka: any text is a group id there. A longer one, one with `/` or a control character, `.` and `..`
are refused here with INVALID_GROUP_ID: ids are segments of paths, and clients and proxies resolve the dots away.
Differs from Kafka: OffsetCommit and OffsetFetch of one group refuse the empty id, which a path cannot
carry. Where a body or query carries it, the calls that accept it in Kafka accept it (offsets.md 2.1).
"""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote, unquote_to_bytes

from starlette.types import Scope

from kcoord.door.http.problem import invalid
from kcoord.door.http.types import REMEDIES, TRANSACTIONAL_ID_PATTERN
from kcoord.protocol.errors import Error, ProtocolError

MAX_LENGTH = 255
DOTS = (".", "..")
"""Segments that are not names in a path, percent-encoded or not (RFC 3986 5.2.4, WHATWG URL)."""

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_TRANSACTIONAL_ID = re.compile(TRANSACTIONAL_ID_PATTERN)
_PLAIN = re.compile(r"[!-.0-~]{1,255}")
"""Printable ASCII without the slash, which covers nearly every id."""


def check_group_id(group_id: str, *, may_be_empty: bool = False) -> str:
    """`group_id`, if it is valid. Raises INVALID_GROUP_ID saying which rule it breaks."""
    if group_id in DOTS:
        raise ProtocolError(
            Error.INVALID_GROUP_ID, f"the group id must not be {group_id!r}, which has a meaning in paths"
        )
    if _PLAIN.fullmatch(group_id) or (may_be_empty and not group_id):
        return group_id
    if not group_id:
        raise ProtocolError(Error.INVALID_GROUP_ID, "the group id must not be empty; it has 1 to 255 characters")
    if len(group_id) > MAX_LENGTH:
        raise ProtocolError(Error.INVALID_GROUP_ID, f"the group id has {len(group_id)} characters; at most 255")
    if "/" in group_id:
        raise ProtocolError(Error.INVALID_GROUP_ID, "the group id must not contain '/'")
    for character in group_id:
        if unicodedata.category(character) in ("Cc", "Cs"):
            raise ProtocolError(
                Error.INVALID_GROUP_ID,
                f"the group id must not contain control characters, here U+{ord(character):04X}",
            )
    return group_id


def group_id_of(raw: bytes, *, may_be_empty: bool = False) -> str:
    """The group id in a raw path segment. Raises INVALID_GROUP_ID."""
    if _BAD_ESCAPE.search(raw):
        raise ProtocolError(Error.INVALID_GROUP_ID, "the group id is not percent-encoded; write '%' as %25")
    try:
        return check_group_id(unquote_to_bytes(raw).decode("utf-8"), may_be_empty=may_be_empty)
    except UnicodeDecodeError:
        raise ProtocolError(Error.INVALID_GROUP_ID, "the group id is not percent-encoded UTF-8") from None


def transactional_id_of(raw: bytes) -> str:
    """The transactional id in a raw path segment. Raises INVALID_REQUEST."""
    try:
        if _BAD_ESCAPE.search(raw):
            raise ValueError
        found = unquote_to_bytes(raw).decode("utf-8")
    except ValueError:
        raise invalid("transactional_id: not percent-encoded UTF-8", "transactional_id") from None
    if not _TRANSACTIONAL_ID.fullmatch(found):
        raise invalid(f"transactional_id: expected {REMEDIES['transactional_id']}", "transactional_id")
    return found


def raw_path(scope: Scope) -> bytes:
    """The path as it was sent, without root path and query string."""
    raw: bytes | None = scope.get("raw_path")
    if raw is None:  # servers may leave it out
        raw = quote(scope["path"]).encode("ascii")
    root = scope.get("root_path", "").encode()
    return raw[len(root) :] if root and raw.startswith(root) else raw
