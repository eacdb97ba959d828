"""How many partitions topics have, and the leader's monitoring of it. Source: http-api.md 3."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kcoord.client.config import ConsumerConfig
from kcoord.client.core.link import Link
from kcoord.client.core.worker import Job, Worker
from kcoord.protocol.errors import ProtocolError

log = logging.getLogger("kcoord.client")


async def partition_counts(link: Link, topics: Iterable[str]) -> dict[str, int]:
    """Topic -> number of partitions, of those that exist. Raises ProtocolError."""
    counts = {}
    for topic in topics:
        count = await link.topic_partitions(topic)
        if count is None:
            log.warning("topic %s does not exist, or this member may not describe it: it is not assigned", topic)
        else:
            counts[topic] = count
    return counts


class TopicWatch:
    """Looks up the partition counts of the last assignment again, every metadata_max_age_ms.

    Only a leader does this, because only the leader assigns. Used by the user's lane; the look-up itself runs on the
    worker.
    """

    def __init__(self, config: ConsumerConfig, link: Link, worker: Worker) -> None:
        self._age_s = config.metadata_max_age_ms / 1000
        self._link = link
        self._worker = worker
        self._topics: tuple[str, ...] = ()
        self._counts: dict[str, int] = {}
        self._next_at = 0.0
        self._look: Job[dict[str, int]] | None = None

    def start(self, topics: Iterable[str], counts: dict[str, int], now: float) -> None:
        """The group was assigned using these counts."""
        self._topics = tuple(topics)
        self._counts = counts
        self._next_at = now + self._age_s
        self._look = None

    def stop(self) -> None:
        """This member is not the leader."""
        self._topics = ()
        self._look = None

    def changes(self, now: float) -> str | None:
        """A description of what changed; None if nothing is known to have. Starts a look-up when one is due."""
        if not self._topics:
            return None
        if self._look is None:
            if now >= self._next_at:
                topics = self._topics
                self._look = self._worker.submit(lambda: partition_counts(self._link, topics))
            return None
        if not self._look.done:
            return None
        look, self._look = self._look, None
        self._next_at = now + self._age_s
        failure = look.error
        if failure is not None:
            if not isinstance(failure, ProtocolError):
                raise failure
            log.warning("partition counts could not be looked up, next try in %.0f s: %s", self._age_s, failure)
            return None
        return self._difference(look.result())

    def _difference(self, counts: dict[str, int]) -> str | None:
        changed = [topic for topic in self._topics if counts.get(topic) != self._counts.get(topic)]
        if not changed:
            return None
        words = ", ".join(f"{topic} {self._counts.get(topic, 0)} -> {counts.get(topic, 0)}" for topic in changed)
        self._counts = counts
        return f"the number of partitions changed: {words}"
