"""The operations of the API as they are declared: what they take, and the act that the audit records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from django.urls import get_resolver

from groups.api.routes import OPERATIONS as OF_MEMBERS
from kcoord.access.rights import Permission
from offsets.api.routes import OPERATIONS as OF_OFFSETS


class Declared(NamedTuple):
    takes: Permission
    audit: str = "request"


def operations() -> dict[str, Declared]:
    """All of them by operation id."""
    endpoints = [operation.endpoint for operation in (*OF_MEMBERS, *OF_OFFSETS)]
    found = {endpoint.operation_id: Declared(endpoint.takes) for endpoint in endpoints}
    return found | dict(_of_views(get_resolver("kcoord.urls").url_patterns))


def _of_views(patterns: Iterable[Any]) -> Iterator[tuple[str, Declared]]:
    for pattern in patterns:
        yield from _of_views(getattr(pattern, "url_patterns", ()))
        view = getattr(getattr(pattern, "callback", None), "cls", None)
        for method in (getattr(view, name, None) for name in ("get", "post", "put", "patch", "delete")):
            if hasattr(method, "takes"):
                yield method.operation_id, Declared(method.takes, method.audit)
