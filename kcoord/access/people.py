"""People: the principal of an account, whose rules are its own and those of the Django groups it is in, together.

A superuser may do everything, an inactive or anonymous account nothing. The rules of an account are cached as tokens
are (`token.cache.ms`), and the same notification empties the cache: when rules, accounts, groups or memberships change.

Source: http-api.md 7 ("the same rules hold for them").
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kcoord.access.rights import ALL_ALLOWED, Holder, Principal, Rules
from kcoord.database.notifications import TOKENS
from kcoord.database.sql import queries
from kcoord.process import bridge
from kcoord.process import runtime as runtimes

if TYPE_CHECKING:
    from kcoord.process.runtime import Runtime

Q = queries("kcoord")

MAX_CACHED = 10_000
"""The maximum number of accounts whose rules a process remembers; the one looked up longest ago is evicted first."""

NOTHING = Rules(())
NOBODY = Principal(0, "", NOTHING, Holder.USER)
"""Who has not signed in."""


def principal_of(user: Any) -> Principal:
    """The principal of the account of a request (`request.user`); for synchronous code.

    Costs one query of Django's connection, and none while the rules of the account are cached. Whether the account is
    active and a superuser is read from `user`, which Django loads for each request.
    """
    if not user.is_authenticated or not user.is_active:
        return NOBODY
    name = user.get_username()
    if user.is_superuser:
        return Principal(0, name, ALL_ALLOWED, Holder.USER, user.pk)
    people = _people()
    rules = None if people is None else people.known(user.pk)
    if rules is None:
        rules = _read(user.pk, people)
    return Principal(0, name, rules, Holder.USER, user.pk)


class People:
    """The rules of accounts that a process remembers. Threads share it."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._believed_seconds = runtime.config.int("token.cache.ms") / 1000
        self._cache: dict[int, tuple[Rules, float]] = {}
        self._lock = threading.Lock()
        self._forgotten = 0
        runtime.on_connection_lost(self.forget)
        runtime.notifications.on(TOKENS, lambda _: self.forget())

    def forget(self) -> None:
        """Rules or accounts may have changed: read all of them again."""
        with self._lock:
            self._forgotten += 1
            self._cache.clear()

    @property
    def forgotten(self) -> int:
        """How often everything was forgotten: what was read before the last time is not remembered."""
        return self._forgotten

    def known(self, user_id: int) -> Rules | None:
        """The rules of an account, if they were read lately."""
        found = self._cache.get(user_id)
        return None if found is None or found[1] <= time.monotonic() else found[0]

    def remember(self, user_id: int, rules: Rules, asked: float, forgotten: int) -> None:
        """Rules that were read from `asked` (monotonic seconds) on, when everything had been forgotten that often."""
        with self._lock:
            if forgotten != self._forgotten or self._believed_seconds <= 0:
                return
            self._cache.pop(user_id, None)
            if len(self._cache) >= MAX_CACHED:
                self._cache.pop(next(iter(self._cache)))
            self._cache[user_id] = rules, asked + self._believed_seconds

    async def principal(self, user_id: int) -> Principal:
        """The principal of an account as of now, for asynchronous code; NOBODY if it is gone or inactive.

        Always asks the database. Raises COORDINATOR_NOT_AVAILABLE without it.
        """
        async with self._db.connection() as connection:
            return _principal(user_id, await self._db.row(connection, Q.find_person, {"id": user_id}))


def _principal(user_id: int, row: tuple[Any, ...] | None) -> Principal:
    if row is None:
        return NOBODY
    name, active, superuser, rules = row
    if not active:
        return NOBODY
    return Principal(0, name, ALL_ALLOWED if superuser else rules_from(rules), Holder.USER, user_id)


def rules_from(rows: Iterable[Iterable[str]]) -> Rules:
    """Rules as a statement returns them: operation, resource, pattern, name and effect of each."""
    return Rules((operation, resource, pattern, name, effect) for operation, resource, pattern, name, effect in rows)


def _people() -> People | None:
    """What this process remembers; None in one that serves no requests."""
    if not runtimes.is_running():
        return None
    return runtimes.current().made(People) or bridge.call(_make)


async def _make(runtime: Runtime) -> People:
    return runtime.get(People)


def _read(user_id: int, people: People | None) -> Rules:
    """The rules in the database. In a transaction they may be what it has changed, and are not remembered."""
    from django.db import connection

    asked, forgotten = time.monotonic(), 0 if people is None else people.forgotten
    with connection.cursor() as cursor:
        cursor.execute(Q.find_person, {"id": user_id})
        row = cursor.fetchone()
    rules = NOTHING if row is None else _principal(user_id, row).rules
    if people is not None and not connection.in_atomic_block:
        people.remember(user_id, rules, asked, forgotten)
    return rules
