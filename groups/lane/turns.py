"""Work on many keys together: those that arrive while it is under way are the next turn."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import islice

import structlog

from kcoord.protocol.errors import ProtocolError

log = structlog.get_logger(__name__)


class Turns:
    """Parameters: `work` on keys, at most `most` of them in a turn; `failed`, the line that is logged if it fails."""

    def __init__(self, work: Callable[[Sequence[str]], Awaitable[None]], most: int, failed: str) -> None:
        self._work = work
        self._most = most
        self._failed = failed
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._running: asyncio.Task[None] | None = None

    async def take_part(self, key: str, seconds: float) -> bool:
        """Whether a turn with `key` that began after this call has ended, well or not, within `seconds`.

        They count from the first call with the key; those who gave up do not keep others from taking part.
        """
        waiting = self._waiting.get(key)
        if waiting is None:
            loop = asyncio.get_running_loop()
            waiting = self._waiting[key] = loop.create_future()
            waiting.add_done_callback(partial(_cancel, loop.call_later(seconds, _settle, waiting, False)))
            if self._running is None:
                self._running = asyncio.create_task(self._run(), context=contextvars.Context())
        return await asyncio.shield(waiting)

    async def _run(self) -> None:
        while self._waiting:
            turn = {key: self._waiting.pop(key) for key in list(islice(self._waiting, self._most))}
            try:
                await self._work(list(turn))
            except ProtocolError as error:
                log.info(self._failed, reason=error.detail)
            except Exception:
                log.exception(self._failed)
            finally:
                for future in turn.values():
                    _settle(future, True)
        self._running = None

    async def close(self) -> None:
        """End the work that is under way."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)


def _settle(future: asyncio.Future[bool], ended: bool) -> None:
    if not future.done():
        future.set_result(ended)


def _cancel(handle: asyncio.TimerHandle, _: asyncio.Future[bool]) -> None:
    handle.cancel()
