"""The use-cases of transactional commits: TxnOffsetCommit, the end of a transaction, and who may take part.

What a transaction commits is pending until its end, which is one database transaction over all its groups: if the
process dies during it nothing has ended, and sending the same end again ends everything. HTTP and the wire protocol
count commands, and raise what was refused, alike.

Source: offsets.md 4; KIP-98 for producers and their epochs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from groups.core.model.events import MOST_TOPICS, EventKind, GroupEvent
from groups.engine.service import GroupService
from groups.store.locked import LockedGroup
from kcoord.database.counters import Counted, count
from kcoord.database.pool import MAX_ATTEMPTS, Connection
from kcoord.metrics import COMMANDS, TRANSACTIONS_ENDED
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.commits.service import provenance, reply_of
from offsets.commits.transactions.store import Held, StartOver, TransactionStore
from offsets.core.commit import Commit, membership_half, records_of
from offsets.core.transactions import (
    Producer,
    Standing,
    Transaction,
    TransactionEnd,
    before_epochs,
    foreign,
    overdue,
    prevailing,
    standing,
    successor,
)
from offsets.core.types import ChangeKind, Millis, OffsetCommitReply

T = TypeVar("T")


async def accepted(work: Awaitable[OffsetCommitReply], *, knows_epochs: bool = False) -> OffsetCommitReply:
    """The reply to a commit. Raises ProtocolError if it was refused as a whole.

    `knows_epochs`: the client knows the errors of TxnOffsetCommit 6; HTTP has those of the versions before.
    """
    reply = await work
    if reply.error is not Error.NONE:
        raise ProtocolError(reply.error if knows_epochs else before_epochs(reply.error), reply.detail)
    return reply


async def counted(command: str, work: Awaitable[T]) -> T:
    """Count a command with its outcome. Raises what the work raises."""
    try:
        result = await work
    except ProtocolError as error:
        COMMANDS.labels(command, error.error.name).inc()
        raise
    COMMANDS.labels(command, Error.NONE.name).inc()
    return result


log = structlog.get_logger(__name__)


FENCED, ABANDONED = "fenced", "abandoned"
"""Why a transaction was aborted that no client asked to abort."""

ABANDONED_BATCH = 100
FORGOTTEN_BATCH = 10_000
MAX_BATCHES = 10
"""The most batches that one run takes, so that it ends; the rest is left to the next run."""


class AbortFailed(Exception):
    """Some abandoned transactions could not be aborted; the others were not held up."""


class TransactionService:
    """Transactional commits, for one process.

    Methods may raise ProtocolError COORDINATOR_NOT_AVAILABLE. Those that take a `Producer` raise INVALID_PRODUCER_EPOCH
    if another one has taken over its transactional id, and INVALID_PRODUCER_ID_MAPPING if its id does not belong to the
    transactional id.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._store = runtime.get(TransactionStore)
        self._timeout_ms = runtime.config.int("transaction.max.timeout.ms")
        self._expiration_ms = runtime.config.int("transactional.id.expiration.ms")

    async def init(self, transactional_id: str, expected: Producer | None = None) -> Producer:
        """InitProducerId: the producer to use from now on. The previous producer of the id is fenced, and what it left
        pending is aborted.

        `expected`: the producer that the caller takes itself for (KIP-360). Raises INVALID_PRODUCER_EPOCH or
        INVALID_PRODUCER_ID_MAPPING if another one has taken over since.
        """
        self._groups.check_active()

        async def work(held: Held) -> tuple[Producer, int]:
            if expected is not None:
                standing(held.producer, expected)
            if held.producer is not None:
                following = await self._following(held, held.producer)
                await self._abort(held, following, FENCED)
            else:
                following = Producer(transactional_id, await self._store.fresh_id(held.connection), 0)
                if not await self._store.register(held, following):
                    raise StartOver
            return following, len(held.pending)

        following, aborted = await self._hold(transactional_id, work)
        self._tell(transactional_id, aborted, FENCED)
        return following

    async def init_without_id(self) -> Producer:
        """InitProducerId without a transactional id: an unused producer id, which nobody can take over."""
        async with self._db.connection() as connection:
            return Producer("", await self._store.fresh_id(connection), 0)

    async def begin(self, producer: Producer) -> None:
        """AddOffsetsToTxn: what a transaction does before its first commit. The commit would do the same."""
        self._groups.check_active()
        await self._take_part(producer)

    async def commit(self, producer: Producer, commit: Commit) -> OffsetCommitReply:
        """TxnOffsetCommit: offsets that are committed if and when the transaction is (offsets.md 4.1).

        The first commit of a transactional id registers its producer. Errors of the group are replies.
        """
        if not commit.is_for_group:
            return OffsetCommitReply(Error.NONE)
        self._groups.check_active()
        if not commit.group_id:
            return OffsetCommitReply(Error.INVALID_GROUP_ID, detail="group_id must not be empty")
        await self._take_part(producer)

        async def write(locked: LockedGroup) -> OffsetCommitReply:
            registered = await self._store.share(locked.connection, producer.transactional_id)
            try:
                standing(registered, producer)
            except ProtocolError as refusal:  # another producer took over in between
                return OffsetCommitReply(refusal.error, detail=refusal.detail)
            origin = provenance(commit, locked, ChangeKind.TXN_COMMIT, producer.transactional_id)
            await self._store.write(locked, producer, records_of(commit, locked.now), origin)
            return OffsetCommitReply(Error.NONE)

        return reply_of(await self._groups.execute(membership_half(commit, transactional=True), write))

    async def end(self, producer: Producer, *, committed: bool, goes_on: bool = False) -> TransactionEnd:
        """The end marker: commit or abort what is pending, in all groups at once (offsets.md 4.3).

        Sent again it finds nothing, which is a success, as it is for a producer that never committed anything. A
        producer that takes over with it has nothing pending: its predecessor's offsets are aborted.

        `goes_on`: the producer is given a new epoch (offsets.md 4.5), so it has to be registered. An end that it
        sends again with the epoch of before is answered as before, unless something came after it; INVALID_TXN_STATE if
        it says the opposite.
        """
        self._groups.check_active()
        end = self._end_and_go_on if goes_on else self._end

        async def work(held: Held) -> tuple[TransactionEnd, int]:
            return await end(held, producer, committed=committed)

        ended, aborted = await self._hold(producer.transactional_id, work)
        self._tell(producer.transactional_id, aborted, FENCED)
        if ended.ended:
            TRANSACTIONS_ENDED.labels("committed" if committed else "aborted").inc()
        return ended

    async def _end(self, held: Held, producer: Producer, *, committed: bool) -> tuple[TransactionEnd, int]:
        """The end, and how many offsets of a predecessor it aborts."""
        match standing(held.producer, producer):
            case Standing.NEW:
                if await self._store.is_known(held.connection, producer.producer_id):
                    raise foreign(producer)  # else a misspelt transactional id would lose its offsets
                return TransactionEnd(), 0
            case Standing.SUCCESSOR:
                await self._abort(held, producer, FENCED)
                return TransactionEnd(), len(held.pending)
            case Standing.CURRENT:
                winners = prevailing(held.pending) if committed else []
                await self._store.end(held, winners)
                await self._store.touch(held)
                return TransactionEnd(len(held.pending), len(winners)), 0

    async def _end_and_go_on(self, held: Held, producer: Producer, *, committed: bool) -> tuple[TransactionEnd, int]:
        """As `_end`. Raises INVALID_PRODUCER_EPOCH or INVALID_PRODUCER_ID_MAPPING unless the producer is registered."""
        if held.producer is None:
            raise foreign(producer)
        last = None if held.pending else await self._store.last_end(held)
        if last is not None and last.is_of(producer, committed=committed):
            return TransactionEnd(following=held.producer), 0
        if standing(held.producer, producer) is not Standing.CURRENT:
            raise ProtocolError(
                Error.INVALID_PRODUCER_EPOCH,
                f"transactional id {producer.transactional_id!r} is at epoch {held.producer.producer_epoch}: "
                "initialize it, and use the producer_epoch of the response",
            )
        winners = prevailing(held.pending) if committed else []
        await self._store.end(held, winners)
        following = await self._following(held, producer)
        await self._store.replace(held, following, ended=committed)
        return TransactionEnd(len(held.pending), len(winners), following), 0

    async def _following(self, held: Held, producer: Producer) -> Producer:
        """The producer that takes over from this one."""
        following = successor(producer)
        return following or Producer(producer.transactional_id, await self._store.fresh_id(held.connection), 0)

    async def transactions(
        self, transactional_ids: Sequence[str] | None = None, *, longer_ms: Millis = -1
    ) -> list[Transaction]:
        """The transactions of these transactional ids, or of all; from 0 on only those open for more than `longer_ms`.

        Raises COORDINATOR_NOT_AVAILABLE.
        """
        async with self._db.connection() as connection:
            found = await self._store.transactions(connection, transactional_ids)
            now = await self._db.now_ms(connection)
        return [each for each in found if longer_ms < 0 or now - (each.opened_at or now) > longer_ms]

    async def abort_abandoned(self) -> int:
        """Abort transactions open for `transaction.max.timeout.ms` or longer, and fence their producers; returns their
        number. Raises AbortFailed after all others were handled; ProtocolError when the database is unavailable.
        """
        aborted, failed = 0, set[str]()
        for _ in range(MAX_BATCHES):
            async with self._db.connection() as connection:
                before = await self._db.now_ms(connection) - self._timeout_ms
            found = await self._store.abandoned(before, ABANDONED_BATCH + len(failed))
            for transactional_id in (name for name in found if name not in failed):
                try:
                    aborted += await self._abort_overdue(transactional_id)
                except ProtocolError as error:
                    log.warning("abort_failed", transactional_id=transactional_id, reason=error.detail)
                    failed.add(transactional_id)
            if len(found) < ABANDONED_BATCH:
                break
        if failed:
            names = ", ".join(sorted(failed)[:10])
            raise AbortFailed(f"{len(failed)} abandoned transactions could not be aborted: {names}")
        return aborted

    async def forget_idle(self) -> int:
        """Forget producers that have ended nothing for `transactional.id.expiration.ms` (KIP-98); returns their number.

        One that comes back is new: only a producer that it meets can fence it.
        """
        async with self._db.connection() as connection:
            before = await self._db.now_ms(connection) - self._expiration_ms
        forgotten = 0
        for _ in range(MAX_BATCHES):
            batch = await self._store.forget(before, FORGOTTEN_BATCH)
            forgotten += batch
            if batch < FORGOTTEN_BATCH:
                break
        return forgotten

    async def _abort_overdue(self, transactional_id: str) -> bool:
        async def work(held: Held) -> int:
            if held.producer is None or not overdue(held.pending, held.now, self._timeout_ms):
                return 0  # it ended in between
            await self._abort(held, await self._following(held, held.producer), ABANDONED)
            await count(held.connection, Counted.TRANSACTIONS_ABANDONED, 1)
            return len(held.pending)

        aborted = await self._hold(transactional_id, work)
        self._tell(transactional_id, aborted, ABANDONED)
        return aborted > 0

    async def _take_part(self, producer: Producer) -> None:
        """Before asking the group: register a first producer, let a successor take over, refuse a fenced one."""
        async with self._db.connection() as connection:
            registered = await self._store.find(connection, producer.transactional_id)
        if standing(registered, producer) is Standing.CURRENT:
            return

        async def work(held: Held) -> int:
            position = standing(held.producer, producer)
            if position is Standing.SUCCESSOR:
                await self._abort(held, producer, FENCED)
                return len(held.pending)
            if position is Standing.NEW and not await self._store.register(held, producer):
                if await self._store.find(held.connection, producer.transactional_id) is None:
                    raise foreign(producer)
                raise StartOver
            return 0

        aborted = await self._hold(producer.transactional_id, work)
        self._tell(producer.transactional_id, aborted, FENCED)

    async def _abort(self, held: Held, following: Producer, cause: str) -> None:
        """Abort what is pending, and fence the producer that wrote it; each group gets an event."""
        await self._store.replace(held, following)
        for group in held.groups:
            gone = [offset.topic for offset in held.pending if offset.group == group.pk]
            if not gone:
                continue
            detail: dict[str, object] = {"transactional_id": following.transactional_id, "cause": cause}
            detail |= {"partitions": len(gone), "topics": sorted(set(gone))[:MOST_TOPICS]}
            event = GroupEvent(EventKind.TRANSACTION_ABORTED, group.generation_id, detail=detail)
            await self._groups.record(held.connection, group.group_id, [event], held.now)

    async def _hold(self, transactional_id: str, work: Callable[[Held], Awaitable[T]]) -> T:
        """Run `work` with the transactional id and its groups locked; what it returns was committed."""

        async def run(connection: Connection) -> T:
            return await work(await self._store.lock(connection, transactional_id))

        for _ in range(MAX_ATTEMPTS):
            try:
                return await self._db.transaction(run, key=f"transactional id {transactional_id}")
            except StartOver:
                continue
        raise ProtocolError(
            Error.COORDINATOR_NOT_AVAILABLE,
            f"other requests of transactional id {transactional_id!r} kept interfering; send this one "
            "again when they are done",
        )

    def _tell(self, transactional_id: str, aborted: int, outcome: str) -> None:
        """Pending offsets were aborted without their producer asking: operators want to know."""
        if aborted:
            if outcome == FENCED:
                TRANSACTIONS_ENDED.labels(outcome).inc()
            log.warning("transaction_aborted", transactional_id=transactional_id, offsets=aborted, reason=outcome)
