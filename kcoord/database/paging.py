"""Keyset paging: what a list returns, the cursor that continues it, and which names its caller may see.

A cursor holds the sort key of the last item of a page, so a page costs the same at any depth, and items that
are added or removed meanwhile neither repeat nor hide others.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kcoord.protocol.errors import Error, ProtocolError

T = TypeVar("T")
Key = int | str

DEFAULT_LIMIT = 100
MAX_LIMIT = 1_000
INT64_MAX = 2**63 - 1
MAX_CURSOR_LENGTH = 4_096


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items of a list, and the cursor for the rest; `next_cursor` None: no more items."""

    items: Sequence[T]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Visible:
    """The names a caller may see: these, and those that begin with one of these prefixes, except for those denied."""

    names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    denied_names: tuple[str, ...] = ()
    denied_prefixes: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return (name in self.names or name.startswith(self.prefixes)) and not (
            name in self.denied_names or name.startswith(self.denied_prefixes)
        )

    @property
    def unlimited(self) -> bool:
        """Every name may be seen."""
        return "" in self.prefixes and not (self.denied_names or self.denied_prefixes)

    def parameters(self, of: str = "visible") -> dict[str, list[str]]:
        """In the form that statements give to the SQL function `kcoord_sees`; `of` begins the parameters' names."""
        return {
            f"{of}_names": list(self.names),
            f"{of}_prefixes": list(self.prefixes),
            f"{of}_denied": list(self.denied_names),
            f"{of}_denied_prefixes": list(self.denied_prefixes),
        }


EVERYTHING = Visible(prefixes=("",))


def cut(items: Sequence[T], limit: int) -> tuple[Sequence[T], bool]:
    """The first `limit` of items read with a limit one higher, and whether more exist."""
    return items[:limit], len(items) > limit


def encode_cursor(*key: Key) -> str:
    """The cursor that continues after the item with this key."""
    return base64.urlsafe_b64encode(json.dumps(key, separators=(",", ":")).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, *kinds: type[Key]) -> tuple[Key, ...]:
    """The key in a cursor, whose parts have these types.

    Raises ProtocolError INVALID_REQUEST for text that `encode_cursor` did not produce for this list.
    """
    try:
        if len(cursor) > MAX_CURSOR_LENGTH:
            raise ValueError("too long")
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        key = json.loads(raw.decode())
        if not isinstance(key, list) or len(key) != len(kinds):
            raise ValueError("not a key of this list")
        for part, kind in zip(key, kinds, strict=True):
            _check(part, kind)
    except (ValueError, RecursionError, binascii.Error) as error:
        raise ProtocolError(
            Error.INVALID_REQUEST,
            "cursor: not a cursor of this list with these filters; start again without a cursor",
            fields={"field": "cursor"},
        ) from error
    return tuple(key)


def _check(part: object, kind: type[Key]) -> None:
    if type(part) is not kind:
        raise ValueError("not of the type that this list sorts by")
    if isinstance(part, int) and not -INT64_MAX <= part <= INT64_MAX:
        raise ValueError("out of range")
    if isinstance(part, str):
        part.encode()  # a lone surrogate is a UnicodeEncodeError, which is a ValueError
        if "\0" in part:
            raise ValueError("NUL")
