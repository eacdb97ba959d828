"""The quotas in Postgres, as every process follows them and as they are changed.

A process reads them when it starts, after each notification of quotas, tokens or accounts, and every
`notifications.repair.interval.ms`. Requests never wait for that: without Postgres the limits stay as they were last
read.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import psycopg
import structlog

from kcoord.access.audit.recording import Act, record_here
from kcoord.access.quotas.budgets import BY_KEY, Budget
from kcoord.access.quotas.quotas import Kind, Limits, Owner, Quotas
from kcoord.database.notifications import QUOTAS, TOKENS
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError

log = structlog.get_logger(__name__)

Q = queries("kcoord")

LARGEST = 1e12
NAME_MAX = 200


class StoredQuotas:
    """Follows the quotas in Postgres, on behalf of `Quotas`; one per runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._quotas = runtime.get(Quotas)
        self._every = runtime.config.int("notifications.repair.interval.ms") / 1000
        self._hinted = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        runtime.notifications.on(QUOTAS, lambda _: self._hinted.set())
        runtime.notifications.on(TOKENS, lambda _: self._hinted.set())
        runtime.on_stop(self._stop)

    def start(self) -> None:
        """Follow them from now on."""
        self._following = asyncio.create_task(self._follow(), name="kcoord-quotas")

    async def read(self) -> None:
        """Read them now. Raises ProtocolError, psycopg.Error."""
        async with self._db.connection() as connection:
            row = await self._db.row(connection, Q.read_quotas, None)
        assert row is not None
        quotas, owners = row
        self._quotas.use(
            Limits(
                {(Kind(kind), name, BY_KEY[budget]): limit for kind, name, budget, limit in quotas if budget in BY_KEY},
                {token_id: Owner(user, tuple(groups)) for token_id, user, groups in owners},
            )
        )

    async def _follow(self) -> None:
        while True:
            self._hinted.clear()
            try:
                await self.read()
            except (ProtocolError, psycopg.Error, OSError) as error:
                log.warning("quotas_not_read", reason=str(error))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._hinted.wait()

    async def _stop(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)


class ThrottledRow(NamedTuple):
    """A principal that was throttled. `limit`, `used`: in the unit of the budget. `since`, `throttled_at` in ms."""

    kind: str
    name: str
    budget: str
    limit: float
    used: float
    times: int
    since: int
    throttled_at: int


async def throttled_since(runtime: Runtime, since: int, most: int) -> list[ThrottledRow]:
    """Who was throttled since an instant (ms), at any server; the last one first. Raises ProtocolError."""
    async with runtime.db.connection() as connection:
        parameters = {"since": since, "most": most}
        return await runtime.db.records(connection, ThrottledRow, Q.read_throttled, parameters)


def checked_limit(text: str | float, budget: Budget) -> float:
    """A limit that somebody has given. Raises ValueError saying what is expected."""
    try:
        found = float(text)
    except (TypeError, ValueError):
        raise ValueError(f"{budget.key}: expected a number ({budget.value.unit}), not {str(text)[:50]!r}") from None
    if not math.isfinite(found) or not 0 < found <= LARGEST:
        raise ValueError(
            f"{budget.key}: a limit is above 0 and at most {LARGEST:.0f} ({budget.value.unit}); "
            "to have no limit, set it to null (REST) or 'unlimited' (command)"
        )
    return found


def change(kind: Kind, name: str, add: Mapping[Budget, float | None], remove: frozenset[Budget]) -> None:
    """Set and remove limits of one entity, in the caller's transaction of Django's connection.

    Parameters: `name`, "" for the default quota; `add`, None for no limit. Raises ValueError, which names the field,
    for a name that is missing, too long, or of nobody, and for a budget in both. What remains of a token, user or group
    that was deleted can be removed.
    """
    if (kind is Kind.DEFAULT) == bool(name):
        raise ValueError("name: the default quota has none" if name else f"name: say which {kind.value}")
    if len(name) > NAME_MAX:
        raise ValueError(f"name: at most {NAME_MAX} characters")
    both = sorted(budget.key for budget in remove & add.keys())
    if both:
        raise ValueError(f"remove: {both[0]} cannot be set and removed at once")
    if add and kind is not Kind.DEFAULT and not _exists(kind, name):
        raise ValueError(f"name: there is no {kind.value} {name!r}")
    with recorded(kind, name):
        _write(kind, name, add, remove)


@contextmanager
def recorded(kind: Kind, name: str) -> Iterator[None]:
    """Record in the audit what the limits of one entity were and are, in the caller's transaction."""
    before = _limits(kind, name)
    yield
    subject = f"{kind.value} {name}".strip()
    record_here(Act("quota.change", "quota", subject, before=before, after=_limits(kind, name)))


def _write(kind: Kind, name: str, add: Mapping[Budget, float | None], remove: frozenset[Budget]) -> None:
    from kcoord.models import Quota

    for budget, limit in sorted(add.items(), key=lambda item: item[0].key):
        Quota.objects.update_or_create(kind=kind.value, name=name, budget=budget.key, defaults={"limit": limit})
    Quota.objects.filter(kind=kind.value, name=name, budget__in=[budget.key for budget in remove]).delete()


def _limits(kind: Kind, name: str) -> dict[str, str]:
    """The limits of one entity by budget, as text: the audit has whole numbers only."""
    from kcoord.models import Quota

    found = Quota.objects.filter(kind=kind.value, name=name).values_list("budget", "limit")
    return {budget: "unlimited" if limit is None else f"{limit:g}" for budget, limit in found}


def _exists(kind: Kind, name: str) -> bool:
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group

    from kcoord.models import ApiToken

    if kind is Kind.TOKEN:
        return ApiToken.objects.filter(name=name).exists()
    if kind is Kind.USER:
        return get_user_model().objects.filter(username=name).exists()
    return Group.objects.filter(name=name).exists()
