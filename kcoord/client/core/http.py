"""One HTTP request: what is sent, what an answer means. No retries, no state: the callers have those."""

from __future__ import annotations

import contextlib
import email.utils
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from kcoord.client.core import wire
from kcoord.client.core.effects import Request, Response, Send
from kcoord.protocol.errors import BY_CODE, Action, Error, ProblemFields, ProtocolError

T = TypeVar("T")

_GATEWAY_STATUSES = (502, 503, 504)
_NOT_FOUND = 404
LONGEST_TIMEOUT_MS = 999_999_999
"""That the service takes notice of."""
_SUCCESSES = (200, 201)


class Disconnected(ProtocolError):
    """No answer from the service: no connection, no answer in time, or only a proxy answered.

    It counts as COORDINATOR_NOT_AVAILABLE, as classic.md 11.2 treats both alike.
    """

    def __init__(self, detail: str, retry_after_ms: int | None = None) -> None:
        super().__init__(Error.COORDINATOR_NOT_AVAILABLE, detail, retry_after_ms=retry_after_ms)


class NoSuchPath(ProtocolError):
    """404 without an error of the HTTP API: whatever answered does not have this path."""


def _now() -> datetime:
    return datetime.now(UTC)


class Http:
    """Builds requests and decodes answers.

    Parameters: `token` is sent as a bearer token if not empty; `timeout_ms` for connecting, and for an answer beyond
    the time the server may hold the request; `now` the time of day, for answers that name an instant.
    """

    def __init__(self, token: str, timeout_ms: int, now: Callable[[], datetime] = _now) -> None:
        self._timeout_ms = timeout_ms
        self._now = now
        self._headers = {"Accept": "application/json, application/problem+json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    async def get(
        self, url: str, kind: type[T], *, params: Mapping[str, str] | None = None, timeout_ms: int | None = None
    ) -> T:
        """GET; decodes the answer as `kind`. `timeout_ms` overrides the default.

        Raises ProtocolError; Disconnected if no answer arrived.
        """
        query = f"?{urlencode(params)}" if params else ""
        return await self._send("GET", f"{url}{query}", kind, timeout_ms=timeout_ms)

    async def post(
        self, url: str, body: Mapping[str, Any], kind: type[T], *, held_ms: int = 0, timeout_ms: int | None = None
    ) -> T:
        """POST `body` as JSON; decodes the answer as `kind`.

        Parameters: `held_ms` the maximum time the server was asked to hold the request; `timeout_ms` overrides the
        default. Raises ProtocolError; Disconnected if no answer arrived.
        """
        return await self._send("POST", url, kind, msgspec.json.encode(body), held_ms, timeout_ms)

    async def patch(self, url: str, body: Mapping[str, Any], kind: type[T]) -> T:
        """PATCH with `body` as JSON; decodes the answer as `kind`. Raises ProtocolError; Disconnected."""
        return await self._send("PATCH", url, kind, msgspec.json.encode(body))

    async def delete(self, url: str, kind: type[T]) -> T:
        """DELETE; decodes the answer as `kind`. Raises ProtocolError; Disconnected if no answer arrived."""
        return await self._send("DELETE", url, kind)

    async def _send(
        self,
        method: str,
        url: str,
        kind: type[T],
        content: bytes | None = None,
        held_ms: int = 0,
        timeout_ms: int | None = None,
    ) -> T:
        plain_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        plain_s = plain_ms / 1000
        headers = {**self._headers, "X-Request-Timeout-Ms": str(min(plain_ms, LONGEST_TIMEOUT_MS))}
        if content is not None:
            headers["Content-Type"] = "application/json"
        request = Request(method, url, headers, plain_s, plain_s + held_ms / 1000, content)
        response = await Send(request)
        if response.status in _SUCCESSES:
            return _decode(request, response, kind)
        raise self._failure(request, response)

    def _failure(self, request: Request, response: Response) -> ProtocolError:
        """The error for an unsuccessful response."""
        retry_after_ms = self._retry_after_ms(response)
        problem = _problem(response)
        error = _error(problem)
        if problem is None or error is None:
            detail = f"{request.method} {request.url} answered {response.status}{response.via}"
            if response.status in _GATEWAY_STATUSES:
                return Disconnected(detail, retry_after_ms)
            kind = NoSuchPath if response.status == _NOT_FOUND else ProtocolError
            return kind(
                Error.UNKNOWN_SERVER_ERROR,
                f"{detail} without an error of the HTTP API{': ' + problem.detail if problem else '; check the url'}",
                retry_after_ms=retry_after_ms,
            )
        detail = problem.detail or problem.title
        if problem.request_id:
            detail = f"{detail} (request {problem.request_id})"
        fields: ProblemFields = {} if problem.member_id is None else {"member_id": problem.member_id}
        if problem.coordinator is not None:
            named = problem.coordinator
            fields["coordinator"] = {
                "node_id": named.node_id,
                "host": named.host,
                "port": named.port,
                "url": named.url,
            }
        return ProtocolError(error, detail, fields=fields, action=_action(problem), retry_after_ms=retry_after_ms)

    def _retry_after_ms(self, response: Response) -> int | None:
        """Retry-After in ms, given as seconds or as a date; None if it is absent or malformed."""
        text = response.headers.get("retry-after", "").strip()
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            return max(0, int(float(text) * 1000))
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            instant = email.utils.parsedate_to_datetime(text)
            return max(0, int((instant.timestamp() - self._now().timestamp()) * 1000))
        return None


def _decode(request: Request, response: Response, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(response.content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(
            Error.UNKNOWN_SERVER_ERROR,
            f"{request.method} {request.url} returned a response that is not from the HTTP API: {error}; check the url",
        ) from error


def _problem(response: Response) -> wire.Problem | None:
    if "json" not in response.headers.get("content-type", ""):
        return None
    try:
        return msgspec.json.decode(response.content, type=wire.Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _error(problem: wire.Problem | None) -> Error | None:
    if problem is None:
        return None
    if problem.error in Error.__members__:
        return Error[problem.error]
    return BY_CODE.get(problem.error_code) if problem.error_code else None


def _action(problem: wire.Problem) -> Action | None:
    with contextlib.suppress(ValueError):
        return Action(problem.action) if problem.action else None
    return None
