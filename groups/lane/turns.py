"""Work on many keys together: those that arrive while it is under way are the next turn."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Sequence
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
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._running: asyncio.Task[None] | None = None

    async def take_part(self, key: str, seconds: float) -> bool:
        """Whether a turn with `key` that began after this call has ended, well or not, within `seconds`."""
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = asyncio.get_running_loop().create_future()
            if self._running is None:
                self._running = asyncio.create_task(self._run(), context=contextvars.Context())
        done, _ = await asyncio.wait([waiting], timeout=seconds)
        return bool(done)

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
                    future.set_result(None)
        self._running = None

    async def close(self) -> None:
        """End the work that is under way."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
