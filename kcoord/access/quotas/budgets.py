"""The budgets, each with a limit of its own, so that one kind of request does not use up what others need.

Source: http-api.md 6; KIP-13, 124, 599 and 612 for the quotas of Kafka that they correspond to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

BURST_SECONDS = 10
"""How many seconds' worth of a limit per second may be used at once, about as with Kafka's 11 samples of one second."""

MINUTE = 60


@dataclass(frozen=True, slots=True)
class BudgetInfo:
    """A budget.

    Parameters: `window`, the seconds that its limit is for; `burst`, how many seconds' worth may be used at once;
    `limit`, what a principal without a quota may use, None for no limit.
    """

    key: str
    unit: str
    meaning: str
    window: int = 1
    burst: int = BURST_SECONDS
    limit: float | None = None


class Budget(Enum):
    """What is limited. `connections` is a number at a time, all others are rates."""

    HEARTBEATS = BudgetInfo("heartbeats", "per second", "Heartbeats of members.")
    COMMITS = BudgetInfo("commits", "per second", "Commits and fetches of offsets, and calls of transactions.")
    READS = BudgetInfo("reads", "per second", "All other requests that change nothing.")
    WRITES = BudgetInfo("writes", "per second", "All other requests that change something.")
    BYTES = BudgetInfo("bytes", "bytes per second", "Bodies of requests and of their answers.")
    CPU = BudgetInfo(
        "cpu", "ms per second", "CPU time of requests that compute for long, such as /v1/assign.", limit=500
    )
    MEMBERS = BudgetInfo("members", "per minute", "Joins of new members.", MINUTE, MINUTE)
    GROUPS = BudgetInfo("groups", "per minute", "New groups.", MINUTE, MINUTE)
    PARTITIONS = BudgetInfo("partitions", "per minute", "Partitions of topics created or deleted.", MINUTE, MINUTE)
    CONNECTIONS = BudgetInfo("connections", "open at once", "Connections.", 0, 0)

    __hash__ = object.__hash__  # that of Enum is a function in Python, and each request looks budgets up

    @property
    def key(self) -> str:
        """How quotas and metrics name it."""
        return self.value.key

    @property
    def is_rate(self) -> bool:
        """It is limited per time."""
        return self.value.window > 0

    def rate(self, limit: float) -> float:
        """What a limit allows per second."""
        return limit / self.value.window

    def burst(self, limit: float) -> float:
        """What a limit allows at once; at least 1, or nothing would ever be admitted."""
        return max(1.0, limit * self.value.burst / self.value.window)


BY_KEY = {budget.key: budget for budget in Budget}


def one(content: Any) -> int:
    """The weight of most requests."""
    return 1


@dataclass(frozen=True, slots=True)
class Metering:
    """What a request of the data plane uses.

    Parameters: `budget`, None if only its bytes count: it is never refused, as a member must be able to end a rebalance
    and to leave. `weight`: how much of the budget a request with this body uses. `keeps`: the request is a
    heartbeat: over the limit it is carried out all the same, and then refused if its answer says nothing but that;
    called with body and answer. `renew`: carried out when the request is refused, with its call: it extends the session
    that the request would have extended.
    """

    budget: Budget | None = None
    weight: Callable[[Any], int] = one
    keeps: Callable[[Any, Any], bool] | None = None
    renew: Callable[[Any], Awaitable[None]] | None = None

    @property
    def is_of_member(self) -> bool:
        """A member that gets no such request through may lose its place in the group."""
        return self.budget is None or self.keeps is not None or self.renew is not None


UNMETERED = Metering()
