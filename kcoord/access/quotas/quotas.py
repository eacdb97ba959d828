"""Quotas of one process: each principal has a bucket for each budget that is limited.

Buckets are in memory, so a principal may use its limit at every node, as at every broker of Kafka. Quotas are stored in
Postgres (`kcoord.access.quotas.stored`), and are those last read while Postgres is away. All methods are called on the
event loop.

The quota that names a principal most closely counts: a token comes before the user who owns it, a user before the
Django groups that the user is in, these before the default quota, and that before the limit of the budget itself. Of
several groups the highest limit counts.

Source: http-api.md 6; KIP-124, 219, 599 (token buckets that may go into debt); Kafka's design, "Client quotas".
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kcoord.access.quotas.budgets import Budget
from kcoord.access.quotas.throttled import HEARTBEATS_KEPT, Throttled, Throttling
from kcoord.access.rights import Principal
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError


class Bucket:
    """What one principal may use of one budget.

    It begins full, with `burst`, and fills at `rate` a second. Between two instants it admits at most `rate` x time +
    `burst`; a single cost above `burst` is admitted by a full bucket, and is paid back before anything else is. A
    principal that stays below `rate` is never refused.

    Parameters: `now`, seconds of a monotonic clock, which never goes back.
    """

    __slots__ = ("_at", "_level", "burst", "rate")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self.burst = burst
        self._level = burst
        self._at = now

    def wait(self, cost: float, now: float) -> float:
        """The time until `cost` is admitted, in seconds; 0: now."""
        if cost <= self._level:  # it has not become less
            return 0.0
        missing = min(cost, self.burst) - self._level_at(now)
        return 0.0 if missing <= _ROUNDING else missing / self.rate

    def spend(self, cost: float, now: float) -> None:
        """Take `cost`, whether it was admitted or not: the bucket may be in debt afterwards."""
        self._level = self._level_at(now) - cost
        self._at = now

    def spend_within(self, cost: float, now: float, most_debt: float) -> None:
        """Take `cost`, but leave no debt above `most_debt`, nor one that is above it already any deeper."""
        level = self._level_at(now)
        self._level = max(level - cost, min(level, -most_debt))
        self._at = now

    def used(self, now: float) -> float:
        """What is missing of a full bucket, at the rate at which it fills; above `burst`: it is in debt."""
        return self.burst - self._level_at(now)

    def limit_to(self, rate: float, burst: float, now: float) -> None:
        """Change the limit. What was used, or is owed, stays so."""
        used = self.used(now)
        self.rate, self.burst = rate, burst
        self._level, self._at = burst - used, now

    def _level_at(self, now: float) -> float:
        level = self._level + (now - self._at) * self.rate
        return level if level < self.burst else self.burst


_ROUNDING = 1e-9
"""Of a cost: sums of parts of a second are not exact."""


class Kind(str, Enum):
    """What a quota names."""

    TOKEN = "token"  # noqa: S105 - no secret
    USER = "user"
    GROUP = "group"
    DEFAULT = "default"


class Limit(NamedTuple):
    """A limit in the unit of its budget, None: no limit; and the quota that it comes from, None: the budget.

    `holder`: who has the bucket. The tokens of a user share what a quota gives to the user; what a group or the default
    gives, each token has for itself.
    """

    value: float | None
    kind: Kind | None
    holder: tuple[Kind, str]


@dataclass(frozen=True, slots=True)
class Owner:
    """The user who owns a token, and the Django groups of the user."""

    user: str
    groups: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """All quotas. `owners`: by id, of tokens whose owner matters to a quota."""

    quotas: Mapping[tuple[Kind, str, Budget], float | None] = field(default_factory=dict)
    owners: Mapping[int, Owner] = field(default_factory=dict)

    def of(self, token_id: int, name: str, budget: Budget) -> Limit:
        """The limit of a token."""
        token = (Kind.TOKEN, name)
        if (*token, budget) in self.quotas:
            return Limit(self.quotas[*token, budget], Kind.TOKEN, token)
        owner = self.owners.get(token_id)
        if owner is not None:
            user = (Kind.USER, owner.user)
            if (*user, budget) in self.quotas:
                return Limit(self.quotas[*user, budget], Kind.USER, user)
            found = [
                self.quotas[Kind.GROUP, group, budget]
                for group in owner.groups
                if (Kind.GROUP, group, budget) in self.quotas
            ]
            if found:
                known = [limit for limit in found if limit is not None]
                return Limit(max(known) if len(known) == len(found) else None, Kind.GROUP, token)
        if (Kind.DEFAULT, "", budget) in self.quotas:
            return Limit(self.quotas[Kind.DEFAULT, "", budget], Kind.DEFAULT, token)
        return Limit(budget.value.limit, None, token)

    def any_of(self, budgets: Sequence[Budget]) -> bool:
        """Whether anybody has a limit of one of the budgets."""
        return any(budget.value.limit is not None for budget in budgets) or any(
            limit is not None for (_, _, budget), limit in self.quotas.items() if budget in budgets
        )


HOT = (Budget.HEARTBEATS, Budget.COMMITS, Budget.BYTES)
"""Budgets of what members send all the time."""
NEW = (Budget.MEMBERS, Budget.GROUPS)
RATES = tuple(budget for budget in Budget if budget.is_rate)
MOST_METERS = 20_000
"""Principals that are remembered; more than a process can know tokens."""

Clock = Callable[[], float]


class Metered:
    """One limited budget of a principal."""

    __slots__ = ("bucket", "holder", "limit")

    def __init__(self, limit: float, holder: tuple[Kind, str], bucket: Bucket) -> None:
        self.limit = limit
        self.holder = holder
        self.bucket = bucket


Meter = Mapping[Budget | None, Metered]
"""The limited budgets of a principal."""

UNLIMITED: Meter = {}


class Quotas:
    """The quotas of this process; one per runtime.

    `is_hot`: somebody has a limit of what members send all the time. `limits_joins`: of new members or groups. Callers
    in a hurry look at these before they ask anything else.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.most_wait = runtime.config.int("quota.max.throttle.ms") / 1000
        clock = runtime.db.clock
        self._now: Clock = time.monotonic if clock.override_ms is None else lambda: (clock.override_ms or 0) / 1000
        self._buckets: dict[tuple[Kind, str, Budget], Bucket] = {}
        self.throttled = runtime.get(Throttled)
        self.use(Limits())

    def use(self, limits: Limits) -> None:
        """These are the limits from now on. What principals have used stays used."""
        self.limits = limits
        self._meters: dict[int, Meter] = {}
        self.is_hot = limits.any_of(HOT)
        self.limits_joins = limits.any_of(NEW)
        self.limits_connections = limits.any_of((Budget.CONNECTIONS,))

    def limit(self, principal: Principal, budget: Budget) -> Limit:
        """The limit of a principal."""
        return self.limits.of(principal.token_id, principal.name, budget)

    def meter(self, principal: Principal) -> Meter:
        """The limited budgets of a principal. This process itself, and people at the dashboard, have no token."""
        found = self._meters.get(principal.token_id)
        return self._meter(principal) if found is None else found

    # Requests

    def has_room(self, principal: Principal, budget: Budget | None) -> bool:
        """Whether a request that uses 1 of the budget is admitted; it has to be spent then."""
        meter = self.meter(principal)
        metered = meter.get(budget)
        if metered is not None and metered.bucket.wait(1, self._now()):
            return False
        if budget is Budget.HEARTBEATS:
            return True
        carried = meter.get(Budget.BYTES)
        return carried is None or not carried.bucket.wait(1, self._now())

    def spend(self, principal: Principal, budget: Budget | None, size: int, weight: float = 1) -> None:
        """A request was admitted, and used this much and `size` bytes."""
        meter = self.meter(principal)
        metered, carried = meter.get(budget), meter.get(Budget.BYTES)
        if metered is not None:
            metered.bucket.spend(weight, self._now())
        if carried is not None:
            carried.bucket.spend(size, self._now())

    def admit(self, principal: Principal, costs: Mapping[Budget, float], *, counts: bool = False) -> None:
        """Spend all of these, or none. A cost of 0: only look whether anything is left.

        `counts`: what is refused counts as well, see `refused_heartbeat`, since it extends a session.
        Raises THROTTLING_QUOTA_EXCEEDED for the budget that takes longest.
        """
        meter = self.meter(principal)
        if not meter:
            return
        now = self._now()
        waits = {budget: meter[budget].bucket.wait(cost or 1, now) for budget, cost in costs.items() if budget in meter}
        longest = max(waits, key=lambda budget: waits[budget], default=None)
        if longest is not None and waits[longest] > 0:
            if counts:
                for budget in waits:
                    meter[budget].bucket.spend_within(costs[budget], now, self._most_debt(meter[budget]))
                HEARTBEATS_KEPT.inc()
            raise self._refusal(principal, longest, waits[longest])
        for budget in waits:
            meter[budget].bucket.spend(costs[budget], now)

    def charge(self, principal: Principal, budget: Budget, cost: float) -> None:
        """Something that was admitted before has used this much, as is known only now."""
        metered = self.meter(principal).get(budget)
        if metered is not None:
            metered.bucket.spend(cost, self._now())

    def charger(self, principal: Principal) -> Callable[[float], None] | None:
        """What is told of the CPU time (ms) of a big request of the principal; None: it is not limited."""
        if Budget.CPU not in self.meter(principal):
            return None
        return lambda ms: self.charge(principal, Budget.CPU, ms)

    def refused_heartbeat(self, principal: Principal, weight: float) -> ProtocolError | None:
        """Count a heartbeat that is carried out whatever the limit says: what to answer it with, None: its own answer.

        It is counted in full, but leaves no more debt than is worth the longest wait, so that a member that is told to
        wait may send its next heartbeat within that time, and a sender that does not wait stays refused.
        """
        metered = self.meter(principal).get(Budget.HEARTBEATS)
        if metered is None:
            return None
        now = self._now()
        wait = metered.bucket.wait(weight, now)
        if not wait:
            metered.bucket.spend(weight, now)
            return None
        metered.bucket.spend_within(weight, now, self._most_debt(metered))
        return self._refusal(principal, Budget.HEARTBEATS, min(wait, self.most_wait))

    def throttle_ms(self, principal: Principal, costs: Mapping[Budget, float]) -> int:
        """Spend costs of a request that is carried out in any case: how long its sender shall be silent, in ms.

        As Kafka does it with requests (KIP-219): at most `quota.max.throttle.ms`, and what was used beyond that is
        forgotten.
        """
        meter = self.meter(principal)
        longest, which = 0.0, None
        now = self._now()
        for budget, cost in costs.items():
            metered = meter.get(budget)
            if metered is None:
                continue
            metered.bucket.spend_within(cost, now, self._most_debt(metered))
            debt = metered.bucket.used(now) - metered.bucket.burst
            wait = debt / metered.bucket.rate
            if wait > longest:
                longest, which = wait, budget
        if which is None:
            return 0
        longest = min(longest, self.most_wait)
        self._note(principal, which, longest)
        return math.ceil(longest * 1000)

    def admit_commit(self, principal: Principal) -> None:
        """Spend one of `commits` for a request that is carried out, and followed by a silence of its connection.

        What connections may owe together is worth one longest silence: a principal that goes on with others meanwhile
        would have as much more as it has connections. Raises COORDINATOR_LOAD_IN_PROGRESS, without spending, beyond it.

        Differs from Kafka: each connection is silent for itself, so the excess grows with their number.
        """
        metered = self.meter(principal).get(Budget.COMMITS)
        if metered is None:
            return
        bucket, now = metered.bucket, self._now()
        debt = bucket.used(now) - bucket.burst
        if debt + 1 > max(self._most_debt(metered), 1):
            refused = self._refusal(principal, Budget.COMMITS, min(max(debt, 1) / bucket.rate, self.most_wait))
            raise ProtocolError(
                Error.COORDINATOR_LOAD_IN_PROGRESS, refused.detail, retry_after_ms=refused.retry_after_ms
            )
        bucket.spend(1, now)

    def too_many(self, principal: Principal, budget: Budget, limit: float, used: float, wait: float) -> ProtocolError:
        """The refusal of something of which there may be only so much at a time."""
        _, _, (kind, name) = self.limit(principal, budget)
        found = Throttling(f"{kind.value} {name!r}", kind.value, name, budget, limit, used, wait)
        self.throttled.note(found)
        return _refusal_of(found)

    def _most_debt(self, metered: Metered) -> float:
        return metered.bucket.rate * self.most_wait

    # Refusals

    def _refusal(self, principal: Principal, budget: Budget, wait: float) -> ProtocolError:
        return _refusal_of(self._note(principal, budget, wait))

    def _note(self, principal: Principal, budget: Budget, wait: float) -> Throttling:
        metered = self.meter(principal)[budget]
        bucket = metered.bucket
        used = bucket.used(self._now()) * metered.limit / bucket.burst
        kind, name = metered.holder
        found = Throttling(f"{kind.value} {name!r}", kind.value, name, budget, metered.limit, used, wait)
        self.throttled.note(found)
        return found

    def _meter(self, principal: Principal) -> Meter:
        if not principal.token_id:
            return UNLIMITED
        now = self._now()
        found: dict[Budget | None, Metered] = {}
        for budget in RATES:
            value, _, holder = self.limit(principal, budget)
            if value is not None:
                found[budget] = Metered(value, holder, self._bucket((*holder, budget), value, now))
        if len(self._meters) >= MOST_METERS:
            self._meters.clear()
            self._forget_idle(now)
        self._meters[principal.token_id] = found
        return found

    def _bucket(self, key: tuple[Kind, str, Budget], limit: float, now: float) -> Bucket:
        budget = key[2]
        rate, burst = budget.rate(limit), budget.burst(limit)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = Bucket(rate, burst, now)
        elif (bucket.rate, bucket.burst) != (rate, burst):
            bucket.limit_to(rate, burst, now)
        return bucket

    def _forget_idle(self, now: float) -> None:
        """A full bucket is the same as a new one."""
        for key, bucket in tuple(self._buckets.items()):
            if bucket.used(now) <= 0:
                del self._buckets[key]


def _refusal_of(found: Throttling) -> ProtocolError:
    retry_after_ms = max(1, math.ceil(found.wait * 1000))
    return ProtocolError(
        Error.THROTTLING_QUOTA_EXCEEDED,
        f"{found.holder} has used up its budget {found.budget.key!r}: {found.used:.4g} {found.budget.value.unit} of "
        f"{found.limit:.4g}; send the request again after {retry_after_ms} ms",
        fields={"budget": found.budget.key, "limit": found.limit, "used": round(found.used, 3)},
        retry_after_ms=retry_after_ms,
    )
