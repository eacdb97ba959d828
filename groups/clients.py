"""The software of members that come by Kafka's protocol, as their clients name it.

A client says it when it connects, not when it joins, and some do not say it on every connection; so it is known by
client id and address, for all servers together.

Source: KIP-511.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime

Q = queries("groups")

KEPT_MS = 30 * 24 * 3_600_000
"""How long software is known after its client has joined last."""
AGAIN_SECONDS = 24 * 3_600.0
"""When it is stored again, though it is the same."""
MOST_TOLD = 10_000


class Client(NamedTuple):
    """A client as members have it: its id, and the address that it came from."""

    client_id: str
    client_host: str


class Software(NamedTuple):
    """What a client is."""

    name: str
    version: str


class ClientSoftware:
    """The software of clients."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._told: OrderedDict[Client, tuple[Software, float]] = OrderedDict()
        """What this process has stored, and when."""

    async def remember(self, client: Client, software: Software) -> None:
        """Store what a client is, unless that was just done. Raises ProtocolError COORDINATOR_NOT_AVAILABLE."""
        before = self._told.get(client)
        if before is not None and before[0] == software and time.monotonic() - before[1] < AGAIN_SECONDS:
            return
        self._told[client] = software, time.monotonic()  # many members of a client join together
        self._told.move_to_end(client)
        if len(self._told) > MOST_TOLD:
            self._told.popitem(last=False)
        try:
            async with self._db.connection() as connection:
                named = {"now": await self._db.now_ms(connection), "kept_ms": KEPT_MS}
                parameters = {**named, **client._asdict(), **software._asdict()}
                await connection.execute(Q.remember_client_software.encode(), parameters)
        except BaseException:
            self._told.pop(client, None)
            raise

    async def find(self, clients: Collection[Client]) -> Mapping[Client, Software]:
        """What is known of some clients. Raises ProtocolError COORDINATOR_NOT_AVAILABLE."""
        asked = list(dict.fromkeys(clients))
        if not asked:
            return {}
        parameters = {
            "client_ids": [client.client_id for client in asked],
            "client_hosts": [client.client_host for client in asked],
        }
        async with self._db.connection() as connection:
            found = await self._db.rows(connection, Q.client_software, parameters)
        return {Client(client_id, host): Software(name, version) for client_id, host, name, version in found}
