"""What travels between the driver and http-api.md and the helpers that all calls share."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kcoord.protocol.errors import BY_CODE
from tests.conformance.driver import BrokenPromise, Response

Args = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What is sent. `body` None: no body."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What came back: the status and the JSON body."""

    status: int
    body: Mapping[str, Any]

    @property
    def error(self) -> str:
        """The error's name; NONE for a success. Raises BrokenPromise for a failure that is no problem body."""
        if self.status < 400:
            return "NONE"
        error = self.body.get("error")
        if not isinstance(error, str):
            raise BrokenPromise(f"status {self.status} without an error name: {self.body!r}")
        return error


Read = Callable[[HttpAnswer, Args], Response]


@dataclass(frozen=True, slots=True)
class Exchange:
    """How one call travels: its requests, one after the other, and how their answers are read."""

    requests: Callable[[Args], Sequence[HttpRequest]]
    read: Callable[[Sequence[HttpAnswer], Args], Response]


def single(request: Callable[[Args], HttpRequest], read: Read) -> Exchange:
    """A call that is one request."""
    return Exchange(lambda args: (request(args),), lambda answers, args: read(answers[0], args))


def group_path(group_id: str | None, rest: str = "") -> str:
    """The path of a group, percent-encoded, and what follows it. Null, which a path cannot carry, is sent as ""."""
    return f"/v1/groups/{quote(group_id or '', safe='')}{rest}"


def error_name(error_code: int) -> str:
    """The name of an error in the results for single items."""
    return BY_CODE[error_code].name


def encode(text: str) -> str:
    """The convention's opaque text as the bytes that the contract writes in base64."""
    return base64.b64encode(text.encode()).decode()


def decode(encoded: str) -> str:
    """The reverse of `encode`."""
    return base64.b64decode(encoded, validate=True).decode()


def read_error(answer: HttpAnswer, args: Args) -> Response:
    """The response of calls that have nothing to tell but their error."""
    return {"error": answer.error}
