"""Mutated requests of Kafka clients, sent to a server: `python -m tests.bench.fuzz_live [--frames N] [--seconds S]`.

Frames are those of `tests.bench.fuzz`, most of them after a login, several on a connection until the server closes it.
The server and its Postgres are of this run alone. It fails if the server ends, stops answering, or logs a failure; it
prints what became of the connections, and the memory of the server at each eighth of the frames. What a server
remembers up to a bound is filled before that, so that it is not taken for growth: heartbeats, and schemas, of which it
loads one when it first needs it, also to say that a version is not served.
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

from kcoord.door.kafka.gateway import REMEMBERED
from tests.bench.fuzz import EXAMPLES, examples, mutated
from tests.bench.kafka import frames
from tests.bench.usage import rss_of
from tests.support.http_members import make_token
from tests.support.postgres import own_postgres
from tests.support.processes import Running, free_port, start_server

CONNECTIONS = 48
MOST_FRAMES = 30
"""Of one connection, sent together."""
UNCHANGED, NUDGED = 0.7, 0.2
"""The part of the frames that is sent as it is, and that in which bytes get other values: most reach the handlers."""
PATIENCE_SECONDS = 0.3
"""How long the next answer is waited for: some requests are held."""
ALIVE_SECONDS = 30.0
PARTS = 8
FAILURES = re.compile(r"^.*(?:request_failed|Traceback|Task exception).*$", re.MULTILINE)
READ = re.compile(r'^kcoord_kafka_requests_total\{api="(?!sasl)[^}]*\} (\S+)$', re.MULTILINE)
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
LOGIN_ANSWERS = 2
KEYS, VERSIONS = range(100), range(20)
"""More than Kafka has."""
SETTINGS = {
    "KCOORD_LOG_LEVEL": "warning",
    "KCOORD_TOKEN_CACHE_MS": 600_000,
    "KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 0,
}


def nudged(frame: bytes, chance: random.Random) -> bytes:
    """The frame with one to four of its bytes changed, none of the API or the version."""
    changed = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        changed[chance.randrange(4, len(changed))] = chance.randrange(256)
    return bytes(changed)


@dataclass
class Fuzz:
    """A run. `known`: frames, each with whether it may be held, so that nothing after it on its connection is read.

    `read`: frames that the server has read; `ends`: how connections ended.
    """

    port: int
    token: str
    frames: int
    until: float
    chance: random.Random
    known: list[tuple[bytes, bool]]
    read: int = 0
    ends: Counter[str] = field(default_factory=Counter)

    def batch(self) -> list[bytes]:
        """The frames of a connection."""
        found: list[bytes] = []
        for _ in range(self.chance.randint(1, MOST_FRAMES)):
            raw, waits = self.chance.choice(self.known)
            kind = self.chance.random()
            if kind >= UNCHANGED:
                raw = (nudged if kind < UNCHANGED + NUDGED else mutated)(raw, self.chance)
            found.append(struct.pack(">i", len(raw)) + raw)
            if waits:
                break
        return found

    async def work(self) -> None:
        """One connection after the other, until there were enough frames or the time is up."""
        while self.read < self.frames and time.monotonic() < self.until:
            self.ends[await self.connection(self.batch(), logs_in=self.chance.random() < 0.95)] += 1

    async def connection(self, batch: list[bytes], *, logs_in: bool = True, patience: float = PATIENCE_SECONDS) -> str:
        """Frames on a new connection; how it ended."""
        expected = len(batch)
        if logs_in:
            batch = [frames.log_in(self.token), *batch]
            expected += LOGIN_ANSWERS
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return "not accepted"
        try:
            writer.write(b"".join(batch))
            for _ in range(expected):
                async with asyncio.timeout(patience):
                    (size,) = struct.unpack(">i", await reader.readexactly(4))
                    await reader.readexactly(size)
            return "all answered"
        except TimeoutError:
            return "held"
        except (OSError, asyncio.IncompleteReadError):
            return "closed by the server"
        finally:
            writer.transport.abort()

    async def fill(self) -> None:
        """Send as many different heartbeats as a server remembers, and every version of every API."""
        beats = [frames.heartbeat(f"nobody-{number}", "member", 1) for number in range(REMEMBERED)]
        probes = [struct.pack(">ihhih", 10, key, version, 1, -1) for key in KEYS for version in VERSIONS]
        usual = [struct.pack(">i", len(raw)) + raw for raw, _ in self.known[::EXAMPLES]]
        left = [([one], PATIENCE_SECONDS) for one in usual] + [([one], ALIVE_SECONDS) for one in probes]
        left += [(beats[at : at + 1_000], ALIVE_SECONDS) for at in range(0, REMEMBERED, 1_000)]

        async def work() -> None:
            while left:
                batch, patience = left.pop()
                await self.connection(batch, patience=patience)

        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))

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


async def run(fuzz: Fuzz, server: Running) -> list[int]:
    """Send everything; returns the server's resident bytes when it is full, and at the end of each part."""
    print(f"resident memory of a new server: {rss_of(server.pid) / 1e6:.1f} MB", flush=True)
    await fuzz.fill()
    filled, began, whole = read_by(server), time.monotonic(), fuzz.until - time.monotonic()
    sizes = [rss_of(server.pid)]
    workers = [asyncio.create_task(fuzz.work()) for _ in range(CONNECTIONS)]
    try:
        while not all(worker.done() for worker in workers):
            await asyncio.wait(workers, timeout=1)
            fuzz.read = await asyncio.to_thread(read_by, server) - filled
            part = max(fuzz.read / fuzz.frames, (time.monotonic() - began) / whole)
            if part * PARTS >= len(sizes) < PARTS:
                sizes.append(rss_of(server.pid))
                print(f"{fuzz.read:,} frames: {sizes[-1] / 1e6:.1f} MB", flush=True)
            assert server.popen.poll() is None, server.report("it ended")
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
    assert await fuzz.is_alive(), "a new client is not served"
    return [*sizes, rss_of(server.pid)]


def main() -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fuzz_live", description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance, port = random.Random(given.seed), free_port()
    known = [(frame, api.waits) for api, _, frame in examples(chance)]
    with (
        own_postgres() as postgres,
        start_server(postgres.conninfo, env=SETTINGS | {"KCOORD_KAFKA_PORT": port}) as server,
    ):
        server.wait_ready()
        began = time.monotonic()
        fuzz = Fuzz(port, make_token(postgres.conninfo), given.frames, began + given.seconds, chance, known)
        sizes = asyncio.run(run(fuzz, server))
        failures = FAILURES.findall(server.output)
    print(f"{fuzz.read:,} frames read in {time.monotonic() - began:.0f} s; connections: {dict(fuzz.ends)}")
    shown = ", ".join(f"{size / 1e6:.1f}" for size in sizes)
    print(f"resident memory in MB, when it was full and at each eighth: {shown}; it still answers")
    for line in failures[:20]:
        print(line)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
