"""One HTTP request: what is sent, what an answer means. No retries, no state: the callers have those."""

from __future__ import annotations

import contextlib
import email.utils
import time
from collections.abc import Mapping
from typing import Any, TypeVar

import httpx
import msgspec

from kcoord.client import wire
from kcoord.client.proxies import EnvironmentProxies, via
from kcoord.protocol.errors import BY_CODE, Action, Error, ProtocolError

T = TypeVar("T")

KEEPALIVE_S = 4.0

_GATEWAY_STATUSES = (502, 503, 504)


class Disconnected(ProtocolError):
    """No answer from the service: no connection, no answer in time, or only a proxy answered.

    It counts as COORDINATOR_NOT_AVAILABLE, as classic.md 11.2 treats both alike.
    """

    def __init__(self, detail: str, retry_after_ms: int | None = None) -> None:
        super().__init__(Error.COORDINATOR_NOT_AVAILABLE, detail, retry_after_ms=retry_after_ms)


def make_client() -> httpx.Client:
    """A client that goes through the proxies of the environment, except to loopback."""
    # Shorter than servers keep idle connections, so that a request rarely meets one that is being closed.
    return httpx.Client(transport=EnvironmentProxies(httpx.Limits(keepalive_expiry=KEEPALIVE_S)))


class Http:
    """Sends requests and decodes answers. Safe to use from several threads.

    Parameters: `token` is sent as a bearer token if not empty; `timeout_ms` for connecting, and for an answer beyond
    the time the server may hold the request; `client` for tests.
    """

    def __init__(self, token: str, timeout_ms: int, client: httpx.Client | None = None) -> None:
        self._timeout_ms = timeout_ms
        headers = {"Accept": "application/json, application/problem+json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._client = client or make_client()
        self._client.headers.update(headers)

    def get(self, url: str, kind: type[T], *, params: Mapping[str, str] | None = None) -> T:
        """GET; decodes the answer as `kind`. Raises ProtocolError; Disconnected if no answer arrived."""
        return self._send(self._client.build_request("GET", url, params=params, timeout=self._timeout(0, None)), kind)

    def post(
        self, url: str, body: Mapping[str, Any], kind: type[T], *, held_ms: int = 0, timeout_ms: int | None = None
    ) -> T:
        """POST `body` as JSON; decodes the answer as `kind`.

        Parameters: `held_ms` the maximum time the server was asked to hold the request; `timeout_ms` overrides the
        default. Raises ProtocolError; Disconnected if no answer arrived.
        """
        request = self._client.build_request(
            "POST",
            url,
            content=msgspec.json.encode(body),
            headers={"Content-Type": "application/json"},
            timeout=self._timeout(held_ms, timeout_ms),
        )
        return self._send(request, kind)

    def delete(self, url: str, kind: type[T]) -> T:
        """DELETE; decodes the answer as `kind`. Raises ProtocolError; Disconnected if no answer arrived."""
        return self._send(self._client.build_request("DELETE", url, timeout=self._timeout(0, None)), kind)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _timeout(self, held_ms: int, timeout_ms: int | None) -> httpx.Timeout:
        plain_s = (self._timeout_ms if timeout_ms is None else timeout_ms) / 1000
        return httpx.Timeout(plain_s, read=plain_s + held_ms / 1000)

    def _send(self, request: httpx.Request, kind: type[T]) -> T:
        try:
            response = self._client.send(request)
        except httpx.TimeoutException as error:
            raise Disconnected(f"{request.method} {request.url}: no answer in time{via(request)}") from error
        except httpx.UnsupportedProtocol as error:  # a proxy that cannot be used: trying again does not help
            raise ProtocolError(Error.UNKNOWN_SERVER_ERROR, str(error), action=Action.FIX) from error
        except httpx.RequestError as error:
            raise Disconnected(
                f"{request.method} {request.url}: {error or type(error).__name__}{via(request)}"
            ) from error
        except RuntimeError as error:
            # httpx has no exception class for a client that was closed meanwhile.
            if not self._client.is_closed:
                raise
            raise Disconnected(f"{request.method} {request.url}: the client was closed") from error
        if response.status_code == httpx.codes.OK or response.status_code == httpx.codes.CREATED:
            return _decode(response, kind)
        raise _failure(response)


def _decode(response: httpx.Response, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(response.content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(
            Error.UNKNOWN_SERVER_ERROR,
            f"{response.request.method} {response.request.url} returned a response that is not from the HTTP API: "
            f"{error}; check the url",
        ) from error


def _failure(response: httpx.Response) -> ProtocolError:
    """The error for an unsuccessful response."""
    retry_after_ms = _retry_after_ms(response)
    problem = _problem(response)
    error = _error(problem)
    if problem is None or error is None:
        detail = (
            f"{response.request.method} {response.request.url} answered {response.status_code}{via(response.request)}"
        )
        if response.status_code in _GATEWAY_STATUSES:
            return Disconnected(detail, retry_after_ms)
        return ProtocolError(
            Error.UNKNOWN_SERVER_ERROR,
            f"{detail} without an error of the HTTP API{': ' + problem.detail if problem else '; check the url'}",
            retry_after_ms=retry_after_ms,
        )
    detail = problem.detail or problem.title
    if problem.request_id:
        detail = f"{detail} (request {problem.request_id})"
    fields: dict[str, object] = {} if problem.member_id is None else {"member_id": problem.member_id}
    return ProtocolError(error, detail, fields=fields, action=_action(problem), retry_after_ms=retry_after_ms)


def _problem(response: httpx.Response) -> wire.Problem | None:
    if "json" not in response.headers.get("Content-Type", ""):
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


def _retry_after_ms(response: httpx.Response) -> int | None:
    """Retry-After in ms, given as seconds or as a date; None if it is absent or malformed."""
    text = response.headers.get("Retry-After", "").strip()
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return max(0, int(float(text) * 1000))
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return max(0, int((email.utils.parsedate_to_datetime(text).timestamp() - time.time()) * 1000))
    return None
