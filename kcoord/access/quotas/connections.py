"""How many connections a principal, or one address, has open at this node, HTTP and Kafka clients together.

A connection belongs to the principal of its first request or login. Source: KIP-612, which limits their rate instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

from kcoord.access.quotas.budgets import Budget
from kcoord.access.quotas.quotas import Quotas
from kcoord.access.quotas.throttled import THROTTLED
from kcoord.access.rights import Principal
from kcoord.process.runtime import Runtime


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


PEER = "kcoord.peer"
"""Key of the connection in the state of an ASGI scope."""
RETRY_AFTER = 1.0


class Holding(Protocol):
    """A connection. `holder`: the id of the token that it belongs to, 0: of none yet."""

    holder: int


class Connections:
    """The connections of this process; one per runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._quotas = runtime.get(Quotas)
        self._open: Counter[int] = Counter()
        HOLDERS.of = self

    def claim(self, connection: Holding, principal: Principal) -> None:
        """The connection belongs to the principal from now on. Raises THROTTLING_QUOTA_EXCEEDED."""
        holder = principal.token_id
        if connection.holder == holder:
            return
        limit, _, _ = self._quotas.limit(principal, Budget.CONNECTIONS)
        if limit is not None and self._open[holder] >= limit:
            raise self._quotas.too_many(principal, Budget.CONNECTIONS, limit, self._open[holder], RETRY_AFTER)
        self.release(connection)
        connection.holder = holder
        self._open[holder] += 1

    def claim_of(self, scope: Mapping[str, Any], principal: Principal) -> None:
        """The same for the connection of an ASGI scope, if that has one."""
        peer = (scope.get("state") or {}).get(PEER)
        if peer is not None:
            self.claim(peer, principal)

    def release(self, connection: Holding) -> None:
        """The connection is closed, or belongs to nobody any more."""
        holder, connection.holder = connection.holder, 0
        if holder:
            self._open[holder] -= 1
            if not self._open[holder]:
                del self._open[holder]


class _Holders:
    """Where servers say that a connection is closed."""

    def __init__(self) -> None:
        self.of: Connections | None = None

    def closed(self, connection: Holding) -> None:
        """A connection is closed."""
        if connection.holder and self.of is not None:
            self.of.release(connection)


HOLDERS = _Holders()
