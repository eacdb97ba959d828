"""Request bodies: limits, content type, and strict decoding.

Strict means: unknown fields, wrong types, numbers out of range, a field given twice, NUL characters (Postgres text
cannot hold them) and unpaired surrogates are all refused with INVALID_REQUEST naming the field.
Source: http-api.md 1.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, NoReturn, TypeVar

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kcoord.door.http.problem import RequestRefused, from_error, invalid
from kcoord.door.http.types import REMEDIES

B = TypeVar("B")

LONGEST_ECHO = 300
"""How much of the caller's input an error repeats."""

_SUSPICIOUS = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_AT = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?$", re.DOTALL)
_NAMED = re.compile(r"(?:unknown|required) field `(?P<name>.*)`$", re.DOTALL)
_STEP = re.compile(r"(\w+)|(\[[^\]]*\])")
_CHARSET = re.compile(r"""\s*charset\s*=\s*"?utf-?8"?\s*""", re.IGNORECASE)


class ClientGone(Exception):
    """The connection ended before the request was answered."""


class BodyLimit:
    """ASGI middleware: a body above `max_bytes` is answered 413, whichever handler would have read it."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self.app = app
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            self._check_announced(scope)
            await self.app(scope, self._counting(receive), send)
        except TooLarge as refused:
            await from_error(refused)(scope, receive, send)

    def _check_announced(self, scope: Scope) -> None:
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > self.max_bytes:
                raise TooLarge(self.max_bytes)

    def _counting(self, receive: Receive) -> Receive:
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            if message["type"] == "http.request":
                read += len(message.get("body", b""))
                if read > self.max_bytes:
                    raise TooLarge(self.max_bytes)
            return message

        return counted


class TooLarge(RequestRefused):
    def __init__(self, max_bytes: int) -> None:
        super().__init__(413, f"the body is larger than {max_bytes} bytes; split the request")


def check_content_type(headers: list[tuple[bytes, bytes]]) -> None:
    """Raise 415 unless the body is declared as JSON in UTF-8, without content encoding."""
    content_type = encoding = ""
    for name, value in headers:
        if name == b"content-type":
            content_type = value.decode("latin-1")
        elif name == b"content-encoding":
            encoding = value.decode("latin-1")
    media_type, *parameters = content_type.split(";")
    if media_type.strip().lower() != "application/json":
        given = content_type or "none"
        raise RequestRefused(415, f"the content type is {given!r}; send application/json")
    if not all(_CHARSET.fullmatch(parameter) for parameter in parameters if parameter.strip()):
        raise RequestRefused(
            415,
            f"the content type is {content_type!r}; send application/json without parameters other than charset=utf-8",
        )
    if encoding.strip().lower() not in ("", "identity"):
        raise RequestRefused(415, f"the content encoding is {encoding!r}; send the body unencoded")


def decode(decoder: msgspec.json.Decoder[B], body: bytes) -> B:
    """The struct decoded from `body`. Raises INVALID_REQUEST naming the field at fault."""
    if not body:
        raise invalid("the body is empty; send a JSON object")
    has_escapes = b"\\" in body
    if has_escapes and _SUSPICIOUS.search(body):
        _refuse_unstorable(body)
    try:
        value = decoder.decode(body)
    except msgspec.ValidationError as error:
        _refuse_shape(error, decoder.type)
    except UnicodeDecodeError:
        raise invalid("the body is not UTF-8") from None
    except msgspec.DecodeError as error:
        raise invalid(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise invalid("the body is nested too deeply") from None
    if has_escapes or not (_is_least(body, decoder.type, value) or _has_each_once(body, decoder.type)):
        _refuse_duplicates(body)
    return value


def _refuse_shape(error: msgspec.ValidationError, kind: Any) -> NoReturn:
    found = _AT.match(str(error))
    assert found is not None
    what, path = found["what"], (found["path"] or "").lstrip(".")
    named = _NAMED.search(what)
    known = _fields_at(kind, path) if named and "unknown field" in what else ()
    if named:
        path = f"{path}.{named['name']}".lstrip(".")
    what = what if len(what) <= LONGEST_ECHO else what[:LONGEST_ECHO] + "…"
    path = path[:LONGEST_ECHO]
    remedy = f"the fields are {', '.join(known)}" if known else REMEDIES.get(path.rsplit(".", 1)[-1], "")
    raise invalid(": ".join(filter(None, (path, what))) + (f" ({remedy})" if remedy else ""), path or None) from None


def _fields_at(kind: Any, path: str) -> tuple[str, ...]:
    """The fields of the object at a path such as `topics[0].partitions[1]` of a struct; () if no object is there."""
    types = [msgspec.inspect.type_info(kind)]
    for name, index in _STEP.findall(path):
        types = [inner for found in types for inner in _inside(found, name, is_item=bool(index))]
    structs = [found for found in types if isinstance(found, msgspec.inspect.StructType)]
    return tuple(field.encode_name for field in structs[0].fields) if structs else ()


def _inside(kind: msgspec.inspect.Type, name: str, *, is_item: bool) -> Iterator[msgspec.inspect.Type]:
    """The types that a field or an item of a type may have, without unions."""
    inner: list[msgspec.inspect.Type] = []
    if isinstance(kind, msgspec.inspect.StructType) and not is_item:
        inner = [field.type for field in kind.fields if field.encode_name == name]
    elif isinstance(kind, msgspec.inspect.ListType) and is_item:
        inner = [kind.item_type]
    elif isinstance(kind, msgspec.inspect.DictType) and is_item:
        inner = [kind.value_type]
    for found in inner:
        yield from found.types if isinstance(found, msgspec.inspect.UnionType) else (found,)


def _is_least(body: bytes, kind: Any, value: Any) -> bool:
    """Whether a body without escapes says nothing but what differs from a default, and that once.

    Such a body has the fewest quotation marks that its value needs; anything else in it adds at least two.
    """
    return _omits_defaults(kind) and body.count(b'"') == _ENCODER.encode(value).count(b'"')


_ENCODER = msgspec.json.Encoder()


@cache
def _omits_defaults(kind: Any) -> bool:
    """Whether what has its default is left out of an encoded struct, wherever it is."""
    found = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    waiting, seen = [msgspec.inspect.type_info(kind)] if found else [], set[type]()
    while waiting:
        one = waiting.pop()
        if isinstance(one, msgspec.inspect.StructType) and one.cls not in seen:
            seen.add(one.cls)
            found = found and one.cls.__struct_config__.omit_defaults
            waiting += [field.type for field in one.fields]
        waiting += getattr(one, "types", ())
        waiting += [getattr(one, name) for name in ("item_type", "key_type", "value_type") if hasattr(one, name)]
    return found


def _has_each_once(body: bytes, kind: Any) -> bool:
    """Whether no field of a valid object of `kind`, without escapes, occurs twice: a quick look that may miss it."""
    names = _names_in_quotes(kind)
    if names is None or body.count(b"{") != 1:
        return False
    for name in names:  # noqa: SIM110 - all() takes twice as long
        if body.count(name) > 1:
            return False
    return True


@cache
def _names_in_quotes(kind: Any) -> tuple[bytes, ...] | None:
    """The only names that an object of `kind` may have, as they are in JSON; None: it may have others."""
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return None
    if not kind.__struct_config__.forbid_unknown_fields:
        return None
    return tuple(f'"{name}"'.encode() for name in kind.__struct_encode_fields__)


def _refuse_duplicates(body: bytes) -> None:
    """The decoder silently keeps the last of two equal keys; we cannot guess which one was meant."""
    _DUPLICATES.decode(body.decode())


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        times = Counter(name for name, _ in pairs)
        twice = next(name for name in times if times[name] > 1)
        raise invalid(f"{twice}: the field occurs twice in one object", twice)
    return found


_DUPLICATES = json.JSONDecoder(object_pairs_hook=_pairs)


def _refuse_unstorable(body: bytes) -> None:
    try:
        found = _unstorable(json.loads(body))
    except (ValueError, RecursionError):
        return  # the decoder reports the error
    if found is not None:
        path, what = found
        raise invalid(f"{path}: contains {what}", path)


def _unstorable(tree: Any) -> tuple[str, str] | None:
    """Path of the first string that Postgres cannot store, and what it contains."""
    for path, text in _strings(tree, ""):
        if "\0" in text:
            return _printable(path), "the NUL character (\\u0000), which cannot be stored"
        if any("\ud800" <= character <= "\udfff" for character in text):
            return _printable(path), "an unpaired surrogate, which is not a character"
    return None


def _printable(path: str) -> str:
    return path[:LONGEST_ECHO].encode("utf-8", "backslashreplace").decode("utf-8")


def _strings(tree: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every string of a JSON tree with its path, keys included."""
    if isinstance(tree, str):
        yield path, tree
    elif isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from _strings(item, f"{path}[{index}]")
    elif isinstance(tree, dict):
        for key, item in tree.items():
            inner = f"{path}.{key}".lstrip(".")
            yield path or "body", key
            yield from _strings(item, inner)
