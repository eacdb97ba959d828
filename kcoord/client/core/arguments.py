"""Checks what users pass in. Calls that another client would take differently fail here, not silently later."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, get_args

from kcoord.client.config import MAX_INT
from kcoord.client.errors import InvalidConfigurationError
from kcoord.client.listener import AsyncConsumerRebalanceListener, ConsumerRebalanceListener
from kcoord.client.types import AcknowledgeType, OffsetAndMetadata, Offsets, TopicPartition

Listener = ConsumerRebalanceListener | AsyncConsumerRebalanceListener

MOST_DELAY_S = MAX_INT // 1000


def milliseconds(name: str, value: Any) -> int:
    """A time in ms. Raises TypeError for one that is not a whole number (others take seconds), ValueError below 0."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name}: {value!r}: expected a whole number of milliseconds")
    if value < 0:
        raise ValueError(f"{name}: {value}: must not be negative")
    return value


def flag(name: str, value: Any, hint: str) -> bool:
    """True or False. Raises TypeError."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}: {value!r}: expected True or False; {hint}")
    return value


def count(name: str, value: Any) -> int:
    """A number of 1 or more. Raises TypeError, ValueError."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name}: {value!r}: expected a whole number")
    if value < 1:
        raise ValueError(f"{name}: {value}: must be 1 or more")
    return value


def offset(value: Any, hint: str = "") -> int:
    """An offset. Raises TypeError, ValueError for a negative one."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"offset: {value!r}: expected a whole number")
    if value < 0:
        raise ValueError(f"offset {value}: an offset is 0 or more{hint}")
    return value


def acknowledgement(value: Any) -> None:
    """A type of acknowledgement. Raises ValueError."""
    known = get_args(AcknowledgeType)
    if value not in known:
        raise ValueError(f"type: {value!r}: expected one of {', '.join(map(repr, known))}")


def delay(kind: str, value: Any) -> int | None:
    """After how many ms an item is given to somebody again: a number of seconds, or a timedelta. Raises TypeError,
    ValueError if it is negative, or not for a release.
    """
    if value is None:
        return None
    if kind != "release":
        raise ValueError(f"delay: only of an item that is released, not for {kind!r}")
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise TypeError(f"delay: {value!r}: expected seconds, or a timedelta")
    if not 0 <= seconds <= MOST_DELAY_S:
        raise ValueError(f"delay: {value}: expected 0 to {MOST_DELAY_S} seconds")
    return round(seconds * 1000)


def is_partition(value: Any) -> bool:
    """`value` is a topic with a partition number, of whichever library."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], int)


def partition_of(value: Any) -> TopicPartition:
    """One partition. Raises TypeError."""
    if not is_partition(value):
        raise TypeError(f"{value!r}: expected one TopicPartition(topic, partition)")
    return TopicPartition(*value)


def partitions_of(values: Any) -> list[TopicPartition]:
    """Several partitions. Raises TypeError, also for a single one."""
    if is_partition(values) or not isinstance(values, Iterable):
        raise TypeError(f"{values!r}: expected a collection of TopicPartition(topic, partition)")
    return [partition_of(value) for value in values]


def offsets_of(values: Any) -> Offsets:
    """Offsets to commit: numbers, or OffsetAndMetadata. Raises TypeError, ValueError for a negative one."""
    if not isinstance(values, Mapping):
        raise TypeError(f"offsets: {values!r}: expected {{TopicPartition: offset or OffsetAndMetadata}}")
    chosen: dict[TopicPartition, OffsetAndMetadata] = {}
    for partition, value in values.items():
        if isinstance(value, tuple):
            committed = OffsetAndMetadata(*value)
        elif isinstance(value, int) and not isinstance(value, bool):
            committed = OffsetAndMetadata(value)
        else:
            raise TypeError(f"{partition}: {value!r}: expected an offset or OffsetAndMetadata")
        if committed.offset < 0:
            raise ValueError(f"{partition}: offset {committed.offset} cannot be committed: it must not be negative")
        chosen[partition_of(partition)] = committed
    return chosen


def times_of(values: Any) -> dict[TopicPartition, int]:
    """Instants in ms since the epoch, by partition. Raises TypeError, ValueError for a negative one."""
    if not isinstance(values, Mapping):
        raise TypeError(f"timestamps: {values!r}: expected {{TopicPartition: milliseconds since the epoch}}")
    return {partition_of(partition): milliseconds(str(partition), value) for partition, value in values.items()}


SOURCE_METHODS = ("fetch", "beginning_offset", "end_offset")
OPTIONAL_SOURCE_METHODS = ("offset_for_time", "truncated", "settled_offset")


def source(value: Any) -> None:
    """Check a record source, if there is one. Raises InvalidConfigurationError, which names the missing methods."""
    if value is None:
        return
    if isinstance(value, type):
        raise InvalidConfigurationError("source", f"{value.__name__} is a class: pass an instance of it")
    missing = [name for name in SOURCE_METHODS if not callable(getattr(value, name, None))]
    if missing:
        raise InvalidConfigurationError(
            "source", f"{type(value).__name__} is not a record source: it has no method {', '.join(missing)}"
        )


def plain_source(value: Any) -> None:
    """Check that a source has no asynchronous methods. Raises InvalidConfigurationError, which names the first."""
    for name in (*SOURCE_METHODS, *OPTIONAL_SOURCE_METHODS):
        if inspect.iscoroutinefunction(getattr(value, name, None)):
            raise InvalidConfigurationError(
                "source", f"{type(value).__name__}.{name} is asynchronous: use kcoord.client.AsyncConsumer"
            )


def topics_of(values: Any) -> list[str]:
    """Names of topics; one name counts as a list of it. Raises TypeError."""
    names = [values] if isinstance(values, str) else list(values)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"topics: {name!r}: expected names of topics; settings are given as keyword arguments")
    return names


def listener_of(pattern: Any, listener: Any) -> tuple[str | None, Listener | None]:
    """Pattern and listener of `subscribe`; the listener may also come second, as in Java. Raises TypeError."""
    if isinstance(pattern, Listener):
        if listener is not None:
            raise TypeError("pattern: expected a regular expression; two listeners were given")
        pattern, listener = None, pattern
    if pattern is not None and not isinstance(pattern, str):
        raise TypeError(f"pattern: {pattern!r}: expected a regular expression as a string")
    if listener is not None and not isinstance(listener, Listener):
        raise TypeError(f"listener: {listener!r}: expected a subclass of kcoord.client.ConsumerRebalanceListener")
    return pattern, listener
