"""Responses of the control plane, declared once: JSON and the OpenAPI document are made of the same annotations.

A response is a struct, a dataclass or a TypedDict. What it is made of needs only attributes, or keys, of the same
names, so a service's own dataclass is its own declaration.
Source: http-api.md 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache, partial
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints, is_typeddict

import msgspec
from msgspec import Meta

from kcoord.door.http.types import INT32_MAX, INT64_MAX, rfc3339
from kcoord.protocol.errors import Error

Shown = Callable[[Any], Any]

_INSTANT = object()

Instant = Annotated[int, Meta(extra_json_schema={"format": "date-time"}), _INSTANT]
"""Milliseconds since the epoch, shown in RFC 3339."""
Int32 = Annotated[int, Meta(ge=-INT32_MAX - 1, le=INT32_MAX)]
Natural32 = Annotated[int, Meta(ge=0, le=INT32_MAX)]
Natural = Annotated[int, Meta(ge=0)]
Double = Annotated[float, Meta(extra_json_schema={"format": "double"})]
Offset = Annotated[int, Meta(ge=0, le=INT64_MAX)]


PREFIX = "#/components/schemas/"
ANSWERS: set[type] = set()
"""The declarations of all responses, as far as their views were imported."""
SCHEMAS: dict[str, Mapping[str, Any]] = {}
"""Schemas that have a name in the document and are no declaration of their own."""


class Answer(msgspec.Struct):
    """A response, or a part of one."""


@dataclass(frozen=True, slots=True)
class From:
    """What annotates a field that is read elsewhere than under its own name.

    `path`: names of attributes or keys, with dots between them; "": the object itself, for a part of its fields.
    """

    path: str


def doc(text: str) -> Meta:
    """What annotates a field with its description."""
    return Meta(description=text)


def one_of(values: Iterable[str], description: str | None = None) -> Meta:
    """What annotates a text that is one of these."""
    return Meta(description=description, extra_json_schema={"enum": list(values)})


def error_name(description: str) -> Meta:
    """What annotates the name of the error of an item; NONE: it has none."""
    return one_of((error.name for error in Error), description)


NextCursor = Annotated[str | None, doc("Cursor of the next page; null on the last page.")]


def reference(answer: type | str) -> dict[str, str]:
    """What stands in the document for a response's declaration, or for a schema of `SCHEMAS` by its name."""
    if isinstance(answer, str):
        return {"$ref": PREFIX + answer}
    ANSWERS.add(answer)
    return {"$ref": PREFIX + answer.__name__}


def one_kind_of(name: str, field: str, kinds: Mapping[str, type]) -> str:
    """Name of the schema of a response that is declared by one of `kinds`, by what it has in `field`."""
    references = {value: reference(kind)["$ref"] for value, kind in kinds.items()}
    choices = [{"$ref": to} for to in references.values()]
    SCHEMAS[name] = {"oneOf": choices, "discriminator": {"propertyName": field, "mapping": references}}
    return name


def shown(kind: Any, value: Any) -> Any:
    """What is encoded for a value: the fields that its declaration `kind` has, instants as text."""
    show = _shown(kind)
    return value if show is None or value is None else show(value)


def _shown(kind: Any) -> Shown | None:
    """What shows a value of a type; None: it is encoded as it is."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return rfc3339 if _INSTANT in kind.__metadata__ else _shown(parts[0])
    if NoneType in parts:
        return next(filter(None, map(_shown, parts)), None)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        inner = _shown(parts[1])
        return inner and partial(_each_value, inner)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        inner = _shown(parts[0])
        return inner and partial(_each, inner)
    return _fields_of(kind) if _has_fields(kind) else None


def _has_fields(kind: Any) -> bool:
    return isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or is_dataclass(kind) or is_typeddict(kind))


@cache
def _fields_of(kind: type) -> Shown:
    hints = get_type_hints(kind, include_extras=True)
    fields = {name: (_path_of(name, hint), _shown(hint)) for name, hint in hints.items()}
    plain = all(path == [name] and show is None for name, (path, show) in fields.items())
    return partial(_object, kind, fields, plain)


def _path_of(name: str, hint: Any) -> list[str]:
    marks = [mark.path for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, From)]
    return [part for part in (marks[0] if marks else name).split(".") if part]


def _object(kind: type, fields: Mapping[str, tuple[list[str], Shown | None]], plain: bool, value: Any) -> Any:
    if plain and type(value) is kind:
        return value  # there may be hundreds of thousands
    found = {}
    for name, (path, show) in fields.items():
        if is_typeddict(kind) and name not in value:
            continue
        item = value
        for part in path:
            item = None if item is None else item[part] if isinstance(item, Mapping) else getattr(item, part)
        found[name] = item if show is None or item is None else show(item)
    return found


def _each(show: Shown, values: Iterable[Any]) -> list[Any]:
    return [None if value is None else show(value) for value in values]


def _each_value(show: Shown, values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: None if value is None else show(value) for key, value in values.items()}
