"""What the core asks of its driver. Awaiting an effect gives the driver the effect, and the core its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class Effect(Generic[T]):
    """Something that only a driver can do; it results in a T, or raises."""

    __slots__ = ()

    def __await__(self) -> Generator[Effect[T], Any, T]:
        result: T = yield self
        return result


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request. `timeout_s` bounds connecting and writing, `read_timeout_s` the wait for the answer."""

    method: str
    url: str
    headers: Mapping[str, str]
    timeout_s: float
    read_timeout_s: float
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a request. The names of headers are in lower case.

    `via`: for messages, the proxy that it came through; "" if there was none.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes
    via: str = ""


@dataclass(frozen=True, slots=True)
class Send(Effect[Response]):
    """Send a request. Raises Disconnected if no answer arrives."""

    request: Request


@dataclass(frozen=True, slots=True)
class Wait(Effect[None]):
    """Wait until the condition is notified after version `seen`, at most `timeout_s` (None: indefinitely)."""

    seen: int
    timeout_s: float | None


@dataclass(frozen=True, slots=True)
class Ask(Effect[T]):
    """Call a function of the user: a listener, a record source, an assignor, a callback. Raises what it raises.

    With asyncio its result may be awaitable, and is awaited.
    """

    function: Callable[..., T | Awaitable[T]]
    arguments: tuple[Any, ...] = ()


def ask(function: Callable[..., T | Awaitable[T]], *arguments: Any) -> Ask[T]:
    """The effect of calling `function(*arguments)`."""
    return Ask(function, arguments)


class Lanes(Protocol):
    """Runs parts of the core concurrently."""

    def start(self, name: str, main: Coroutine[Any, Any, None]) -> None:
        """Run `main` until it ends. It raises nothing but what ends its thread or task."""
