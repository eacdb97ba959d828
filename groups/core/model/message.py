"""The decorator of commands and replies: values of which every request makes one or two."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def message(kind: type[T]) -> type[T]:
    """A dataclass that is frozen for the type checker only, with a hash of its fields.

    To make a frozen one takes a call for each field: 1.9 µs for a consumer heartbeat with its 16 fields, 0.5 µs so.
    """
    return dataclass(slots=True, unsafe_hash=True)(kind)
