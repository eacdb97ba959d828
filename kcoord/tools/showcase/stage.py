"""What every group of the showcase needs: the service, the logs, chance, and a place to report failures."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field

import httpx

from kcoord.client import KcoordError
from kcoord.tools.showcase.api import Api, Refused
from kcoord.tools.showcase.logs import Logs

EXPECTED = (KcoordError, Refused, httpx.TransportError)
"""What a group must survive: operators interfere, and the service may be restarted."""


@dataclass(slots=True)
class Stage:
    """`failures`: how often groups were interrupted, by what; `last_failure`: the last one in words."""

    api: Api
    logs: Logs
    chance: random.Random
    failures: Counter[str] = field(default_factory=Counter)
    last_failure: str = ""

    async def attempt(self, group_id: str, behaviour: Awaitable[None]) -> bool:
        """Await something that members or operators of a group do. False if it failed, which is counted."""
        succeeded = True
        try:
            await behaviour
        except* EXPECTED as group:
            succeeded = False
            for error in _leaves(group):
                self.failures[getattr(error, "name", type(error).__name__)] += 1
                self.last_failure = f"{group_id}: {error}"
        return succeeded


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found.extend(_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    return found
