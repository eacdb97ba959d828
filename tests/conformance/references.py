"""References: the string `"$alias.path"` stands for a field of a response that is already known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_REFERENCE = re.compile(r"\$(?P<alias>[A-Za-z_][A-Za-z0-9_-]*)\.(?P<path>.+)", re.DOTALL)


class UnknownReference(Exception):
    """A reference to a response that does not exist (yet), or to a field it does not have."""


def resolve(value: Any, responses: Mapping[str, Mapping[str, Any]]) -> Any:
    """`value` with every reference replaced, keys of objects included. Raises UnknownReference."""
    if isinstance(value, str):
        match = _REFERENCE.fullmatch(value)
        return value if match is None else _look_up(value, match["alias"], match["path"], responses)
    if isinstance(value, Mapping):
        return {resolve(key, responses): resolve(item, responses) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve(item, responses) for item in value]
    return value


def _look_up(reference: str, alias: str, path: str, responses: Mapping[str, Mapping[str, Any]]) -> Any:
    if alias not in responses:
        raise UnknownReference(f"{reference}: there is no response {alias!r} yet")
    found: Any = responses[alias]
    for part in path.split("."):
        try:
            found = found[int(part)] if isinstance(found, list) else found[part]
        except (KeyError, IndexError, ValueError, TypeError):
            raise UnknownReference(f"{reference}: the response has no {part!r} in {found!r}") from None
    return found
