"""A share consumer without its driver: what each call does. `kcoord.client.ShareConsumer` documents the calls."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from kcoord.client.core import arguments
from kcoord.client.core.calls import ClientCore
from kcoord.client.core.condition import Condition
from kcoord.client.core.effects import Lanes, Wait, ask
from kcoord.client.core.http import Http
from kcoord.client.core.link import Link
from kcoord.client.core.share.acquiring import Acquiring
from kcoord.client.core.share.held import Delivery, Held, Phase, ranges_of
from kcoord.client.core.share.member import ShareMember
from kcoord.client.core.share.reading import Reading
from kcoord.client.core.share.settling import ACCEPT, GAP, RELEASE, RENEW, Settlement, Settling
from kcoord.client.errors import ClientTimeoutError, IllegalStateError, InvalidRecordStateError
from kcoord.client.share_config import EXPLICIT, ShareConsumerConfig
from kcoord.client.types import Acknowledged, AnyRecordSource, Item, TopicPartition

log = logging.getLogger("kcoord.client")

AcknowledgeCallback = Callable[[list[Acknowledged]], Any]


class ShareCore(ClientCore):
    """The calls of a share consumer. Those that may wait are coroutines for the driver; `acknowledge` and its like may
    come from any lane. Parameters as those of `ConsumerCore`.
    """

    def __init__(
        self,
        config: ShareConsumerConfig,
        source: AnyRecordSource[Any] | None,
        condition: Condition,
        lanes: Lanes,
        rng: Random | None = None,
    ) -> None:
        super().__init__(config, condition)
        arguments.source(source)
        self.config = config
        self.topics: frozenset[str] = frozenset()
        self._lanes = lanes
        link = Link(config, Http(config.token, config.request_timeout_ms), condition, rng)
        self.member = ShareMember(config, link, condition, lanes)
        self._held = Held()
        self._settling = Settling(config, link, condition, lanes, self._held, self.member.member_id)
        self._reading = Reading(config, source, condition.clock)
        self._acquiring = Acquiring(
            config, link, condition, lanes, self._held, self.member, self._settling, self._reading
        )
        self._stay = 0
        self._in_hand: Delivery | None = None
        self._told: list[tuple[list[Settlement], AcknowledgeCallback]] = []
        self._handlers = 0
        self._runs = False
        self._ended_by: BaseException | None = None

    def subscribe(self, topics: Any) -> None:
        """Name the topics, instead of those before."""
        self._require_open()
        named = arguments.topics_of(topics)
        if not named:
            raise IllegalStateError("no topics: close the consumer to leave the group")
        self.topics = frozenset(named)

    # Items

    async def poll(self, timeout_ms: Any, max_records: Any) -> dict[TopicPartition, list[Item[Any]]]:
        """Settle what was returned before, return items."""
        wait_s = arguments.milliseconds("timeout_ms", timeout_ms) / 1000
        limit = self.config.max_poll_records if max_records is None else arguments.count("max_records", max_records)
        self._require_open()
        self._finish_batch()
        found: dict[TopicPartition, list[Item[Any]]] = {}
        for delivery in await self._next(limit, limit, self.condition.clock() + wait_s):
            assert delivery.item is not None
            found.setdefault(delivery.partition, []).append(delivery.item)
        return found

    async def next_item(self) -> Item[Any] | None:
        """The next item of an iteration; None: it ends. The one before is accepted unless it was acknowledged."""
        if self._in_hand is not None:
            done, self._in_hand = self._in_hand, None
            self._accept([done])
        if self.closed or self.stopping:
            return None
        timeout_ms = self.config.consumer_timeout_ms
        deadline = math.inf if timeout_ms is None else self.condition.clock() + timeout_ms / 1000
        for delivery in await self._next(1, self.config.max_poll_records, deadline):
            self._in_hand = delivery
            return delivery.item
        return None

    async def run(self, handler: Callable[[Item[Any]], Any]) -> None:
        """Call `handler` for each item, `concurrency` at a time, until `stop`; then wait for those that are begun."""
        self._require_open()
        if self._runs:
            raise IllegalStateError("run() is under way")
        self._finish_batch()
        self._runs = True
        try:
            for number in range(self.config.concurrency):
                self._handlers += 1
                self._lanes.start(f"kcoord-run-{self.config.group_id}-{number}", self._work(handler))
            while not self.stopping and self._ended_by is None:
                seen = self.condition.version
                self._raise_wakeup()
                idle = self.config.concurrency - len(self._held.within(Phase.WORKED))
                await self._advance(max(self.config.max_poll_records, idle))
                await Wait(seen, self._idle_s())
        finally:
            self._runs = False
            self.condition.notify_all()
            await self.condition.wait_for(lambda: not self._handlers)
        if self._ended_by is not None:
            ended_by, self._ended_by = self._ended_by, None
            raise ended_by

    async def _work(self, handler: Callable[[Item[Any]], Any]) -> None:
        def ends() -> bool:
            return self.stopping or not self._runs

        try:
            while await self.condition.wait_for(lambda: ends() or self._held.waits()) and not ends():
                for delivery in self._held.take(1, self.condition.clock()):
                    await self._handle(handler, delivery)
        finally:
            self._handlers -= 1
            self.condition.notify_all()

    async def _handle(self, handler: Callable[[Item[Any]], Any], delivery: Delivery) -> None:
        try:
            await ask(handler, delivery.item)
        except BaseException as error:
            log.warning("%s offset %d: the handler raised", delivery.partition, delivery.offset, exc_info=error)
            self._release([delivery], error)
            if not isinstance(error, Exception):
                # Such as SystemExit, which ends only this lane: `run` raises it.
                self._ended_by = error
                raise
        else:
            self._accept([delivery])

    async def _next(self, most: int, wanted: int, deadline: float) -> list[Delivery]:
        self._require_open()
        if not self.topics:
            raise IllegalStateError("nothing to poll: subscribe() first")
        while True:
            seen = self.condition.version
            self._raise_wakeup()
            if self.stopping:
                self._last_poll()
                return []
            await self._advance(wanted)
            taken = self._held.take(most, self.condition.clock())
            left_s = deadline - self.condition.clock()
            if taken or left_s <= 0:
                return taken
            await Wait(seen, min(left_s, self._idle_s()))

    async def _advance(self, wanted: int) -> None:
        """Take part in the group, read what was acquired, acquire more if nothing waits for the user."""
        await self._run_callbacks()
        self._raise_failure()
        if not await self._acquiring.introduce(self.topics):
            return
        self.member.poll(self.topics)
        if self.member.stay != self._stay:
            self._hand_back()
            self._stay = self.member.stay
        gaps = await self._reading.read(self._held, wanted)
        self._settling.add([Settlement(delivery, GAP, quiet=True) for delivery in gaps])
        if not self._held.waits() and not self._held.within(Phase.UNREAD):
            await self._acquiring.more(wanted)

    # Acknowledging

    def acknowledge(self, item: Any, kind: Any, delay: Any, error: Any) -> None:
        """Say what became of an item."""
        if not isinstance(item, Item):
            raise TypeError(f"item: {item!r}: expected an item that this consumer returned")
        settles = self._settles(kind, delay, error)
        if self._settling.note_if_lost(item, kind):
            return
        settles(self._held.of(item))

    def acknowledge_offset(self, partition: TopicPartition, offset: Any, kind: Any, delay: Any, error: Any) -> None:
        """The same, by its offset."""
        self._settles(kind, delay, error)(self._held.at(partition, arguments.offset(offset)))

    def _settles(self, kind: Any, delay: Any, error: Any) -> Callable[[Delivery], None]:
        self._require_open()
        if self.config.acknowledgement_mode != EXPLICIT:
            raise IllegalStateError(
                'items are accepted by the next poll; to acknowledge them, set acknowledgement_mode="explicit"'
            )
        arguments.acknowledgement(kind)
        delay_ms = arguments.delay(kind, delay)

        def settle(delivery: Delivery) -> None:
            if kind == RENEW:
                delivery.kept, delivery.begun_at = True, self.condition.clock()
            self._settling.add([Settlement(delivery, kind, delay_ms, _text(error))])

        return settle

    def locks_for(self, items: Iterable[Any]) -> list[dict[str, Any]]:
        """What `kcoord.settle` takes to accept these items, which this consumer then leaves alone."""
        self._require_open()
        found: dict[int, list[int]] = {}
        for item in items:
            if self._settling.is_lost(item):
                raise InvalidRecordStateError(f"offset {item.offset}: its lock is lost, another worker may have it")
            delivery = self._held.of(item)
            delivery.phase = Phase.OUTSIDE
            found.setdefault(item.lock, []).append(item.offset)
        return [{"lock": lock, ACCEPT: ranges_of(offsets)} for lock, offsets in found.items()]

    async def commit(self, timeout_ms: Any) -> list[Acknowledged]:
        """Send what there is and wait for the results."""
        self._require_open()
        limit_s = self.timeout_ms(timeout_ms) / 1000
        self._accept_implicitly()
        pending = self._settling.flush()
        if not await self._answered(pending, self.condition.clock() + limit_s, self._raise_wakeup):
            raise ClientTimeoutError("not everything that was acknowledged is answered yet; it is sent again")
        return self._settling.results()

    def commit_async(self, callback: AcknowledgeCallback | None) -> None:
        """Send what there is."""
        self._require_open()
        self._accept_implicitly()
        pending = self._settling.flush()
        if callback is not None:
            self._told.append((pending, callback))

    async def _answered(
        self, pending: list[Settlement], deadline: float, check: Callable[[], None] = lambda: None
    ) -> bool:
        def look() -> None:
            check()
            self._raise_failure()

        return await self.condition.wait_for(lambda: all(settlement.done for settlement in pending), deadline, look)

    async def _run_callbacks(self) -> None:
        while self._told and all(settlement.done for settlement in self._told[0][0]):
            _, callback = self._told.pop(0)
            await ask(callback, self._settling.results())

    def _raise_failure(self) -> None:
        if self._settling.failure is not None:
            raise RuntimeError("the settling thread failed: close this consumer") from self._settling.failure

    def _accept_implicitly(self) -> None:
        if self.config.acknowledgement_mode != EXPLICIT and not self._runs:
            self._accept(self._held.within(Phase.WORKED))

    def _finish_batch(self) -> None:
        """What was returned by the poll before. Raises IllegalStateError for what should have been acknowledged."""
        self._accept_implicitly()
        left = [delivery for delivery in self._held.within(Phase.WORKED) if not delivery.kept]
        if left:
            raise IllegalStateError(
                f"{len(left)} items are not acknowledged, the first is {left[0].partition} offset {left[0].offset}"
            )
        self._accept(self._held.within(Phase.OUTSIDE))

    def _accept(self, deliveries: Iterable[Delivery]) -> None:
        """The user is done with these, unless it said otherwise."""
        chosen = list(deliveries)
        done = [delivery for delivery in chosen if delivery.phase is Phase.WORKED]
        self._settling.add([Settlement(delivery, ACCEPT) for delivery in done])
        for delivery in chosen:
            if delivery.phase is Phase.OUTSIDE:
                self._held.over(delivery)

    def _release(self, deliveries: Iterable[Delivery], error: BaseException | None) -> None:
        """The user gives these up. One that was settled outside is released only if that was undone."""
        mine = [delivery for delivery in deliveries if delivery.phase in (Phase.WORKED, Phase.OUTSIDE)]
        quiet = {delivery for delivery in mine if delivery.phase is Phase.OUTSIDE}
        self._settling.add([Settlement(d, RELEASE, why=_text(error), quiet=d in quiet) for d in mine])

    def _hand_back(self) -> None:
        """What was acquired before the member was out of the group is for other workers, at once."""
        back = self._held.within(Phase.UNREAD, Phase.WAITING)
        self._settling.add([Settlement(delivery, RELEASE, 0, quiet=True) for delivery in back])

    # End

    async def close(self, accept: bool, error: BaseException | None, deadline: float) -> bool:
        """Settle, leave, which hands back what was not begun, stop. True if nothing is under way any more.

        Each step is taken even if the one before it failed or was cancelled.
        """
        self._woken = False
        stopped = False
        try:
            self._end_work(accept, error)
            await self._answered(self._settling.flush(), deadline)
        except Exception:
            raise
        except BaseException:
            deadline = self.condition.clock()
            raise
        finally:
            self.closed = True
            try:
                await self.member.leave(deadline)
            finally:
                stopped = await self._stop_lanes(deadline)
        await self._run_callbacks()
        return stopped

    def _end_work(self, accept: bool, error: BaseException | None) -> None:
        for delivery in self._held.within(Phase.WORKED, Phase.OUTSIDE):
            in_hand = delivery is self._in_hand
            if accept and (in_hand or self.config.acknowledgement_mode != EXPLICIT):
                self._accept([delivery])
            self._release([delivery], error if in_hand else None)

    async def _stop_lanes(self, deadline: float) -> bool:
        stopped = await self._acquiring.close(deadline)
        stopped = await self._settling.stop(deadline) and stopped
        return await self.member.stop(deadline) and stopped

    def _idle_s(self) -> float:
        """How long a poll without items may wait before it looks again, if nothing changes."""
        waits = (self.config.max_poll_interval_ms / 2000, self._acquiring.wait_s())
        return min(s for s in waits if s is not None)


def _text(error: Any) -> str | None:
    """What the next worker, or the dead letter, is told."""
    if error is None or isinstance(error, str):
        return error
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
