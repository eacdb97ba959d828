"""Whether the reader of a stream is still signed in: signing out and deactivating an account end it at once.

Triggers say when a session was deleted or an account has changed (`kcoord_sessions`, with the SHA-256 digest of the
session's key or the account's id). That is a hint: the session is read again, as for any request.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from importlib import import_module
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import connections
from django.http import HttpRequest

from kcoord.database.notifications import SESSIONS
from kcoord.process.runtime import Runtime


class Readers:
    """The streams of this process that are to be checked when their session or account has changed."""

    def __init__(self, runtime: Runtime) -> None:
        self._streams: set[Reader] = set()
        runtime.notifications.on(SESSIONS, self._told)

    def add(self, reader: Reader) -> None:
        """A stream begins. Call `remove` when it ends."""
        self._streams.add(reader)

    def remove(self, reader: Reader) -> None:
        """A stream has ended."""
        self._streams.discard(reader)

    def _told(self, payload: str | None) -> None:
        for reader in self._streams:
            if payload is None or payload in reader.names:
                reader.changed.set()


class Reader:
    """One stream. `names`: what notifications call its session and its account. `changed`: check it."""

    def __init__(self, request: HttpRequest, account_id: int) -> None:
        key = request.session.session_key or ""
        self._key = key
        self.names = {f"session:{hashlib.sha256(key.encode()).hexdigest()}", f"account:{account_id}"}
        self.changed = asyncio.Event()

    async def is_signed_in(self) -> bool:
        """Read session and account again."""
        return await sync_to_async(self._read)()

    def _read(self) -> bool:
        request = HttpRequest()
        request.session = import_module(settings.SESSION_ENGINE).SessionStore(self._key)
        try:
            return bool(get_user(request).is_authenticated)
        finally:
            connections.close_all()


async def while_signed_in(
    events: AsyncGenerator[str, None],
    changed: asyncio.Event,
    is_signed_in: Callable[[], Awaitable[bool]],
    seconds: float,
) -> AsyncGenerator[str, None]:
    """The events, until `is_signed_in`, asked when `changed` is set, says no, or the session ends, in `seconds`."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + seconds
    told: asyncio.Future[Any] = asyncio.ensure_future(changed.wait())
    step: asyncio.Future[str] = asyncio.ensure_future(anext(events))
    try:
        while True:
            await asyncio.wait({told, step}, timeout=ends_at - loop.time(), return_when=asyncio.FIRST_COMPLETED)
            if loop.time() >= ends_at:
                return
            if told.done():
                changed.clear()
                if not await is_signed_in():
                    return
                told = asyncio.ensure_future(changed.wait())
            elif step.done():
                try:
                    event = step.result()
                except StopAsyncIteration:
                    return
                yield event
                step = asyncio.ensure_future(anext(events))
    finally:
        told.cancel()
        step.cancel()
        await asyncio.gather(told, step, return_exceptions=True)
        await events.aclose()
