"""Ends connections of Kafka clients whose token was revoked or has expired since they logged in.

A request looks its token up anyway; a connection that only waits, with a parked join or with nothing, does not.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection

import structlog

from kcoord.access.rights import Access
from kcoord.database.notifications import TOKENS
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.wire.connection import Connection

log = structlog.get_logger(__name__)

LOOK_SECONDS = 0.5
"""How often, without a hint: how late the end of a token that expires is noticed."""
LOOKED_UP_AT_ONCE = 4
"""Tokens: the other connections of the pool are for requests."""


class Logins:
    """The tokens that connections logged in with. `connections`: those that are open, as of now."""

    def __init__(self, runtime: Runtime, connections: Collection[Connection]) -> None:
        self._access = runtime.get(Access)
        self._connections = connections
        self._changed = asyncio.Event()
        runtime.notifications.on(TOKENS, lambda _: self._changed.set())

    async def watch(self) -> None:
        """Look at every hint that tokens have changed, and every LOOK_SECONDS; until cancelled."""
        while True:
            # Not wait_for: before Python 3.12 it swallows a cancellation that comes together with the hint.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._changed.wait()
            self._changed.clear()
            try:
                await self._look()
            except Exception:
                log.exception("kafka_logins_not_checked")

    async def _look(self) -> None:
        """Look up the tokens that are not known to be valid. Most are: requests look them up."""
        unknown: dict[str, list[Connection]] = {}
        for connection in [*self._connections]:
            key = connection.session.token
            if key and self._access.known(key) is None:
                unknown.setdefault(key, []).append(connection)
        holders = list(unknown.values())
        for first in range(0, len(holders), LOOKED_UP_AT_ONCE):
            await asyncio.gather(*(self._check(held) for held in holders[first : first + LOOKED_UP_AT_ONCE]))

    async def _check(self, held: list[Connection]) -> None:
        """End connections of one token unless it is valid. Without a database they stay, until the next look."""
        try:
            await self._access.authenticate(held[0].session.secret)
        except ProtocolError as refused:
            if refused.error is Error.SASL_AUTHENTICATION_FAILED:
                for connection in held:
                    connection.hang_up("refused", "the token of the connection is no longer valid")
