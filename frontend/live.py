"""Live updates: server-sent events that say what changed, never how, and that the server can still hear of changes.

`/live` is one stream for all pages of a browser. Every BEAT_SECONDS, and at once when it changes, it says whether this
process hears of changes (`event: beat`, `{"listening": true}`): a page that gets no beat for a while knows that it
shows the past, and so does one whose server has lost its connection to Postgres. `event: changed` names the groups
that have changed (`{"groups": [...], "nodes": false}`; `null`: any may have) and says whether coordinator partitions
have other owners. The page fetches its panel again, so several changes can be merged into one, and a lost one is
harmless. A stream names only groups that its reader may describe, and says nothing when only others have changed.

Signing out and deactivating an account end a stream at once: triggers say when a session was deleted or an account has
changed (`kcoord_sessions`, with the SHA-256 digest of the session's key or the account's id). That is a hint: the
session is read again, as for any request.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from importlib import import_module
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import connections
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_GET

from kcoord.access.people import People
from kcoord.access.rights import Resource
from kcoord.database.notifications import SESSIONS, Changes, Notifications, Subscription
from kcoord.database.paging import Visible
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError

BEAT_SECONDS = 3.0
"""How often the stream says that it lives. Pages take it for dead after 7.5 s (`static/frontend/stream.js`)."""
DEBOUNCE_SECONDS = 0.25
"""At most one event per this interval: the first change is sent at once, later ones are merged."""
MOST_NAMED = 100
"""Groups that one event names; if more have changed, it says that any may have."""
LIFETIME_SECONDS = 15 * 60.0
"""A stream ends after this; the browser reconnects, and its session is checked again."""
RETRY_MS = 2_000
CHECKED_SECONDS = 2.0
"""How long a stream believes which groups its reader may describe: reading it for each change would cost too much."""


@require_GET
async def live(request: HttpRequest) -> HttpResponseBase:
    """The stream of changes for signed-in users; 401 without a session, 503 while the process starts or stops."""
    user = await request.auser()
    if not user.is_authenticated:
        return HttpResponse(status=401)
    if not runtimes.is_running():
        return HttpResponse(status=503)
    session_seconds = float(await request.session.aget_expiry_age())
    # Otherwise each open page would hold the connection that its session was read with.
    await sync_to_async(connections.close_all)()
    runtime = runtimes.current()
    people, user_id = runtime.get(People), int(user.pk)

    async def seen() -> Visible:
        return (await people.principal(user_id)).visible(Resource.GROUP)

    events = _of_reader(Reader(request, user.pk), stream(runtime.notifications, seen), session_seconds)
    response = StreamingHttpResponse(events, content_type="text/event-stream")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    return response


async def _of_reader(
    reader: Reader, events: AsyncGenerator[str, None], session_seconds: float
) -> AsyncGenerator[str, None]:
    """The events, until the reader signs out or may no longer sign in."""
    readers = runtimes.current().get(Readers)
    readers.add(reader)
    try:
        async with aclosing(while_signed_in(events, reader.changed, reader.is_signed_in, session_seconds)) as ending:
            async for event in ending:
                yield event
    finally:
        readers.remove(reader)


async def stream(
    notifications: Notifications, seen: Callable[[], Awaitable[Visible]], lifetime_seconds: float = LIFETIME_SECONDS
) -> AsyncGenerator[str, None]:
    """The events. They end with the process, their lifetime, or when the client disconnects.

    `seen` reads which groups may be named; it is asked again when it was last asked CHECKED_SECONDS ago.
    """
    visible, asked_at = Visible(), -math.inf
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + lifetime_seconds
    async with notifications.subscribe() as subscription:
        yield f"retry: {RETRY_MS}\n\n"
        told, beat_at = None, loop.time()
        while not subscription.closed and loop.time() < ends_at:
            changes = await _changes(subscription, min(ends_at, beat_at) - loop.time())
            if told != notifications.listening or loop.time() >= beat_at:
                told, beat_at = notifications.listening, loop.time() + BEAT_SECONDS
                yield _event("beat", {"listening": told})
            if changes.groups and loop.time() - asked_at >= CHECKED_SECONDS:
                try:
                    visible, asked_at = await seen(), loop.time()
                except ProtocolError:
                    return  # the browser connects again, and is told of all changes then
            changes = seen_of(changes, visible)
            if changes.groups or changes.nodes:
                yield _event("changed", {"groups": _named(changes), "nodes": changes.nodes})
                await asyncio.sleep(DEBOUNCE_SECONDS)


async def _changes(subscription: Subscription, seconds: float) -> Changes:
    """What changed within that time."""
    # Not wait_for: before Python 3.12 it swallows a cancellation that comes together with a change.
    try:
        async with asyncio.timeout(seconds):
            return await subscription.get()
    except TimeoutError:
        return Changes()


def seen_of(changes: Changes, visible: Visible) -> Changes:
    """What somebody is told of changes who may describe these groups; None stands for any group."""
    return replace(changes, groups=frozenset(name for name in changes.groups if name is None or name in visible))


def _named(changes: Changes) -> list[str] | None:
    if None in changes.groups or len(changes.groups) > MOST_NAMED:
        return None
    return sorted(group_id for group_id in changes.groups if group_id is not None)


def _event(name: str, data: object) -> str:
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


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
