"""Answers are encoded by closures that are made from kio's dataclasses.

What is encoded are mappings by the names of kio's fields. A name that the version does not have is left out, a field
that the mapping does not have gets the schema's default: so a handler says everything once, for all versions. A list of
structs may be given as `Columns`, of all fields in the order of the schema.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import struct
import typing
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from kcoord.wire.reading import FORMS, Columns, Shape, shape_of

Writer = Callable[[bytearray, Any], None]
NO_UUID = bytes(16)


def write(cls: type, value: Mapping[str, Any], out: bytearray) -> None:
    """Append the struct of a kio class."""
    _entity(cls)(out, value)


def write_varint(out: bytearray, value: int) -> None:
    """Append an unsigned varint."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _fixed(form: str) -> Writer:
    pack = struct.Struct(f">{form}").pack

    def writer(out: bytearray, value: Any) -> None:
        out += pack(value)

    return writer


def _length(flexible: bool, form: str) -> Callable[[bytearray, int], None]:
    """Writes a length or a count, -1 for null."""
    if flexible:
        return lambda out, count: write_varint(out, count + 1)
    return _fixed(form)


def _blob(flexible: bool, form: str, nullable: bool) -> Writer:
    length = _length(flexible, form)

    def writer(out: bytearray, value: Any) -> None:
        if value is None:  # older versions of some fields cannot be null
            length(out, -1 if nullable else 0)
            return
        raw = value.encode() if isinstance(value, str) else value
        length(out, len(raw))
        out += raw

    return writer


def _uuid(out: bytearray, value: Any) -> None:
    if value is None:
        out += NO_UUID
    else:
        out += (value if isinstance(value, uuid.UUID) else uuid.UUID(value)).bytes


def _array(item: Writer, flexible: bool, row: struct.Struct | None) -> Writer:
    """`row`: how an entry is packed whose fields all have a fixed size."""
    length = _length(flexible, "i")

    def writer(out: bytearray, value: Any) -> None:
        if value is None:
            length(out, -1)
            return
        if isinstance(value, Columns):
            if row is not None:
                length(out, len(next(iter(value.values()))))
                out += b"".join(map(row.pack, *value.values()))
                return
            value = value.rows()
        length(out, len(value))
        for entry in value:
            item(out, entry)

    return writer


def _row(cls: Any) -> struct.Struct | None:
    """How a struct of fixed size is packed, without tagged fields; None: it is not of fixed size."""
    hints = typing.get_type_hints(cls)
    shapes = [shape_of(field, hints[field.name]) for field in dataclasses.fields(cls)]
    if any(shape.is_array or shape.kind not in FORMS for shape in shapes):
        return None
    return struct.Struct(f">{''.join(FORMS[shape.kind] for shape in shapes)}{'x' if cls.__flexible__ else ''}")


def _nullable_struct(inner: Writer) -> Writer:
    def writer(out: bytearray, value: Any) -> None:
        if value is None:
            out.append(0xFF)
        else:
            out.append(1)
            inner(out, value)

    return writer


def _writer(shape: Shape, flexible: bool) -> Writer:
    item: Writer
    if shape.nested is not None:
        item = _entity(shape.nested)
        if shape.nullable and not shape.is_array:
            item = _nullable_struct(item)
    elif shape.kind == "string":
        item = _blob(flexible, "h", shape.nullable)
    elif shape.kind in ("bytes", "records"):
        item = _blob(flexible, "i", shape.nullable)
    elif shape.kind == "uuid":
        item = _uuid
    else:
        item = _fixed(FORMS[shape.kind])
    if not shape.is_array:
        return item
    return _array(item, flexible, None if shape.nested is None else _row(shape.nested))


def _default(field: dataclasses.Field[Any], shape: Shape) -> Any:
    """What is written where the mapping does not have the field."""
    if field.default is not dataclasses.MISSING:
        default = field.default
        if isinstance(default, datetime.timedelta):
            return round(default.total_seconds() * 1000)
        return default.value if isinstance(default, enum.Enum) else default
    if shape.is_array:
        return None if shape.nullable else ()
    if shape.nullable or shape.kind == "uuid":
        return None
    if shape.nested is not None:
        return {}
    return {"string": "", "bytes": b"", "records": None}.get(shape.kind, 0)


@functools.cache
def _entity(cls: Any) -> Writer:
    hints = typing.get_type_hints(cls)
    plain: list[tuple[str, Writer, Any]] = []
    tags: list[tuple[int, str, Writer, Any]] = []
    flexible = cls.__flexible__
    for field in dataclasses.fields(cls):
        shape = shape_of(field, hints[field.name])
        writer, default = _writer(shape, flexible), _default(field, shape)
        if "tag" in field.metadata:
            tags.append((field.metadata["tag"], field.name, writer, default))
        else:
            plain.append((field.name, writer, default))
    tags.sort(key=lambda entry: entry[0])

    def entity(out: bytearray, value: Mapping[str, Any]) -> None:
        get = value.get
        for name, writer, default in plain:
            writer(out, get(name, default))
        if flexible:
            _tagged(out, tags, value)

    return entity


def _tagged(out: bytearray, tags: list[tuple[int, str, Writer, Any]], value: Mapping[str, Any]) -> None:
    """Append the tagged fields that differ from their defaults."""
    given = [(tag, writer, value[name]) for tag, name, writer, default in tags if value.get(name, default) != default]
    write_varint(out, len(given))
    for tag, writer, content in given:
        raw = bytearray()
        writer(raw, content)
        write_varint(out, tag)
        write_varint(out, len(raw))
        out += raw
