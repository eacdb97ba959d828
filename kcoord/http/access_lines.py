"""The access log: one line for each request, but of successful hot calls only a sample."""

from __future__ import annotations

import structlog

from kcoord.http.context import RequestContext

log = structlog.get_logger("kcoord.access_log")

QUIET_ROUTES = frozenset({"/livez", "/readyz", "/metrics"})
"""Routes that machines request every few seconds: logged at level debug."""


class AccessLines:
    """Writes the lines of answered requests.

    Parameters: of `one_hot_of` successful calls that members make all the time one has a line; 0: none.
    """

    def __init__(self, one_hot_of: int = 1) -> None:
        self._one_hot_of = one_hot_of
        self._hot = 0

    def skips(self, request: RequestContext) -> bool:
        """No line is written for this request, the next one of its kind."""
        if not request.is_hot or request.status >= 400:
            return False
        self._hot += 1
        return self._one_hot_of == 0 or self._hot % self._one_hot_of != 0

    @staticmethod
    def write(method: str, path: bytes, request: RequestContext, seconds: float) -> None:
        """The line of a request, which is the current one. `path` as it was sent."""
        write = log.debug if request.route in QUIET_ROUTES else log.info
        write(
            "request",
            method=method,
            path=path.decode("latin-1"),
            status=request.status,
            ms=round(seconds * 1000, 1),
            error=request.error,
        )
