"""Signals that end the work of a consumer: it stops reading, so that its program can commit and leave the group."""

from __future__ import annotations

import asyncio
import functools
import signal
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from kcoord.client.errors import InvalidConfigurationError

SETTING = "stop_on"

Handler = Callable[[int, FrameType | None], Any] | int | None


class StopSignals:
    """Calls `stop` on the first of some signals, from `__init__` to `restore`.

    A handler of the program's own that was there before is called as well, each time. What there was by default (the
    process ends, KeyboardInterrupt) does not happen, except for a second SIGINT: it interrupts. Two consumers of a
    process may have the same signals. Raises InvalidConfigurationError in any thread but the main one, which alone may
    handle signals, and for what is not a signal that can be handled.
    """

    def __init__(self, numbers: Iterable[int], stop: Callable[[], None]) -> None:
        self._stop = stop
        self._previous: dict[int, Handler] = {}
        self._came: set[int] = set()
        self._active = True
        # One object, so that it is recognised again: each look at a method gives another one.
        self._installed = self._handle
        wanted = _checked(numbers)
        try:
            for number in wanted:
                self._previous[number] = _in_use(number, signal.signal(number, self._installed))
        except (OSError, ValueError) as error:
            self.restore()
            raise InvalidConfigurationError(SETTING, f"signal {number} cannot be handled: {error}") from error

    def restore(self) -> None:
        """Put the previous handlers back, where nothing else replaced ours and this is the main thread."""
        self._active = False
        if threading.current_thread() is not threading.main_thread():
            return  # a signal that still comes is passed on
        for number, previous in self._previous.items():
            if signal.getsignal(number) == self._installed:
                _install(number, previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        previous = self._previous.get(number)
        if not self._active:
            _install(number, previous)
            signal.raise_signal(number)
            return
        again = number in self._came
        self._came.add(number)
        self._stop()
        if callable(previous) and (not _is_default(previous) or (again and number == signal.SIGINT)):
            previous(number, frame)


def _in_use(number: int, handler: Handler) -> Handler:
    """`handler`, or what it replaced, where it is that of a consumer that was closed while a later one was open."""
    while isinstance(of := getattr(handler, "__self__", None), StopSignals) and not of._active:
        handler = of._previous.get(number)
    return handler


def _install(number: int, handler: Handler) -> None:
    # None: a handler that was not installed from Python, and cannot be put back.
    signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _is_default(handler: Handler) -> bool:
    """What Python, or `asyncio.run`, does by itself with Ctrl-C."""
    wrapped = handler.func if isinstance(handler, functools.partial) else handler
    return handler is signal.default_int_handler or isinstance(getattr(wrapped, "__self__", None), asyncio.Runner)


def _checked(numbers: Iterable[int]) -> list[int]:
    if isinstance(numbers, (int, str)) or not isinstance(numbers, Iterable):
        raise InvalidConfigurationError(SETTING, f"{numbers!r}: expected signals, e.g. (signal.SIGTERM, signal.SIGINT)")
    wanted = list(dict.fromkeys(numbers))
    for number in wanted:
        if not isinstance(number, int) or isinstance(number, bool) or number not in signal.valid_signals():
            raise InvalidConfigurationError(SETTING, f"{number!r}: not a signal, such as signal.SIGTERM")
    if wanted and threading.current_thread() is not threading.main_thread():
        raise InvalidConfigurationError(
            SETTING, "only the main thread can handle signals: create the consumer there, or call stop() from a handler"
        )
    return wanted
