"""Instances of kio's classes with all their fields filled at random, and small."""

from __future__ import annotations

import dataclasses
import datetime
import random
import typing
import uuid
from typing import Any

from kio.schema.errors import ErrorCode

from kcoord.door.kafka.codec import shape_of

RANGES = {
    "int8": (-128, 127),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}


def instance(cls: Any, chance: random.Random) -> Any:
    """An instance of a kio class."""
    hints = typing.get_type_hints(cls)
    return cls(**{field.name: _value(field, hints[field.name], chance) for field in dataclasses.fields(cls)})


def _value(field: Any, hint: Any, chance: random.Random) -> Any:
    shape = shape_of(field, hint)
    is_tagged = "tag" in field.metadata
    if shape.nullable and not is_tagged and chance.random() < 0.3:
        return None
    if shape.is_array:
        return tuple(_item(shape, chance) for _ in range(chance.randint(0, 3)))
    return _item(shape, chance)


def _item(shape: Any, chance: random.Random) -> Any:
    if shape.nested is not None:
        return instance(shape.nested, chance)
    match shape.kind:
        case "string":
            return "".join(chance.choices("abcä-.", k=chance.randint(0, 12)))
        case "bytes" | "records":
            return chance.randbytes(chance.randint(0, 12))
        case "uuid":
            return uuid.UUID(int=chance.getrandbits(127) + 1)
        case "bool":
            return chance.random() < 0.5
        case "float64":
            return chance.random()
        case "error_code":
            return chance.choice(list(ErrorCode))
        case "timedelta_i32":
            return datetime.timedelta(milliseconds=chance.randint(-(2**31), 2**31 - 1))
        case "timedelta_i64":
            return datetime.timedelta(milliseconds=chance.randint(-(10**12), 10**12))
        case "datetime_i64":
            return datetime.datetime.fromtimestamp(chance.randint(0, 2**31), datetime.UTC)
    return chance.randint(*RANGES[shape.kind])
