"""How many partitions topics have, and the leader's monitoring of it. Source: http-api.md 3."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from kcoord.client.config import ConsumerConfig
from kcoord.client.core.condition import Clock
from kcoord.client.core.link import Link
from kcoord.client.core.subscription import SubscriptionState
from kcoord.client.core.worker import Job, Worker
from kcoord.client.types import TopicPartition
from kcoord.protocol.errors import ProtocolError

log = logging.getLogger("kcoord.client")


async def partition_counts(link: Link, topics: Iterable[str]) -> dict[str, int]:
    """Topic -> number of partitions, of those that exist. Raises ProtocolError."""
    counts = {}
    for topic in topics:
        found = await link.topic(topic)
        if found is None:
            log.warning("topic %s does not exist, or this member may not describe it: it is not assigned", topic)
        else:
            counts[topic] = found.partitions
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


class TopicIds:
    """Looks up whether the topics that are read are still those of their names, every metadata_max_age_ms.

    For members that no assignment tells it: those of classic groups, and readers without a group. Their commits find it
    out too, usually earlier. Used by the user's lane; the look-up itself runs on the worker.
    """

    def __init__(
        self, config: ConsumerConfig, subscription: SubscriptionState, link: Link, worker: Worker, clock: Clock
    ) -> None:
        self._age_s = config.metadata_max_age_ms / 1000
        self._subscription = subscription
        self._link = link
        self._worker = worker
        self._clock = clock
        self._next_at = clock() + self._age_s
        self._look: Job[dict[str, str | None]] | None = None

    def when_due(self) -> None:
        """Begin a look-up when one is due, and note what the last one found. A failure is logged."""
        if self._look is None:
            topics = sorted({tp.topic for tp in self._known()})
            if topics and self._clock() >= self._next_at:
                self._look = self._worker.submit(lambda: self._current(topics))
        elif self._look.done:
            look, self._look = self._look, None
            self._next_at = self._clock() + self._age_s
            if look.error is None:
                self._compare(look.result())
            elif isinstance(look.error, ProtocolError):
                log.info("topics could not be looked up, next try in %.0f s: %s", self._age_s, look.error)
            else:
                raise look.error

    def _known(self) -> dict[TopicPartition, str]:
        return self._subscription.topic_ids(self._subscription.assigned)

    async def _current(self, topics: Iterable[str]) -> dict[str, str | None]:
        """The current ids of these topics; None: no topic has that name."""
        found = {}
        for topic in topics:
            answer = await self._link.topic(topic)
            found[topic] = None if answer is None else answer.topic_id
        return found

    def _compare(self, current: Mapping[str, str | None]) -> None:
        for partition, topic_id in self._known().items():
            if partition.topic in current and current[partition.topic] != topic_id:
                self._subscription.gone.add(topic_id)
