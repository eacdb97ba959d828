"""Live updates: server-sent events that say that something changed, never what.

`/live` reports changes of any group (`event: groups`), `/live?group=ID` those of one (`event: group`), `/live?of=nodes`
that coordinator partitions have other owners (`event: nodes`). The page fetches its panel again, so an event carries no
data, several can be merged into one, and a lost one is harmless.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.db import connections
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_GET

from kcoord.database.notifications import Notifications, Subscription
from kcoord.process import runtime as runtimes

KEEP_ALIVE_SECONDS = 15.0
DEBOUNCE_SECONDS = 0.25
"""At most one event per this interval: the first change is sent at once, later ones are merged."""
LIFETIME_SECONDS = 15 * 60.0
"""A stream ends after this; the browser reconnects, and its session is checked again."""
RETRY_MS = 2_000


@require_GET
async def live(request: HttpRequest) -> HttpResponseBase:
    """The stream of changes for signed-in users; 401 without a session, 503 while the process starts or stops."""
    user = await request.auser()
    if not user.is_authenticated:
        return HttpResponse(status=401)
    if not runtimes.is_running():
        return HttpResponse(status=503)
    # Otherwise each open page would hold the connection that its session was read with.
    await sync_to_async(connections.close_all)()
    nodes = request.GET.get("of") == "nodes"
    events = stream(runtimes.current().notifications, request.GET.get("group"), nodes=nodes)
    response = StreamingHttpResponse(events, content_type="text/event-stream")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    return response


async def stream(
    notifications: Notifications,
    group_id: str | None,
    lifetime_seconds: float = LIFETIME_SECONDS,
    *,
    nodes: bool = False,
) -> AsyncIterator[str]:
    """Events of one group, of all if None, or of `nodes`.

    It ends with the process, its lifetime, or when the client disconnects.
    """
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + lifetime_seconds
    event = "nodes" if nodes else "groups" if group_id is None else "group"
    async with notifications.subscribe(nodes=nodes) as subscription:
        yield f"retry: {RETRY_MS}\n\n"
        while not subscription.closed and (left := ends_at - loop.time()) > 0:
            changed = await _changes(subscription, min(left, KEEP_ALIVE_SECONDS))
            if changed is None:
                yield ": still here\n\n"
            elif changed and (group_id is None or group_id in changed or None in changed):
                yield f"event: {event}\ndata:\n\n"
                await asyncio.sleep(DEBOUNCE_SECONDS)


async def _changes(subscription: Subscription, seconds: float) -> set[str | None] | None:
    """What changed, None if nothing did within that time."""
    try:
        return await asyncio.wait_for(subscription.get(), seconds)
    except TimeoutError:
        return None
