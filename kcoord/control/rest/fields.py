"""Serializers and fields of the control plane that do not coerce types.

Django REST framework's own fields read `"5"` as a number, `5` as a text and `true` as 1, and serializers drop fields
they do not know. These do not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from kcoord.control.rest.labels import MAX_LABEL_NAME, MAX_LABEL_VALUE, MAX_LABELS, name_fault, number_fault
from kcoord.database.paging import DEFAULT_LIMIT, INT64_MAX, MAX_LIMIT
from kcoord.resets.instants import BOUNDS, is_instant

_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII | re.IGNORECASE
)
_DECIMAL = re.compile(r"-?[0-9]{1,19}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses unknown fields."""

    def to_internal_value(self, data: Any) -> Any:
        """The validated fields. Raises ValidationError naming the first unknown field."""
        if isinstance(data, Mapping):
            for name in data:
                if name not in self.fields:
                    known = ", ".join(self.fields)
                    raise serializers.ValidationError({name: [f"no such field; the fields are {known}"]})
        return super().to_internal_value(data)


class Text(serializers.CharField):
    """A JSON string as it is, without NUL and unpaired surrogates."""

    default_error_messages = {"invalid": "must be a string"}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        """The text."""
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Choice(serializers.ChoiceField):
    """One of several texts; the error for any other lists them."""

    def __init__(self, choices: Sequence[str], **kwargs: Any) -> None:
        super().__init__(
            choices, error_messages={"invalid_choice": f'"{{input}}" is not one of {", ".join(choices)}'}, **kwargs
        )

    def to_internal_value(self, data: Any) -> str:
        """The text."""
        if not isinstance(data, str):
            self.fail("invalid_choice", input=data)
        return str(super().to_internal_value(data))


class Number(serializers.IntegerField):
    """A JSON integer, of 64 bits at most."""

    default_error_messages = {"invalid": "must be an integer"}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"max_value": INT64_MAX, **kwargs})

    def to_internal_value(self, data: Any) -> int:
        """The number."""
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return int(data)


class Flag(serializers.BooleanField):
    """A JSON boolean."""

    default_error_messages = {"invalid": "must be true or false"}
    words: Mapping[str, bool] = {}

    def to_internal_value(self, data: Any) -> bool:
        """Whether it is set."""
        if isinstance(data, str) and data in self.words:
            return self.words[data]
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class QueryFlag(Flag):
    """`true` or `false` in a query string."""

    words = {"true": True, "false": False}


@extend_schema_field(
    {
        "anyOf": [
            {"type": "integer", "minimum": 0, "maximum": INT64_MAX},
            {"type": "string", "pattern": "^[0-9]{1,18}$", "description": "The number in decimal."},
        ]
    },
    component_name="Offset",
)
class OffsetInput(Number):
    """An offset: a JSON number, or a decimal string for languages with 53-bit numbers."""

    default_error_messages = {"invalid": "an offset is an integer, or a string with one in decimal"}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_value=0, max_value=INT64_MAX, **kwargs)

    def to_internal_value(self, data: Any) -> int:
        """The number."""
        return super().to_internal_value(int(data) if isinstance(data, str) and _DECIMAL.fullmatch(data) else data)


@extend_schema_field({"type": "string", "format": "date-time"})
class InstantInput(serializers.Field):  # type: ignore[type-arg]
    """An instant in RFC 3339, read as milliseconds since the epoch."""

    default_error_messages = {
        "invalid": "must be an instant in RFC 3339, such as 2026-01-31T12:00:00Z; in a query string write '+' as %2B",
        "beyond": f"must be {BOUNDS}",
    }

    def to_internal_value(self, data: Any) -> int:
        """Milliseconds since the epoch, rounded down."""
        if not isinstance(data, str) or not _RFC3339.fullmatch(data):
            self.fail("invalid")
        try:
            instant = datetime.fromisoformat(data.upper())
        except ValueError:
            self.fail("invalid")
        at = (instant - _EPOCH) // timedelta(milliseconds=1)
        if not is_instant(at):
            self.fail("beyond")
        return at


@extend_schema_field(
    {
        "type": "object",
        "maxProperties": MAX_LABELS,
        "propertyNames": {"minLength": 1, "maxLength": MAX_LABEL_NAME},
        "additionalProperties": {"type": "string", "maxLength": MAX_LABEL_VALUE},
    }
)
class Labels(serializers.DictField):
    """Names and values that users attach to an object."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(child=Text(max_length=MAX_LABEL_VALUE, allow_blank=True), **kwargs)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """The labels. Raises ValidationError naming the label at fault."""
        if isinstance(data, Mapping):
            faults = [number_fault(len(data)), *map(name_fault, data)]
            if fault := next(filter(None, faults), ""):
                raise serializers.ValidationError(fault)
        return super().to_internal_value(data)


@extend_schema_field(
    {
        "type": "object",
        "propertyNames": {"minLength": 1, "maxLength": MAX_LABEL_NAME},
        "additionalProperties": {"type": ["string", "null"], "maxLength": MAX_LABEL_VALUE},
    }
)
class LabelChanges(serializers.DictField):
    """Labels to set, and with null to remove; `kcoord.control.rest.labels.merged` checks what results."""

    def __init__(self, **kwargs: Any) -> None:
        child = Text(max_length=MAX_LABEL_VALUE, allow_blank=True, allow_null=True)
        super().__init__(child=child, **kwargs)


class Limit(serializers.IntegerField):
    """The query parameter `limit`: items of one page."""

    def __init__(self) -> None:
        super().__init__(
            min_value=1,
            max_value=MAX_LIMIT,
            required=False,
            default=DEFAULT_LIMIT,
            help_text="Largest number of items on the page.",
        )


class PageQuery(StrictSerializer):
    """The query parameters of a list."""

    cursor = Text(required=False, help_text="`next_cursor` of the previous page.")
    limit = Limit()


class PeriodQuery(PageQuery):
    """The query parameters of a list that can be limited to a period: `since`, inclusive, and `until`, exclusive."""

    of = "those"
    """What is listed."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """The declared fields, `from` and `to`; the first is a Python keyword and cannot be declared."""
        since, until = f"Only {self.of} at or after this instant.", f"Only {self.of} before this instant."
        return {
            **super().get_fields(),
            "from": InstantInput(required=False, source="since", help_text=since),
            "to": InstantInput(required=False, source="until", help_text=until),
        }
