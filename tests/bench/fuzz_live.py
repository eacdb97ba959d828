"""Mutated requests of Kafka clients, sent to a server: `python -m tests.bench.fuzz_live [--frames N] [--seconds S]`.

Frames are those of `tests.bench.fuzz`, most of them after a login, several on a connection until the server closes it.
The server and its Postgres are of this run alone. It fails if the server ends, stops answering, or logs a failure; it
prints what became of the connections and by how much the server grew after the first quarter.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import struct
import time
from collections import Counter
from dataclasses import dataclass, field

import httpx

from tests.bench.fuzz import examples, mutated
from tests.bench.kafka import frames
from tests.bench.usage import rss_of
from tests.support.http_members import make_token
from tests.support.postgres import own_postgres
from tests.support.processes import Running, free_port, start_server

CONNECTIONS = 24
MOST_FRAMES = 30
"""Of one connection."""
UNCHANGED = 0.7
"""The part of the frames that is sent as it is: they reach the handlers."""
PATIENCE_SECONDS = 0.3
"""How long answers are waited for: some requests are held."""
ALIVE_SECONDS = 30.0
FAILURES = re.compile(r"^.*(?:request_failed|Traceback|Task exception).*$", re.MULTILINE)
READ = re.compile(r'^kcoord_kafka_requests_total\{api="(?!sasl)[^}]*\} (\S+)$', re.MULTILINE)
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
SETTINGS = {
    "KCOORD_LOG_LEVEL": "warning",
    "KCOORD_TOKEN_CACHE_MS": 600_000,
    "KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 0,
}


@dataclass
class Fuzz:
    """A run. `ends`: how connections ended; `read`: frames that the server has read."""

    port: int
    token: str
    frames: int
    until: float
    chance: random.Random
    known: list[bytes]
    read: int = 0
    ends: Counter[str] = field(default_factory=Counter)

    def frame(self) -> bytes:
        """The next one, with its size."""
        raw = self.chance.choice(self.known)
        raw = raw if self.chance.random() < UNCHANGED else mutated(raw, self.chance)
        return struct.pack(">i", len(raw)) + raw

    async def work(self) -> None:
        """One connection after the other, until there were enough frames or the time is up."""
        while self.read < self.frames and time.monotonic() < self.until:
            self.ends[await self.connection()] += 1

    async def connection(self) -> str:
        """Frames on a new connection; how it ended."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return "not accepted"
        try:
            if self.chance.random() < 0.95:
                writer.write(frames.log_in(self.token))
            for _ in range(self.chance.randint(1, MOST_FRAMES)):
                writer.write(self.frame())
                await asyncio.sleep(0)
                if reader.at_eof() or writer.transport.is_closing():
                    break
            async with asyncio.timeout(PATIENCE_SECONDS):
                while await reader.read(65_536):
                    pass
            return "closed by the server"
        except TimeoutError:
            return "open"
        except OSError:
            return "closed by the server"
        finally:
            writer.transport.abort()

    async def is_alive(self) -> bool:
        """Whether a new client is served."""
        async with asyncio.timeout(ALIVE_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.write(API_VERSIONS)
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            answer = await reader.readexactly(size)
            writer.transport.abort()
            return answer[:6] == struct.pack(">ih", 1, 0)


def read_by(server: Running) -> int:
    """How many frames the server has read, by its metrics; those of logins are left out."""
    text = httpx.get(f"{server.url}/metrics", timeout=ALIVE_SECONDS).text
    return sum(int(float(value)) for value in READ.findall(text))


async def run(fuzz: Fuzz, server: Running) -> tuple[int, int]:
    """Send everything; returns the server's resident bytes after a quarter, and at the end."""
    began, whole = time.monotonic(), fuzz.until - time.monotonic()
    workers = [asyncio.create_task(fuzz.work()) for _ in range(CONNECTIONS)]
    early = 0
    while not all(worker.done() for worker in workers):
        await asyncio.wait(workers, timeout=1)
        fuzz.read = await asyncio.to_thread(read_by, server)
        part = max(fuzz.read / fuzz.frames, (time.monotonic() - began) / whole)
        if not early and part >= 0.25:
            early = rss_of(server.pid)
        assert server.popen.poll() is None, server.report("it ended")
    await asyncio.gather(*workers)
    assert await fuzz.is_alive(), "a new client is not served"
    return early, rss_of(server.pid)


def main() -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fuzz_live", description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance, port = random.Random(given.seed), free_port()
    known = [frame for _, _, frame in examples(chance)]
    with (
        own_postgres() as postgres,
        start_server(postgres.conninfo, env=SETTINGS | {"KCOORD_KAFKA_PORT": port}) as server,
    ):
        server.wait_ready()
        began = time.monotonic()
        fuzz = Fuzz(port, make_token(postgres.conninfo), given.frames, began + given.seconds, chance, known)
        early, late = asyncio.run(run(fuzz, server))
        failures = FAILURES.findall(server.output)
    print(f"{fuzz.read:,} frames read in {time.monotonic() - began:.0f} s; connections: {dict(fuzz.ends)}")
    print(f"resident memory {early / 1e6:.0f} MB after a quarter, {late / 1e6:.0f} MB at the end; it still answers")
    for line in failures[:20]:
        print(line)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
