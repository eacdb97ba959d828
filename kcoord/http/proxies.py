"""For whom a proxy speaks: the client and the scheme of requests that come through it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware


class Proxies:
    """Parameters: `trusted`, addresses and networks of proxies that are believed; `*`: everybody is."""

    def __init__(self, trusted: Iterable[str]) -> None:
        self._middleware = ProxyHeadersMiddleware(_nothing, list(trusted))

    def tell(self, scope: dict[str, Any]) -> None:
        """Put the client and the scheme that a trusted proxy names into a scope of ASGI."""
        running = self._middleware(scope, None, None)  # type: ignore[arg-type]
        try:
            running.send(None)
        except StopIteration:
            return
        raise AssertionError("the middleware waits")


async def _nothing(*_: object) -> None: ...
