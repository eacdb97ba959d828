"""A request on the short path whose answer comes later: it waits for a future, with neither a task nor ASGI around it.

To its connection it is what uvicorn's `RequestResponseCycle` is: the next request waits until it is complete, and a
server that stops waits for it. A client that goes away does not end it: what was begun is carried out.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec
import structlog
from starlette.responses import Response

from kcoord.http import context, problem
from kcoord.http.serving import Underway
from kcoord.protocol.errors import Error, ProtocolError

if TYPE_CHECKING:
    from kcoord.http.short_path import Head, Headers, Route, ShortPath

log = structlog.get_logger(__name__)


class _Nobody:
    """Takes the place of the event by which ASGI's `receive` learns that something has come."""

    def set(self) -> None:
        """Nobody waits for it."""


class Pending:
    """One request. `tell` is called once with the whole response, later than `wait`.

    `tasks`: those of the server, which are cancelled if it has to stop before they end. Parameters: `started`, in
    seconds of the performance counter; `defaults`, the server's own headers.
    """

    __slots__ = (
        "_defaults",
        "_path",
        "_request",
        "_route",
        "_started",
        "_tasks",
        "_tell",
        "_token",
        "_underway",
        "disconnected",
        "keep_alive",
        "response_complete",
        "response_started",
    )

    waiting_for_100_continue = False
    message_event = _Nobody()

    def __init__(
        self,
        path: ShortPath,
        route: Route,
        head: Head,
        request: context.RequestContext,
        started: float,
        defaults: Headers,
        underway: Underway,
    ) -> None:
        self._path = path
        self._route = route
        self._request = request
        self._started = started
        self._defaults = defaults
        self._underway = underway
        self._token = head.token
        self.keep_alive = head.keeps_alive
        self.disconnected = self.response_started = self.response_complete = False

    def wait(self, tell: Callable[[Pending, bytes], None], tasks: set[asyncio.Task[Any]]) -> None:
        """Wait for what the request waits for. Call it while the request is the current one."""
        self._tell, self._tasks = tell, tasks
        self._underway.waits_for.add_done_callback(self._came)

    def _came(self, waited_for: asyncio.Future[Any]) -> None:
        """The request is the current one again: callbacks run in the context in which they were added."""
        result = self._result_of(lambda: self._underway.finish(waited_for.result()))
        if inspect.iscoroutine(result):
            task = asyncio.get_running_loop().create_task(result)
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        elif result is not None:
            self._succeed(result)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        result = self._result_of(task.result)
        if result is not None:
            self._succeed(result)

    def _result_of(self, work: Callable[[], Any]) -> Any:
        """What `work` returns; None: it failed, and the request was refused."""
        try:
            return work()
        except ProtocolError as error:
            error.__traceback__ = None  # it refers to the future, which refers to the error
            self._refuse(problem.from_error(error))
        except asyncio.CancelledError:
            detail = "this server stopped before the request came to its end; the outcome is not known"
            self._refuse(problem.response(Error.COORDINATOR_NOT_AVAILABLE, detail))
        except Exception:
            log.exception("request_failed", endpoint=self._route.served.operation.endpoint.operation_id)
            self._refuse(problem.response(Error.UNKNOWN_SERVER_ERROR))
        return None

    def _succeed(self, result: msgspec.Struct) -> None:
        content = self._route.served.operation.encode(result)
        self._path.spend_bytes(self._token, len(content))
        self._note(HTTPStatus.OK)
        answer = self._path.success(content, self._request.request_id, self._defaults, keeps_alive=self.keep_alive)
        self._tell(self, answer)

    def _refuse(self, response: Response) -> None:
        self._note(response.status_code)
        self._tell(self, self._refusal(response.status_code, response.raw_headers, bytes(response.body)))

    def _note(self, status: int) -> None:
        self._request.status = status
        self._path.note(self._route, self._request, time.perf_counter() - self._started)

    def _refusal(self, status: int, headers: Headers, content: bytes) -> bytes:
        """In the order of uvicorn: its own headers, those of the response, the request id, the end of a connection."""
        found = [*self._defaults, *headers, (context.HEADER, self._request.request_id.encode())]
        if not self.keep_alive:
            found.append((b"connection", b"close"))
        lines = b"".join(b"%b: %b\r\n" % header for header in found)
        phrase = HTTPStatus(status).phrase.encode()
        return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (status, phrase, lines, content)
