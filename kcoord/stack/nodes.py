"""The servers of one stack: their names, their own ports, and what each is told of itself.

One server is called `server` and has the shared port only. Several are `server-1` … `server-N`; each also answers on a
port of its own, the shared one plus its number, which it advertises: there a client reaches that server and no other.
For Kafka clients the first server has `kafka.port`, the second the next one, and so on.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass

from kcoord.config import ANY_ADDRESS, Config
from kcoord.http.addresses import http_url
from kcoord.setting_table import BY_NAME
from kcoord.stack.problem import StartProblem

LAST_PORT = 65_535
NODE_ID, ADVERTISED_URL, KAFKA_PORT = (BY_NAME[name].env for name in ("node.id", "advertised.url", "kafka.port"))


@dataclass(frozen=True, slots=True)
class Node:
    """One server. `own_port`: None if it has only the shared one. `identity`: variables of its environment.

    `kafka_port`: that for Kafka clients, 0 without one.
    """

    name: str
    own_port: int | None
    identity: Mapping[str, str]
    kafka_port: int = 0

    @property
    def options(self) -> tuple[str, ...]:
        """What its command line adds."""
        return () if self.own_port is None else ("--own-port", str(self.own_port))


def nodes_of(config: Config) -> list[Node]:
    """All servers of a stack with these settings. Raises StartProblem if they cannot be told apart."""
    count, port = config.int("nodes"), config.int("port")
    if count == 1:
        return [Node("server", None, {}, config.int("kafka.port"))]
    if port + count > LAST_PORT:
        raise StartProblem(
            f"KCOORD_NODES={count} needs the ports {port} to {port + count}; choose a KCOORD_PORT below "
            f"{LAST_PORT - count + 1}"
        )
    if config.str("advertised.url"):
        raise StartProblem(
            f"KCOORD_ADVERTISED_URL is one address, but each of the {count} servers of KCOORD_NODES needs its own; "
            "unset it, and behind a proxy set KCOORD_HOST=0.0.0.0: clients are then told the address they came by"
        )
    if config.int("kafka.port") + count - 1 > LAST_PORT or config.int("kafka.advertised.port"):
        raise StartProblem(
            f"KCOORD_NODES={count} needs {count} ports for Kafka clients from KCOORD_KAFKA_PORT on; choose one below "
            f"{LAST_PORT - count + 2} and unset KCOORD_KAFKA_ADVERTISED_PORT, which is a single one"
        )
    return [_node(config, number) for number in range(1, count + 1)]


def _node(config: Config, number: int) -> Node:
    host, port = config.str("host"), config.int("port") + number
    identity = {NODE_ID: f"{config.str('node.id') or socket.gethostname()}-{number}"}
    if host not in ANY_ADDRESS:
        identity[ADVERTISED_URL] = http_url(host, port)
    kafka_port = config.int("kafka.port")
    if kafka_port:
        kafka_port += number - 1
        identity[KAFKA_PORT] = str(kafka_port)
    return Node(f"server-{number}", port, identity, kafka_port)
