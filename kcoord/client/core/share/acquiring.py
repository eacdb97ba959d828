"""Acquiring items: the request that the service holds until it has some, and how it learns where the source ends.

Used by the user's lane; requests are sent by workers. Source: http-api.md "acquire".
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from kcoord.client.core import wire
from kcoord.client.core.backoff import Backoff
from kcoord.client.core.condition import Condition
from kcoord.client.core.consumer_group.participant import HELD_ANSWER_S
from kcoord.client.core.effects import Lanes
from kcoord.client.core.link import Link
from kcoord.client.core.share.held import Held
from kcoord.client.core.share.member import ShareMember
from kcoord.client.core.share.reading import Reading
from kcoord.client.core.share.settling import Settling
from kcoord.client.core.watermarks import PARTITIONS_PER_POLL
from kcoord.client.core.worker import Job, Worker
from kcoord.client.errors import error_of
from kcoord.client.share_config import ShareConsumerConfig
from kcoord.client.types import TopicPartition
from kcoord.protocol.errors import Error, ProtocolError

log = logging.getLogger("kcoord.client")

OUT = frozenset({Error.GROUP_ID_NOT_FOUND, Error.UNKNOWN_MEMBER_ID, Error.FENCED_MEMBER_EPOCH})
"""Answers after which the next heartbeat finds out what happened to the member."""

UNREPORTED_WAIT_MS = 1_000
"""How long an acquire is held if this client may not report watermarks, which would end the wait."""

Watermarks = dict[str, list[wire.ReportedWatermark]]


class Acquiring:
    """One acquire at a time. What it brings is held, and renewed, from then on, whenever the user comes for it."""

    def __init__(
        self,
        config: ShareConsumerConfig,
        link: Link,
        condition: Condition,
        lanes: Lanes,
        held: Held,
        member: ShareMember,
        settling: Settling,
        reading: Reading,
    ) -> None:
        self._config = config
        self._link = link
        self._condition = condition
        self._held = held
        self._member = member
        self._settling = settling
        self._reading = reading
        self._requests = Worker(f"kcoord-acquire-{config.group_id}", condition, lanes)
        self._reports = Worker(f"kcoord-watermarks-{config.group_id}", condition, lanes)
        self._acquire: Job[None] | None = None
        self._look: Job[dict[str, int]] | None = None
        self._report: Job[None] | None = None
        self._introduced: frozenset[str] = frozenset()
        self._to_introduce: list[TopicPartition] = []
        self._may_report = True
        self._closing = False
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._not_before = 0.0

    async def introduce(self, topics: frozenset[str]) -> bool:
        """Report where topics begin and end before the group first names them: that is when it decides where it begins.

        False: under way. Raises what the source raises, and refusals.
        """
        if not self._reading.has_source:
            return True
        if self._to_introduce:
            if self._report is None or self._report.done:
                await self._begin_report(self._to_introduce[:PARTITIONS_PER_POLL])
                del self._to_introduce[:PARTITIONS_PER_POLL]
            return False
        if topics <= self._introduced:
            return self._report is None or self._report.done or self._member.stay > 0
        if self._look is None:
            if self._condition.clock() >= self._not_before:
                self._look = self._requests.submit(lambda: self._count_partitions(topics))
            return False
        if not self._look.done:
            return False
        look, self._look = self._look, None
        if look.error is not None:
            self._failed(look.error)
            return False
        self._introduced = topics
        counts = look.result().items()
        self._to_introduce = [TopicPartition(topic, n) for topic, count in counts for n in range(count)]
        self._condition.notify_all()
        return False

    async def more(self, wanted: int) -> None:
        """Acquire up to `wanted` items, unless that is under way. Raises what the source raises, and refusals."""
        if self._acquire is not None and self._acquire.done:
            done, self._acquire = self._acquire, None
            if done.error is not None:
                self._failed(done.error)
        if not self._member.epoch:
            return
        await self._reading.look(self._member.assigned)
        if self._acquire is None:
            if self._condition.clock() >= self._not_before:
                most = self._reading.span(wanted)
                self._acquire = self._requests.submit(lambda: self._send(most))
        elif self._may_report and self._reading.condition() and (self._report is None or self._report.done):
            # The service holds the acquire, and answers it with what a report brings.
            await self._begin_report(self._reading.condition())

    def wait_s(self) -> float | None:
        """How long there is nothing to do; None: until something changes."""
        paused_s = max(0.0, self._not_before - self._condition.clock()) or None
        looks = (self._reading.wait_s(), paused_s)
        return min((s for s in looks if s is not None), default=None)

    async def close(self, deadline: float) -> bool:
        """Stop. What the service still holds is given up after a moment. True if nothing else is under way."""
        self._closing = True
        await self._requests.close(min(deadline, self._condition.clock() + HELD_ANSWER_S))
        return await self._reports.close(deadline)

    # Requests

    async def _send(self, most: int) -> None:
        entries = self._settling.take()
        ends = self._reading.condition()
        hold_ms = self._config.max_wait_ms
        if entries:
            hold_ms = 0  # their outcome is reported at once
        elif self._reading.has_source and not self._may_report:
            hold_ms = min(hold_ms, UNREPORTED_WAIT_MS)
        body: dict[str, Any] = {
            "member_id": self._member.member_id,
            "member_epoch": self._member.epoch,
            "max_records": most,
            "max_wait_ms": hold_ms,
            "settle": [entry.body for entry in entries],
            "ends": [{"topic": tp.topic, "partition": tp.partition, "end_offset": end} for tp, end in ends.items()],
        }
        sent_at = self._condition.clock()
        try:
            answer = await self._link.call("acquire", body, wire.AcquireAnswer, held_ms=hold_ms)
            self._settling.answered(entries, answer.settled)
        except ProtocolError as failure:
            self._settling.failed(entries, failure, again=True)
            raise
        now = self._condition.clock()
        self._backoff.reset()
        self._reading.told(ends)
        self._held.add(answer.locks, answer.lock_ms / 1000, now)
        self._settling.start()
        if not answer.locks and not entries and now - sent_at < hold_ms / 2000:
            # A service that holds nothing, such as one that is being stopped, is not asked all the time.
            self._not_before = now + self._config.retry_backoff_ms / 1000
        self._condition.notify_all()

    async def _count_partitions(self, topics: Iterable[str]) -> dict[str, int]:
        found = {topic: await self._link.topic(topic) for topic in sorted(topics)}
        return {topic: answer.partitions for topic, answer in found.items() if answer is not None}

    async def _begin_report(self, partitions: Iterable[TopicPartition]) -> None:
        found: Watermarks = {}
        chosen = sorted(partitions)
        for partition, watermark in zip(chosen, await self._reading.watermarks(chosen), strict=True):
            found.setdefault(partition.topic, []).append(watermark)
        self._report = self._reports.submit(lambda: self._send_report(found))

    async def _send_report(self, found: Watermarks) -> None:
        for topic, watermarks in found.items():
            try:
                await self._link.report_watermarks(topic, watermarks, truncated=False)
            except ProtocolError as failure:
                log.info("the watermarks of topic %s were not reported: %s", topic, failure)
                self._may_report = self._may_report and failure.error.value.retriable
            else:
                self._reading.told({TopicPartition(topic, mark.partition): mark.log_end_offset for mark in watermarks})

    def _failed(self, error: BaseException) -> None:
        """Try again later, or raise what the user has to know."""
        if not isinstance(error, ProtocolError):
            raise RuntimeError("acquiring items failed: close this consumer") from error
        if not error.error.value.retriable and error.error not in OUT:
            raise error_of(error)
        self._not_before = self._condition.clock() + self._backoff.next_ms(error.retry_after_ms) / 1000
        log.info("group %s: acquire: %s", self._config.group_id, error)
