"""The lane that says what became of items, and renews the locks of those that are being worked on.

Settlements are sent with the next acquire, or a moment later on their own; those that may not have arrived are sent
again: the service knows by the lock what it has settled. Source: http-api.md "settle".
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kcoord.client.core import wire
from kcoord.client.core.backoff import Backoff
from kcoord.client.core.condition import Condition
from kcoord.client.core.effects import Lanes, Wait
from kcoord.client.core.lane import Lane
from kcoord.client.core.link import Link
from kcoord.client.core.share.held import Delivery, Held, Lock, Phase, ranges_of
from kcoord.client.errors import InvalidRecordStateError, KcoordError, error_of
from kcoord.client.share_config import ShareConsumerConfig
from kcoord.client.types import Acknowledged, Item
from kcoord.protocol.errors import BY_CODE, Error, ProtocolError

log = logging.getLogger("kcoord.client")

GATHER_S = 0.05
"""How long settlements wait for others, and for an acquire that takes them along."""

LONGEST_ERROR = 2_000
MOST_ENTRIES = 200
"""Of one request, so that it stays small even if each has an error of its own."""

MOST_RESULTS = 10_000
"""Results that wait for a commit at most; later ones drop the oldest, of a program that does not look at them."""

ACCEPT, GAP, RELEASE, RENEW = "accept", "gap", "release", "renew"


@dataclass(slots=True, eq=False)
class Settlement:
    """What becomes of one item. `quiet`: nobody has to know if it comes too late. `alone`: in an entry of its own."""

    delivery: Delivery
    kind: str
    delay_ms: int | None = None
    why: str | None = None
    quiet: bool = False
    alone: bool = False
    done: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """Settlements of one lock that are alike."""

    settlements: list[Settlement]

    @property
    def body(self) -> dict[str, Any]:
        """As the service takes it."""
        like = self.settlements[0]
        body: dict[str, Any] = {
            "lock": like.delivery.lock.answer.lock,
            like.kind: ranges_of({settlement.delivery.offset for settlement in self.settlements}),
        }
        if like.delay_ms is not None:
            body["delay_ms"] = like.delay_ms
        if like.why is not None:
            body["error"] = like.why[:LONGEST_ERROR]
        return body


def entries_of(settlements: Iterable[Settlement]) -> list[Entry]:
    """As few entries as possible, in the order of the first settlement of each."""
    found: dict[tuple[Any, ...], Entry] = {}
    for s in settlements:
        alike = (s.delivery.lock.answer.lock, s.kind, s.delay_ms, s.why, s.delivery.offset if s.alone else None)
        found.setdefault(alike, Entry([])).settlements.append(s)
    return list(found.values())


class Settling(Lane):
    """Sends settlements, one request at a time. `taken` ones are under way with somebody's request."""

    def __init__(
        self,
        config: ShareConsumerConfig,
        link: Link,
        condition: Condition,
        lanes: Lanes,
        held: Held,
        member_id: str,
    ) -> None:
        super().__init__(f"kcoord-settle-{config.group_id}", condition, lanes)
        self._config = config
        self._link = link
        self._held = held
        self._member_id = member_id
        self._queue: list[Settlement] = []
        self._flying: list[Settlement] = []
        self._send_at = 0.0
        self._not_before = 0.0
        self._results: deque[Acknowledged] = deque(maxlen=MOST_RESULTS)
        self._lost: deque[tuple[int, int]] = deque(maxlen=MOST_RESULTS)
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)

    def add(self, settlements: Iterable[Settlement]) -> None:
        """Say this a moment later. Items that are settled by it are the user's no more."""
        added = list(settlements)
        if not added:
            return
        for settlement in added:
            if settlement.kind != RENEW:
                self._held.over(settlement.delivery)
        if not self._queue:
            self._send_at = self._condition.clock() + GATHER_S
        self._queue += added
        self.start()
        self._condition.notify_all()

    def flush(self) -> list[Settlement]:
        """Send what there is now; returns what is not answered yet."""
        self._send_at = self._condition.clock()
        self._condition.notify_all()
        return [*self._flying, *self._queue]

    def take(self) -> list[Entry]:
        """What the caller's request is to carry; nothing while another one carries something."""
        if self._flying or self._condition.clock() < self._not_before:
            return []
        entries = entries_of(self._queue)
        taken = entries[:MOST_ENTRIES]
        self._flying = [settlement for entry in taken for settlement in entry.settlements]
        self._queue = [settlement for entry in entries[MOST_ENTRIES:] for settlement in entry.settlements]
        return taken

    def answered(self, entries: Sequence[Entry], results: Sequence[wire.SettledEntry]) -> None:
        """A request was carried out. Raises ProtocolError if the answer has not a result for each entry."""
        if len(entries) != len(results):
            detail = f"{len(results)} results were returned for {len(entries)} entries; check the url"
            raise ProtocolError(Error.UNKNOWN_SERVER_ERROR, detail)
        if not entries:
            return
        self._backoff.reset()
        self._flying = []
        for entry, result in zip(entries, results, strict=True):
            self._take_result(entry, result)
        self._condition.notify_all()

    def failed(self, entries: Sequence[Entry], failure: ProtocolError, *, again: bool = False) -> None:
        """A request may not have arrived, or was refused: send it again, unless that is pointless.

        `again`: the refusal was not about the settlement.
        """
        if not entries:
            return
        now = self._condition.clock()
        sent = [settlement for entry in entries for settlement in entry.settlements]
        self._flying = []
        self._not_before = now + self._backoff.next_ms(failure.retry_after_ms) / 1000
        patience_s = self._config.request_timeout_ms / 1000
        for settlement in sent:
            lasts = now < settlement.delivery.lock.ends_at + patience_s
            if settlement.kind == RENEW and settlement.quiet and lasts:
                continue  # it is found to be due again
            if (again or failure.error.value.retriable) and lasts:
                self._queue.append(settlement)
            else:
                self._finish(settlement, error_of(failure))
        self._condition.notify_all()

    def results(self) -> list[Acknowledged]:
        """What came of what the user acknowledged, since the last call."""
        found = list(self._results)
        self._results.clear()
        return found

    def is_lost(self, item: Item[Any]) -> bool:
        """The user had the item when its lock was lost."""
        return (item.lock, item.offset) in self._lost

    def note_if_lost(self, item: Item[Any], kind: str) -> bool:
        """Whether it is, which is then the result of acknowledging it."""
        if not self.is_lost(item):
            return False
        error = InvalidRecordStateError(f"lock {item.lock}: lost while the item was worked on")
        self._results.append(Acknowledged(item.topic, item.partition, item.offset, kind, error))
        return True

    def _lose(self, delivery: Delivery) -> None:
        if delivery.phase in (Phase.WORKED, Phase.OUTSIDE):
            self._lost.append((delivery.lock.answer.lock, delivery.offset))
        self._held.over(delivery)

    # The lane

    async def _run_until_stopped(self) -> None:
        while not self.stopped:
            now = self._condition.clock()
            due_at = self._renew(now)
            if self._queue:
                due_at = min(due_at, max(self._send_at, self._not_before))
            if due_at > now or self._flying:
                wait_s = None if self._flying or due_at == float("inf") else due_at - now
                await Wait(self._condition.version, wait_s)
                continue
            await self._send(self.take())

    async def _send(self, entries: Sequence[Entry]) -> None:
        body = {"member_id": self._member_id, "items": [entry.body for entry in entries]}
        try:
            answer = await self._link.call("settle", body, wire.SettleAnswer)
            self.answered(entries, answer.items)
        except ProtocolError as failure:
            log.info("group %s: settle: %s", self._config.group_id, failure)
            self.failed(entries, failure)

    def _renew(self, now: float) -> float:
        """Queue the renewals that are due; returns when something is due next.

        A lock is renewed as a whole, so an item that is worked on for too long is released first.
        """
        next_at = float("inf")
        if not self._config.auto_renew:
            return next_at
        renewing = {s.delivery.lock for s in (*self._queue, *self._flying) if s.kind == RENEW}
        for lock in list(self._held.locks.values()):
            self._give_up_overdue(lock, now)
            renewable = list(lock.open.values())
            # The user's transaction may have the row of the lock: a renewal would wait for its end.
            if not renewable or lock in renewing or any(d.phase is Phase.OUTSIDE for d in renewable):
                continue
            if lock.renew_at <= now:
                self._queue += [Settlement(delivery, RENEW, quiet=True) for delivery in renewable]
                self._send_at = now
                continue
            begun = [d.begun_at + self._config.max_processing_s for d in renewable if d.phase is Phase.WORKED]
            next_at = min(next_at, lock.renew_at, *begun)
        return next_at

    def _give_up_overdue(self, lock: Lock, now: float) -> None:
        for delivery in list(lock.open.values()):
            if delivery.phase is Phase.WORKED and now >= delivery.begun_at + self._config.max_processing_s:
                limit = f"not settled within max_processing_s={self._config.max_processing_s}"
                log.warning("%s offset %d: %s, released", delivery.partition, delivery.offset, limit)
                self._lose(delivery)
                self._queue.append(Settlement(delivery, RELEASE, why=limit, quiet=True))
                self._send_at = now

    def _take_result(self, entry: Entry, result: wire.SettledEntry) -> None:
        first = entry.settlements[0]
        if not result.error_code:
            if first.kind == RENEW:
                first.delivery.lock.renewed_at = self._condition.clock()
            for settlement in entry.settlements:
                self._finish(settlement, None)
        elif len(entry.settlements) > 1:
            # The entry as a whole is refused, perhaps for one item.
            for settlement in entry.settlements:
                settlement.alone = True
            self._queue += entry.settlements
            self._send_at = self._condition.clock()
        else:
            self._finish(first, _refused(result))

    def _finish(self, settlement: Settlement, error: KcoordError | None) -> None:
        delivery = settlement.delivery
        settlement.done = True
        if not settlement.quiet:
            self._results.append(Acknowledged(*delivery.partition, delivery.offset, settlement.kind, error))
        if error is None:
            return
        if settlement.kind == RENEW and (settlement.quiet or isinstance(error, InvalidRecordStateError)):
            if delivery.phase is Phase.OVER:
                return  # it was settled meanwhile
            self._lose(delivery)
            log.warning("%s offset %d is lost: %s", delivery.partition, delivery.offset, error.detail)
        elif not settlement.quiet:
            log.warning("%s offset %d: %s failed: %s", delivery.partition, delivery.offset, settlement.kind, error)


def _refused(result: wire.SettledEntry) -> KcoordError:
    error = BY_CODE.get(result.error_code, Error.UNKNOWN_SERVER_ERROR)
    why = result.why or error.value.help
    holder = f", {result.held_by!r} has it now" if result.held_by else ""
    return error_of(ProtocolError(error, f"lock {result.lock}: {why}{holder}"))
