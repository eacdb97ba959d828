"""Reports of where the record source begins and ends, so that the lag of the group is known. Used by the user's lane.

Source: http-api.md 3.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from kcoord.client.config import ConsumerConfig
from kcoord.client.core.condition import Clock
from kcoord.client.core.effects import ask
from kcoord.client.core.link import Link
from kcoord.client.core.subscription import SubscriptionState
from kcoord.client.core.wire import ReportedWatermark
from kcoord.client.core.worker import Job, Worker
from kcoord.client.types import AnyRecordSource, TopicPartition
from kcoord.protocol.errors import ProtocolError

log = logging.getLogger("kcoord.client")

PARTITIONS_PER_POLL = 16
"""How many partitions the source is asked about in one poll, so that a poll of many partitions returns promptly."""

Reports = dict[tuple[str, bool], list[ReportedWatermark]]
"""By topic, and whether the source says that these logs were truncated."""


class WatermarkReports:
    """Every watermark_interval_ms, asks the source about the assigned partitions and sends what it said.

    The source is asked between fetches, by the lane that fetches; the requests are sent by the worker.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        subscription: SubscriptionState,
        source: AnyRecordSource[Any] | None,
        link: Link,
        worker: Worker,
        clock: Clock,
    ) -> None:
        self._interval_s = config.watermark_interval_ms / 1000
        self._subscription = subscription
        self._source = source if self._interval_s else None
        self._link = link
        self._worker = worker
        self._clock = clock
        self._next_at = 0.0
        self._left: list[TopicPartition] = []
        self._found: Reports = {}
        self._sending: Job[None] | None = None
        self._refused: set[str] = set()
        self._uncounted: set[TopicPartition] = set()
        """Partitions that end earlier than was reported before: the source is asked whether they were truncated."""

    def wait_s(self) -> float | None:
        """How long `when_due` has nothing to do; None: until something changes."""
        sending = self._sending is not None and not self._sending.done
        if self._source is None or sending or not self._partitions():
            return None
        return 0.0 if self._left else max(0.0, self._next_at - self._clock())

    async def when_due(self) -> None:
        """Begin a round when one is due, and go on with it. A failure is logged: the next round tries again."""
        if self._source is None:
            return
        if not self._left:
            if self._clock() < self._next_at or not self._is_sent():
                return
            self._left = self._partitions()
            if not self._left:
                return
            self._next_at = self._clock() + self._interval_s
            self._found = {}
        chosen, self._left = self._left[:PARTITIONS_PER_POLL], self._left[PARTITIONS_PER_POLL:]
        assigned = self._subscription.assigned
        for partition in chosen:
            if partition in assigned:
                await self._look(self._source, partition)
        if not self._left and self._found:
            found = self._found
            self._sending = self._worker.submit(lambda: self._send(found))

    def _partitions(self) -> list[TopicPartition]:
        return sorted(tp for tp in self._subscription.assigned if tp.topic not in self._refused)

    def _is_sent(self) -> bool:
        """Whether the requests of the round before have ended. Raises what they raised, unless that was expected."""
        if self._sending is None:
            return True
        if self._sending.done:
            sent, self._sending = self._sending, None
            sent.result()
            return True
        return False

    async def _look(self, source: AnyRecordSource[Any], partition: TopicPartition) -> None:
        try:
            begins = await ask(source.beginning_offset, *partition)
            ends = await ask(source.end_offset, *partition)
            tell = getattr(source, "truncated", None) if partition in self._uncounted else None
            truncated = tell is not None and bool(await ask(tell, *partition))
        except Exception as error:  # noqa: BLE001 - not what the user asked for: it must not end a poll
            log.warning("%s: the record source did not tell its offsets, nothing is reported: %s", partition, error)
            return
        watermark = ReportedWatermark(partition.partition, begins, ends)
        self._found.setdefault((partition.topic, truncated), []).append(watermark)

    async def _send(self, found: Reports) -> None:
        for (topic, truncated), watermarks in found.items():
            if topic in self._refused:
                continue
            try:
                counted = await self._link.report_watermarks(topic, watermarks, truncated=truncated)
            except ProtocolError as failure:
                if failure.error.value.retriable:
                    log.info("the watermarks of topic %s were not reported, trying again: %s", topic, failure)
                    continue
                self._refused.add(topic)
                log.warning(
                    "the watermarks of topic %s cannot be reported, its lag is known only if somebody else reports "
                    "them (watermark_interval_ms=0 turns reports off): %s",
                    topic,
                    failure,
                )
            else:
                self._note_uncounted(topic, watermarks, counted)

    def _note_uncounted(
        self, topic: str, reported: Sequence[ReportedWatermark], counted: Sequence[ReportedWatermark]
    ) -> None:
        ends = {watermark.partition: watermark.log_end_offset for watermark in counted}
        for watermark in reported:
            partition = TopicPartition(topic, watermark.partition)
            end = ends.get(watermark.partition, watermark.log_end_offset)
            if end <= watermark.log_end_offset:
                self._uncounted.discard(partition)
            elif partition not in self._uncounted:
                self._uncounted.add(partition)
                log.warning(
                    "%s ends at %d in the record source, but at %d by an earlier report: the earlier end does not "
                    "count unless the source has truncated(topic, partition), which says that the log was truncated",
                    partition,
                    watermark.log_end_offset,
                    end,
                )
