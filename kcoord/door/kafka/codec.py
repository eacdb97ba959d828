"""Requests are decoded, and answers encoded, by closures that are made from kio's dataclasses.

Every length is checked against what is left of the frame before anything is allocated, unknown tagged fields are
skipped. Names, types, versions and nullability come from kio; instants and
durations are integers in ms, errors are their numbers.

What is encoded are mappings by the names of kio's fields. A name that the version does not have is left out, a field
that the mapping does not have gets the schema's default: so a handler says everything once, for all versions. A list of
structs may be given as `Columns`, of all fields in the order of the schema.

Source: KIP-482 (flexible versions, tagged fields).
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

MOST_ITEMS = 100_000
NUL = "\0"
SHOWN = frozenset({"reason"})
"""Strings that are only shown to people."""
CHECKED = frozenset({"group_id", "group_ids", "groups", "groups_names", "committed_metadata"})
"""Strings whose handlers answer U+0000 with an error of the group or partition."""
IN_COLUMNS = frozenset({"OffsetCommitRequestPartition", "TxnOffsetCommitRequestPartition"})
"""kio's classes of which lists are read column by column. They have a text, which is last."""
FORMS = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float64": "d",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
    "error_code": "h",
}
"""How a kind of kio's is packed."""


class Malformed(ValueError):
    """The frame does not contain what its API key and version say."""


class Fields(dict[str, Any]):
    """The fields of a decoded struct. `.get` is for those that not all versions of an API have."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this version has no field {name}") from None


class Columns(dict[str, list[Any]]):
    """A list of structs, as a list of values for each of their fields."""

    __slots__ = ()

    def rows(self) -> list[dict[str, Any]]:
        """The structs."""
        return [dict(zip(self, row, strict=True)) for row in zip(*self.values(), strict=True)]


class Frame(bytes):
    """The bytes of one request, without their size.

    Parameters: `items` how many entries its lists may still have; `unstorable` the first field whose text contains
    U+0000 and for which the whole request is refused, "" if there is none.
    """

    items: int = MOST_ITEMS
    unstorable: str = ""


Reader = Callable[[Frame, int], tuple[Any, int]]
Entries = Callable[[Frame, int, int], tuple[Any, int]]
"""Reads as many entries of a list."""


class Shape(typing.NamedTuple):
    """What a field is: `nested` a kio class or None, `kind` one of `FORMS`, `string`, `bytes`, `records` or `uuid`."""

    nested: type | None
    kind: str
    is_array: bool
    nullable: bool


def shape_of(field: dataclasses.Field[Any], hint: Any) -> Shape:
    """What kio says of a field."""
    options = [hint, *typing.get_args(hint)]
    nested = next((t for o in options for t in (o, *typing.get_args(o)) if dataclasses.is_dataclass(t)), None)
    return Shape(
        typing.cast("type | None", nested),
        field.metadata.get("kafka_type", ""),
        any(typing.get_origin(option) is tuple for option in options),
        type(None) in options,
    )


def varint(data: Frame, at: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits. Raises Malformed."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise Malformed("a varint is too long")
    if value >> 32:
        raise Malformed("a varint is too large")
    return value, at


def read(cls: type, data: Frame, at: int = 0) -> tuple[Fields, int]:
    """The struct of a kio class that begins at `at`, and where it ends. Raises Malformed."""
    try:
        found, end = _entity(cls)[0](data, at)
    except (struct.error, IndexError) as error:
        raise Malformed(f"the request is cut off ({error})") from None
    return found, end


def _size(flexible: bool, form: str) -> Reader:
    if flexible:

        def compact(data: Frame, at: int) -> tuple[int, int]:
            value, at = varint(data, at)
            return value - 1, at

        return compact
    return _fixed(form)


def _fixed(form: str) -> Reader:
    compiled = struct.Struct(f">{form}")
    unpack, width = compiled.unpack_from, compiled.size
    return lambda data, at: (unpack(data, at)[0], at + width)


def _blob(flexible: bool, nullable: bool, form: str, convert: Callable[[bytes], Any]) -> Reader:
    length = _size(flexible, form)

    def reader(data: Frame, at: int) -> tuple[Any, int]:
        count, at = length(data, at)
        if count < 0:
            if nullable and count == -1:
                return None, at
            raise Malformed("a length is negative")
        end = at + count
        if end > len(data):
            raise Malformed("a length exceeds the frame")
        return convert(data[at:end]), end

    return reader


def text(raw: bytes) -> str:
    """A string of a request. What is not UTF-8 becomes U+FFFD, as in Kafka."""
    return raw.decode("utf-8", "replace")


def shown(raw: bytes) -> str:
    """A string that is only shown to people: U+0000, which Postgres cannot store, becomes U+FFFD, too."""
    return text(raw).replace(NUL, "\ufffd")


def _text(name: str, flexible: bool, nullable: bool) -> Reader:
    """The reader of a string.

    Differs from Kafka: U+0000 is kept only as far as the check that refuses it, and replaced in what is only shown.
    Elsewhere the request is refused as a whole.
    """
    if name in SHOWN:
        return _blob(flexible, nullable, "h", shown)
    plain = _blob(flexible, nullable, "h", text)
    if name in CHECKED:
        return plain

    def reader(data: Frame, at: int) -> tuple[Any, int]:
        found, at = plain(data, at)
        if found and NUL in found and not data.unstorable:
            data.unstorable = name
        return found, at

    return reader


def _uuid(data: Frame, at: int) -> tuple[uuid.UUID | None, int]:
    if at + 16 > len(data):
        raise Malformed("a UUID is cut off")
    value = uuid.UUID(bytes=data[at : at + 16])
    return value if value.int else None, at + 16


def _array(item: Reader, least: int, flexible: bool, nullable: bool, *, entries: Entries | None = None) -> Reader:
    length = _size(flexible, "i")
    entries = entries or _entries(item)

    def reader(data: Frame, at: int) -> tuple[Any, int]:
        count, at = length(data, at)
        if count < 0:
            if nullable and count == -1:
                return None, at
            raise Malformed("a count is negative")
        if count * least > len(data) - at:
            raise Malformed("a list has more entries than the frame can hold")
        data.items -= count
        if data.items < 0:
            raise Malformed("the lists of the request have too many entries (kafka.max.request.items)")
        return entries(data, at, count)

    return reader


def _entries(item: Reader) -> Entries:
    def entries(data: Frame, at: int, count: int) -> tuple[list[Any], int]:
        found = []
        for _ in range(count):
            value, at = item(data, at)
            found.append(value)
        return found, at

    return entries


def _columns(cls: Any, item: Reader) -> Entries:
    """The entries of a list of structs, as `Columns`. Mostly no text is sent: then all are as long, and are unpacked
    together.
    """
    names = [field.name for field in dataclasses.fields(cls)]
    form = "".join(FORMS[field.metadata["kafka_type"]] for field in dataclasses.fields(cls)[:-1])
    one_by_one = _entries(item)
    # Then the length of the text, and how many tagged fields there are.
    short = struct.Struct(f">{form}BB" if cls.__flexible__ else f">{form}h")
    texts = {1: "", 0: None} if cls.__flexible__ else {0: "", -1: None}

    def entries(data: Frame, at: int, count: int) -> tuple[Columns, int]:
        end = at + count * short.size
        if count > 0 and end <= len(data):
            columns = list(map(list, zip(*short.iter_unpack(data[at:end]), strict=True)))
            lengths = columns[len(names) - 1]
            if texts.keys() >= set(lengths) and not (cls.__flexible__ and any(columns.pop())):
                columns[-1] = list(map(texts.__getitem__, lengths))
                return Columns(zip(names, columns, strict=True)), end
        rows, at = one_by_one(data, at, count)
        return Columns((name, [row[name] for row in rows]) for name in names), at

    return entries


def _nullable_struct(inner: Reader) -> Reader:
    def reader(data: Frame, at: int) -> tuple[Any, int]:
        return (None, at + 1) if data[at] == 0xFF else inner(data, at + 1)

    return reader


def _field(field: dataclasses.Field[Any], hint: Any, flexible: bool) -> tuple[Reader, int]:
    """The reader of a field and the fewest bytes that it takes."""
    shape = shape_of(field, hint)
    item: Reader
    if shape.nested is not None:
        item, least = _entity(shape.nested)
        if shape.nullable and not shape.is_array:
            item, least = _nullable_struct(item), 1
    elif shape.kind == "string":
        item = _text(field.name, flexible, shape.nullable and not shape.is_array)
        least = 1 if flexible else 2
    elif shape.kind in ("bytes", "records"):
        item = _blob(flexible, shape.nullable and not shape.is_array, "i", bytes)
        least = 1 if flexible else 4
    elif shape.kind == "uuid":
        item, least = _uuid, 16
    else:
        item, least = _fixed(FORMS[shape.kind]), struct.calcsize(f">{FORMS[shape.kind]}")
    if shape.is_array:
        in_columns = shape.nested is not None and shape.nested.__name__ in IN_COLUMNS
        entries = _columns(shape.nested, item) if in_columns else None
        return _array(item, max(least, 1), flexible, shape.nullable, entries=entries), 1 if flexible else 4
    return item, least


@functools.cache
def _entity(cls: Any) -> tuple[Reader, int]:
    """The reader of a kio class and the fewest bytes that it takes."""
    hints = typing.get_type_hints(cls)
    plain: list[tuple[str, Reader]] = []
    tags: dict[int, tuple[str, Reader]] = {}
    flexible, least = cls.__flexible__, 0
    for field in dataclasses.fields(cls):
        reader, fewest = _field(field, hints[field.name], flexible)
        if "tag" in field.metadata:
            tags[field.metadata["tag"]] = field.name, reader
        else:
            plain.append((field.name, reader))
            least += fewest

    def entity(data: Frame, at: int) -> tuple[Fields, int]:
        found = Fields()
        for name, reader in plain:
            found[name], at = reader(data, at)
        return found, _tagged(data, at, tags, found) if flexible else at

    return entity, least + flexible


def _tagged(data: Frame, at: int, tags: dict[int, tuple[str, Reader]], found: Fields) -> int:
    """Read the tagged fields at the end of a struct; returns where they end."""
    count, at = varint(data, at)
    for _ in range(count):
        tag, at = varint(data, at)
        length, at = varint(data, at)
        if at + length > len(data):
            raise Malformed("a tagged field exceeds the frame")
        if tag in tags:
            name, reader = tags[tag]
            found[name], end = reader(data, at)
            if end != at + length:
                raise Malformed("a tagged field has another length than it says")
        at += length
    return at


Writer = Callable[[bytearray, Any], None]
NO_UUID = bytes(16)


def write(cls: type, value: Mapping[str, Any], out: bytearray) -> None:
    """Append the struct of a kio class."""
    _entity_writer(cls)(out, value)


def write_varint(out: bytearray, value: int) -> None:
    """Append an unsigned varint."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _fixed_writer(form: str) -> Writer:
    pack = struct.Struct(f">{form}").pack

    def writer(out: bytearray, value: Any) -> None:
        out += pack(value)

    return writer


def _length(flexible: bool, form: str) -> Callable[[bytearray, int], None]:
    """Writes a length or a count, -1 for null."""
    if flexible:
        return lambda out, count: write_varint(out, count + 1)
    return _fixed_writer(form)


def _blob_writer(flexible: bool, form: str, nullable: bool) -> Writer:
    length = _length(flexible, form)

    def writer(out: bytearray, value: Any) -> None:
        if value is None:  # older versions of some fields cannot be null
            length(out, -1 if nullable else 0)
            return
        raw = value.encode() if isinstance(value, str) else value
        length(out, len(raw))
        out += raw

    return writer


def _uuid_writer(out: bytearray, value: Any) -> None:
    if value is None:
        out += NO_UUID
    else:
        out += (value if isinstance(value, uuid.UUID) else uuid.UUID(value)).bytes


def _array_writer(item: Writer, flexible: bool, row: struct.Struct | None) -> Writer:
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


def _nullable_struct_writer(inner: Writer) -> Writer:
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
        item = _entity_writer(shape.nested)
        if shape.nullable and not shape.is_array:
            item = _nullable_struct_writer(item)
    elif shape.kind == "string":
        item = _blob_writer(flexible, "h", shape.nullable)
    elif shape.kind in ("bytes", "records"):
        item = _blob_writer(flexible, "i", shape.nullable)
    elif shape.kind == "uuid":
        item = _uuid_writer
    else:
        item = _fixed_writer(FORMS[shape.kind])
    if not shape.is_array:
        return item
    return _array_writer(item, flexible, None if shape.nested is None else _row(shape.nested))


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
def _entity_writer(cls: Any) -> Writer:
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
            _tagged_writer(out, tags, value)

    return entity


def _tagged_writer(out: bytearray, tags: list[tuple[int, str, Writer, Any]], value: Mapping[str, Any]) -> None:
    """Append the tagged fields that differ from their defaults."""
    given = [(tag, writer, value[name]) for tag, name, writer, default in tags if value.get(name, default) != default]
    write_varint(out, len(given))
    for tag, writer, content in given:
        raw = bytearray()
        writer(raw, content)
        write_varint(out, tag)
        write_varint(out, len(raw))
        out += raw
