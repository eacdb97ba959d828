"""Checking, exporting and trimming the chain of the audit."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kcoord.access.audit.encoding import GENESIS, Record, digest
from kcoord.access.audit.recording import Act, record
from kcoord.database.paging import INT64_MAX
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime

Q = queries("kcoord")

BATCH = 1_000
TRIM_BATCH = 5_000
MOST_PROBLEMS = 20
TRIM = "audit.trim"


@dataclass(frozen=True, slots=True)
class Chain:
    """What the database says of the whole chain: its end, and where it begins after records were removed.

    `pending`: records of committed transactions that are not sealed, which must not be.
    """

    seq: int
    hash: bytes
    removed_through: int = 0
    removed_hash: bytes = GENESIS
    removed: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True)
class Head:
    """The end of the chain as somebody kept it elsewhere."""

    seq: int
    hash: bytes

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash.hex()}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """What `str` wrote. Raises ValueError."""
        seq, _, written = text.partition(":")
        found = bytes.fromhex(written)
        if len(found) != len(GENESIS):
            raise ValueError("the hash must have 64 hexadecimal digits")
        return cls(int(seq), found)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, at which record."""

    seq: int
    text: str

    def __str__(self) -> str:
        return f"record {self.seq}: {self.text}"


@dataclass(slots=True)
class Verifier:
    """Checks records one after the other; `problems` has the first of what it found.

    Parameters: `chain` what the database says, None for a part of the chain that was exported. `heads`: ends that were
    kept elsewhere.
    """

    chain: Chain | None = None
    heads: Sequence[Head] = ()
    problems: list[Problem] = field(default_factory=list)
    records: int = 0
    last: Head | None = None
    _claimed: bool = False

    def __post_init__(self) -> None:
        if self.chain is not None:
            self.last = Head(self.chain.removed_through, self.chain.removed_hash)
            self._claimed = self.chain.removed_through == 0

    def check(self, found: Record) -> None:
        """Check the next record."""
        self.records += 1
        if self.last is not None:
            self._check_place(found, self.last)
        if digest(found) != found.hash:
            self._say(found.seq, "its content does not have the hash that is stored with it: it was changed")
        for head in self.heads:
            if head.seq == found.seq and head.hash != found.hash:
                self._say(found.seq, f"its hash is {found.hash.hex()}, and that of the head {head} is another")
        if self.chain is not None and found.act == TRIM and found.after is not None:
            self._claimed = self._claimed or json.loads(found.after) == _trimmed(self.chain)
        self.last = Head(found.seq, found.hash)

    def _check_place(self, found: Record, last: Head) -> None:
        if found.seq > last.seq + 1:
            some = "it is" if found.seq == last.seq + 2 else f"those from here to {found.seq - 1} are"
            self._say(last.seq + 1, f"{some} missing before record {found.seq}")
        elif found.seq <= last.seq:
            self._say(found.seq, f"it stands after record {last.seq}")
        elif found.prev != last.hash:
            self._say(found.seq, f"it does not follow record {last.seq} as that is now: one was changed or put in")

    def finish(self) -> list[Problem]:
        """Check the end; returns all problems."""
        end = self.last or Head(0, GENESIS)
        chain = self.chain
        if chain is not None and (chain.seq, chain.hash) != (end.seq, end.hash):
            if chain.seq > end.seq:
                self._say(end.seq + 1, f"the chain has {chain.seq} records, and those from here on are missing")
            else:
                self._say(end.seq, f"the chain should end with record {chain.seq} ({chain.hash.hex()})")
        if chain is not None and not self._claimed:
            through = chain.removed_through
            self._say(through + 1, f"no record says that those up to {through} were removed for their age")
        if chain is not None and chain.pending:
            self._say(end.seq + 1, f"{chain.pending} records were written past the chain and are not in it")
        for head in self.heads:
            if head.seq > end.seq:
                self._say(end.seq + 1, f"the head {head} was once the end: records up to {head.seq} are missing")
        return self.problems

    def _say(self, seq: int, text: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(seq, text))


def _trimmed(chain: Chain) -> dict[str, Any]:
    return {"through": chain.removed_through, "hash": chain.removed_hash.hex()}


def _check_all(verifier: Verifier, records: Iterable[Record]) -> None:
    for one in records:
        verifier.check(one)


class Audit:
    """The chain in the database. Every method may raise ProtocolError COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db
        self._keep_ms = runtime.config.int("audit.retention.ms")

    async def chain(self) -> Chain:
        """What the database says of the chain."""
        async with self._db.connection() as connection:
            return await self._chain(connection)

    async def _chain(self, connection: Connection) -> Chain:
        found = await self._db.record(connection, Chain, Q.read_audit_chain)
        if found is None:
            raise LookupError("the row of kcoord_auditchain is missing")
        return found

    async def verify(self, heads: Sequence[Head] = ()) -> Verifier:
        """Check every record against its hash, its neighbours and the ends of the chain; as of one instant."""
        async with self._db.snapshot() as connection:
            verifier = Verifier(await self._chain(connection), heads)
            async for some in self._read(connection, 0, INT64_MAX):
                await off_loop.run(len(some) * 10, _check_all, verifier, some)
        verifier.finish()
        return verifier

    async def export(self, since: int = 0, until: int = INT64_MAX) -> AsyncIterator[Sequence[Record]]:
        """The records from `since` (ms, inclusive) until `until` (ms, exclusive), in the order of the chain."""
        async with self._db.snapshot() as connection:
            async for some in self._read(connection, since, until):
                yield some

    async def _read(self, connection: Connection, since: int, until: int) -> AsyncIterator[Sequence[Record]]:
        after = 0
        while True:
            parameters = {"after": after, "since": since, "until": until, "limit": BATCH}
            found = await self._db.records(connection, Record, Q.read_audit, parameters)
            if found:
                yield found
                after = found[-1].seq
            if len(found) < BATCH:
                return

    async def trim(self) -> int:
        """Remove records older than the setting audit.retention.ms, in batches; returns how many.

        Each batch is itself recorded, with the hash from which the chain goes on.
        """
        removed = 0
        while True:
            gone = await self._db.transaction(self._trim)
            removed += gone
            if gone < TRIM_BATCH:
                return removed

    async def _trim(self, connection: Connection) -> int:
        before = await self._db.now_ms(connection) - self._keep_ms
        gone, through, head = await self._db.one(connection, Q.trim_audit, {"before": before, "most": TRIM_BATCH})
        if gone:
            after = {"through": through, "hash": bytes(head).hex()}
            act = Act(TRIM, "audit", after=after, reason=f"audit.retention.ms: {gone} records are older")
            await record(self._db, connection, act)
        return int(gone)


def verify_lines(lines: Iterator[Record], heads: Sequence[Head] = ()) -> Verifier:
    """Check an exported part of the chain."""
    verifier = Verifier(None, heads)
    _check_all(verifier, lines)
    verifier.finish()
    return verifier
