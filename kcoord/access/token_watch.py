"""Ends what is open under a token that was revoked or has expired.

A request looks its token up anyway; a connection that only waits, or a request that is parked, does not.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterator
from typing import Protocol

import structlog

from kcoord.access.rights import Access
from kcoord.database.notifications import TOKENS
from kcoord.process.off_loop import in_slices
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

log = structlog.get_logger(__name__)

LOOK_SECONDS = 0.5
"""How often, without a hint: how late the end of a token that expires is noticed."""
LOOKED_UP_AT_ONCE = 4
"""Tokens: the other connections of the pool are for requests."""


class Holder(Protocol):
    """A connection or a request. `token`: the digest of its secret, "" while it has none."""

    @property
    def token(self) -> str:
        """See above."""

    @property
    def secret(self) -> str:
        """The secret itself."""

    def token_ended(self, reason: str) -> None:
        """The token is no longer valid."""


class TokenWatch:
    """The tokens of what is open. `holders`: a live collection, read at every look."""

    def __init__(self, runtime: Runtime, holders: Collection[Holder]) -> None:
        self._access = runtime.get(Access)  # it forgets tokens at the hint first
        self._holders = holders
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
                log.exception("tokens_not_checked")

    async def _look(self) -> None:
        """Look up the tokens that are not known to be valid. Most are: requests look them up."""
        unknown: dict[str, list[Holder]] = {}
        await in_slices(self._find_unknown(unknown))
        held = list(unknown.values())
        for first in range(0, len(held), LOOKED_UP_AT_ONCE):
            await asyncio.gather(*(self._check(some) for some in held[first : first + LOOKED_UP_AT_ONCE]))

    def _find_unknown(self, found: dict[str, list[Holder]]) -> Iterator[None]:
        """Add holders of tokens that are not known, by token; others have their turn between two of thousands."""
        for holder in [*self._holders]:
            key = holder.token
            if key and self._access.known(key) is None:
                found.setdefault(key, []).append(holder)
            yield

    async def _check(self, held: list[Holder]) -> None:
        """End what one token holds unless the token is valid. Without a database it stays, until the next look."""
        try:
            await self._access.authenticate(held[0].secret)
        except ProtocolError as refused:
            if refused.error is Error.SASL_AUTHENTICATION_FAILED:
                for holder in held:
                    holder.token_ended(refused.detail)
