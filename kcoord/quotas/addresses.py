"""How many connections one address has open."""

from __future__ import annotations

from collections import Counter

from kcoord.quotas.budgets import Budget
from kcoord.quotas.throttled import THROTTLED


class Addresses:
    """The connections of one listener by address. `most`: from one address; 0: no limit, and nothing is counted."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()
        self._of: dict[object, str] = {}

    def admit(self, connection: object, address: str) -> bool:
        """Whether one more connection of the address is allowed; if so, it is counted until it is forgotten."""
        if not self._most or not address:
            return True
        if self._open[address] >= self._most:
            THROTTLED.labels(Budget.CONNECTIONS.key).inc()
            return False
        self._open[address] += 1
        self._of[connection] = address
        return True

    def forget(self, connection: object) -> None:
        """The connection is closed."""
        address = self._of.pop(connection, None)
        if address is not None:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]
