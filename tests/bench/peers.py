"""Measure clients that connect and send nothing: `python -m tests.bench.peers [COUNT]`.

A server with the default settings; memory and connections before, with all of them, and after the limits have passed.
A second line says what watching costs: one look at that many connections that are in order, as a part of a second.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import sys
import time
from pathlib import Path

import httpx

from kcoord.config import Config
from kcoord.http.peers import Peer, PeerLimits, Peers, Phase, Reason
from tests.support.database import ephemeral_database
from tests.support.processes import Running, start_server

COUNT = 2_000
ROUNDS = 2
SENT = (
    b"",
    b"GET /livez HTTP/1.1\r\nHost: a\r\n",
    b"POST /v1/heartbeats HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{",
)
LOOKS = 20


def memory(server: Running, line: str = "VmRSS") -> float:
    """Resident memory in MiB, or with VmHWM the most that it was."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(status.partition(f"{line}:")[2].split()[0]) / 1024


def connections(server: Running) -> int:
    """Open connections without the one that asks."""
    text = httpx.get(f"{server.url}/metrics", timeout=60).text
    return int(float(text.partition("\nkcoord_http_connections ")[2].split("\n")[0])) - 1


def tell(what: str, server: Running) -> None:
    """One line of figures."""
    print(f"{what:20s} {memory(server):6.1f} MiB (at most {memory(server, 'VmHWM'):.1f})  {connections(server)} open")


def silent_peers(server: Running, count: int) -> None:
    """Open `count` connections, a third each: nothing, half a head, half a body (without a token)."""
    with contextlib.ExitStack() as stack:
        started = time.perf_counter()
        for number in range(count):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", server.port or 0)))
            peer.sendall(SENT[number % len(SENT)])
        tell("all connected", server)
        while left := connections(server):
            if time.perf_counter() - started > 300:
                raise SystemExit(f"{left} connections are still open after 300 s")
            time.sleep(0.5)
        tell(f"after {time.perf_counter() - started:.1f} s", server)


def memory_and_connections(count: int) -> None:
    """ROUNDS times `count` clients; what a round leaves behind shows in the next one."""
    with ephemeral_database() as conninfo, start_server(conninfo) as server:
        server.wait_ready()
        for _ in range(20):
            httpx.get(f"{server.url}/metrics")
        tell("before", server)
        for _ in range(ROUNDS):
            silent_peers(server, count)


class InOrder:
    """A connection that waits for us."""

    def __init__(self, limits: PeerLimits) -> None:
        self.peer = Peer(limits)
        self.peer.enter(Phase.WORK)

    def unread(self) -> int:
        """Nothing."""
        return 0

    def is_our_turn(self) -> bool:
        """No."""
        return False

    def give_up(self, reason: Reason) -> None:
        """It is not."""
        raise AssertionError(reason)


def watching(count: int) -> None:
    """What one look at `count` connections takes."""
    peers = Peers(PeerLimits.of(Config({"http.max.connections": count})))
    for _ in range(count):
        peers.admit(InOrder(peers.limits))
    peers.watch(0.0)
    started = time.perf_counter()
    for look in range(1, LOOKS + 1):
        peers.watch(look * peers.limits.tick)
    each = (time.perf_counter() - started) / LOOKS
    print(f"watching {count}: {each * 1_000:.2f} ms each, {100 * each / peers.limits.tick:.2f} % of a processor")


if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    memory_and_connections(wanted)
    watching(wanted)
