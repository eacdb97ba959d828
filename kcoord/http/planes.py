"""Which plane answers a request: the paths of the data plane, and an application for all others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from kcoord.http import context, paths, problem
from kcoord.http.serving import Operation
from kcoord.protocol.errors import Error

_PLACEHOLDER = re.compile(r"\{\w+\}")


class DataPlane:
    """ASGI middleware, the innermost: operations are called from here, past the router of the application."""

    def __init__(self, app: ASGIApp, operations: Sequence[Operation]) -> None:
        self.app = app
        self._by_end: dict[bytes, list[DataPlanePath]] = {}
        for path in _paths(operations):
            self._by_end.setdefault(path.end, []).append(path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            raw = paths.raw_path(scope)
            for path in self._by_end.get(_end(raw), ()):
                found = path.pattern.fullmatch(raw)
                if found is not None:
                    if found.re.groups:
                        scope["kcoord.path_name"] = found[1]
                    await path.answer(scope, receive, send)
                    return
        await self.app(scope, receive, send)


class DataPlanePath:
    """One path of the data plane with its methods. `end`: its last segment.

    It matches the raw path: an encoded slash inside a name must not look like a different path, and
    any text between prefix and suffix is taken as the name, so that an invalid one gets a proper error.
    """

    def __init__(self, path: str, operations: Mapping[str, Operation]) -> None:
        self.path = path
        self._operations = operations
        around = (re.escape(part) for part in _PLACEHOLDER.split(path, maxsplit=1))
        self.pattern = re.compile("(.*)".join(around).encode(), re.DOTALL)
        self.end = _end(path.encode())
        assert b"{" not in self.end, f"{path} ends with a name"

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the operation for the method, else 405."""
        request = context.current()
        operation = self._operations.get(scope["method"])
        if request is not None:
            request.route = self.path
            request.is_hot = operation is not None and operation.is_hot
        if operation is not None:
            await operation(scope, receive, send)
            return
        allowed = ", ".join(sorted(self._operations))
        refused = problem.response(
            Error.INVALID_REQUEST,
            f"{scope['method']} is not allowed here; use {allowed}",
            status=405,
            extra_headers={"allow": allowed},
        )
        await refused(scope, receive, send)


def _end(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def _paths(operations: Sequence[Operation]) -> list[DataPlanePath]:
    """The paths of some operations; several methods of one path make one."""
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        methods = by_path.setdefault(operation.endpoint.path, {})
        assert operation.endpoint.method not in methods, f"{operation.endpoint.operation_id} is bound twice"
        methods[operation.endpoint.method] = operation
    return [DataPlanePath(path, methods) for path, methods in by_path.items()]
