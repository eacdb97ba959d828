"""What handlers share: requests become the structs of the REST doors, whose bounds hold here too."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from kcoord.http.problem import invalid

S = TypeVar("S", bound=msgspec.Struct)


def struct_of(cls: type[S], **fields: Any) -> S:
    """A struct of the REST API. Raises INVALID_REQUEST if a field is out of bounds."""
    try:
        return msgspec.convert(fields, cls)
    except msgspec.ValidationError as error:
        raise invalid(str(error)) from None
