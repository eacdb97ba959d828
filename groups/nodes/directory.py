"""Where groups are coordinated: what this process knows of the other nodes, and the answer to FindCoordinator.

Source: offsets.md 8.1.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, replace
from typing import Annotated
from urllib.parse import urlsplit

from groups.core.model.group import partition_of
from groups.nodes.store import NodeStore
from groups.nodes.view import Node, View
from kcoord.config import ANY_ADDRESS, Config
from kcoord.constants import RENEWAL
from kcoord.control.rest.answers import Int32, Natural32, doc
from kcoord.door.http.addresses import advertised_url
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import NamedCoordinator

BELIEVED_RENEWALS = 2
"""After this many intervals of a renewal without a look at the other nodes a process looks before it answers."""


@dataclass(frozen=True, slots=True)
class GroupCoordinator:
    """Where a group is coordinated."""

    partition: Annotated[Natural32, doc("The coordinator partition of the group.")]
    node_id: str
    host: str
    port: Int32
    url: str


def node_name(config: Config) -> str:
    """The name of this server among the nodes."""
    return config.str("node.id") or f"{socket.gethostname()}:{config.int('port')}"


def node_url(config: Config) -> str:
    """Where clients reach this server; "" if that depends on where they are."""
    if not config.str("advertised.url") and config.str("host") in ANY_ADDRESS:
        return ""
    return advertised_url(config)


def kafka_address(config: Config) -> tuple[str, int]:
    """Where Kafka clients reach this server: host, "" if that depends on where they are, and port, 0 without one."""
    port = config.int("kafka.port")
    if not port:
        return "", 0
    host = config.str("kafka.advertised.host")
    if not host and config.str("kafka.host") not in ANY_ADDRESS:
        host = config.str("kafka.host")
    return host, config.int("kafka.advertised.port") or port


class NodeDirectory:
    """The nodes and who owns what, as this process saw them last."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._config = runtime.config
        self._store = runtime.get(NodeStore)
        self._believed_seconds = BELIEVED_RENEWALS * runtime.config.int(RENEWAL) / 1000
        self._partitions = runtime.config.int("offsets.topic.num.partitions")
        self._seen_at = 0.0
        self.view: View | None = None

    def adopt(self, view: View) -> None:
        """What a node saw when it renewed its lease."""
        self.view, self._seen_at = view, time.monotonic()

    async def find(self) -> View:
        """Nodes and partitions, not much older than a renewal. Raises ProtocolError COORDINATOR_NOT_AVAILABLE."""
        if self.view is None or time.monotonic() - self._seen_at > self._believed_seconds:
            async with self._db.connection() as connection:
                self.adopt(await self._store.view(connection, await self._store.now(connection)))
        assert self.view is not None
        return self.view

    async def coordinator_of(self, group_id: str, came_by: str) -> GroupCoordinator | None:
        """The coordinator of a group; None: nobody owns its partition now.

        `came_by`: the address that the request came by, for a node that does not know its own. With the routing `any`
        this server stands in for an owner that is missing: it answers for every group. Raises ProtocolError.
        """
        partition = partition_of(group_id, self._partitions)
        view = await self.find()
        owner = view.owner_of(partition)
        if owner is not None:
            return _coordinator(partition, owner, owner.url or advertised_url(self._config, came_by))
        if self._config.only_owners and partition in view.by_partition:
            return None
        return self.here(partition, came_by)

    async def shown_for(self, group_id: str, came_by: str) -> GroupCoordinator:
        """As `coordinator_of`; this server if nobody owns the partition."""
        found = await self.coordinator_of(group_id, came_by)
        return found or self.here(partition_of(group_id, self._partitions), came_by)

    def named(self, partition: int, owner: Node) -> NamedCoordinator:
        """An owner that knows its address, as a problem names it."""
        found = _coordinator(partition, owner, owner.url)
        return {"node_id": found.node_id, "host": found.host, "port": found.port, "url": found.url}

    def here(self, partition: int, came_by: str) -> GroupCoordinator:
        """This server as a coordinator."""
        return replace(named_by(advertised_url(self._config, came_by)), partition=partition)


def named_by(url: str) -> GroupCoordinator:
    """A server that is known by its address only."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return GroupCoordinator(-1, f"[{host}]:{port}" if ":" in host else f"{host}:{port}", host, port, url)


def _coordinator(partition: int, owner: Node, url: str) -> GroupCoordinator:
    return replace(named_by(url), partition=partition, node_id=owner.node_id)
