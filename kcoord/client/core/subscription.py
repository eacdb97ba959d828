"""The consumer's subscription and assignment. Used by the user's lane only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kcoord.client.errors import IllegalStateError
from kcoord.client.listener import AsyncConsumerRebalanceListener, ConsumerRebalanceListener
from kcoord.client.types import OffsetAndMetadata, TopicPartition


@dataclass(slots=True)
class PartitionState:
    """One assigned partition.

    `position` is the next offset to read, None until it is known; `reset_to` a reset that the user asked for,
    "earliest" or "latest"; `withheld`: no records yet, or no more, because a listener has not returned from its call.
    `topic_id` the topic that the position belongs to: None not known yet, "" if the service does not tell it.
    `renewed`: the topic was created again while the partition was assigned, so the position has to be one of a topic
    that is known. `acknowledged`: what was committed last since the partition was assigned; None: nothing.
    """

    position: int | None = None
    paused: bool = False
    withheld: bool = False
    reset_to: str | None = None
    topic_id: str | None = None
    renewed: bool = False
    acknowledged: OffsetAndMetadata | None = None


class SubscriptionState:
    """Topics, pattern, listener, assigned partitions with their positions."""

    def __init__(self) -> None:
        self.topics: frozenset[str] = frozenset()
        self.pattern = ""
        self.listener: ConsumerRebalanceListener | AsyncConsumerRebalanceListener = ConsumerRebalanceListener()
        self.manual = False
        self._partitions: dict[TopicPartition, PartitionState] = {}
        self.gone: set[str] = set()
        """Ids of topics that were assigned and no longer exist."""

    @property
    def automatic(self) -> bool:
        """The group assigns the partitions."""
        return bool(self.topics or self.pattern)

    def subscribe(
        self,
        topics: Iterable[str],
        listener: ConsumerRebalanceListener | AsyncConsumerRebalanceListener | None,
        pattern: str | None = None,
    ) -> None:
        """Subscribe to `topics`, and to what `pattern` matches, replacing the previous subscription."""
        if self.manual:
            raise IllegalStateError("partitions were assigned by hand: call unsubscribe() first")
        self.topics = frozenset(topics)
        self.pattern = pattern or ""
        self.listener = listener or ConsumerRebalanceListener()

    def assign_by_hand(self, partitions: Iterable[TopicPartition]) -> None:
        """Read `partitions` without a group assigning them."""
        if self.automatic:
            raise IllegalStateError("topics are subscribed: call unsubscribe() first")
        self.manual = True
        self.set_assigned(partitions)

    def clear(self) -> None:
        """No topics, no partitions."""
        self.topics = frozenset()
        self.pattern = ""
        self.manual = False
        self._partitions = {}

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """The partitions this consumer reads."""
        return frozenset(self._partitions)

    def owned(self) -> dict[str, list[int]]:
        """The assigned partitions by topic, ascending."""
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(self._partitions):
            by_topic.setdefault(topic, []).append(partition)
        return by_topic

    def set_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Replace the assignment; partitions that stay keep their state."""
        self._partitions = {tp: self._partitions.get(tp) or PartitionState() for tp in sorted(partitions)}

    def identify(self, topic_ids: Mapping[TopicPartition, str]) -> None:
        """The assigned partitions belong to these topics. One that belonged to another topic of that name has no
        position any more, and what was fetched of it is dropped.
        """
        for partition, topic_id in topic_ids.items():
            state = self._partitions.get(partition)
            if state is None or state.topic_id == topic_id:
                continue
            if state.topic_id:
                self.gone.add(state.topic_id)
                self._partitions[partition] = state = _renewed(state)
            state.topic_id = topic_id

    def topic_ids(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
        """The topics that these partitions belong to, of those that are assigned and whose topic is known."""
        found = {tp: self._partitions[tp].topic_id for tp in partitions if tp in self._partitions}
        return {tp: topic_id for tp, topic_id in found.items() if topic_id}

    def of_topics_gone(self) -> frozenset[TopicPartition]:
        """Assigned partitions whose positions belong to topics that no longer exist."""
        return frozenset(tp for tp, state in self._partitions.items() if state.topic_id in self.gone)

    def renew(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget the positions of these partitions, and what was fetched of them: they are those of another topic."""
        for partition in partitions:
            self._partitions[partition] = _renewed(self._partitions[partition])

    def withhold(self, partitions: Iterable[TopicPartition], withheld: bool) -> None:
        """Return no records of these assigned partitions, or return records again."""
        for partition in partitions:
            self._partitions[partition].withheld = withheld

    def state(self, partition: TopicPartition) -> PartitionState:
        """The state of an assigned partition. Raises IllegalStateError."""
        try:
            return self._partitions[partition]
        except KeyError:
            raise IllegalStateError(f"partition {partition} is not assigned to this consumer") from None

    def get(self, partition: TopicPartition) -> PartitionState | None:
        """The state of `partition`, None if it is not assigned."""
        return self._partitions.get(partition)

    def note_acknowledged(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """These offsets were committed; those of partitions that are not assigned are not remembered."""
        for tp, committed in offsets.items():
            if tp in self._partitions:
                self._partitions[tp].acknowledged = committed

    def acknowledged(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What was committed last of each assigned partition, if anything was since it was assigned."""
        found = {tp: state.acknowledged for tp, state in self._partitions.items() if state.topic_id not in self.gone}
        return {tp: committed for tp, committed in found.items() if committed is not None}

    def without_position(self) -> list[TopicPartition]:
        """Assigned partitions whose position must still be found."""
        return [tp for tp, state in self._partitions.items() if state.position is None]

    def to_look_up(self) -> list[TopicPartition]:
        """Assigned partitions whose position, or the topic that it belongs to, must still be found."""
        return [tp for tp, state in self._partitions.items() if state.position is None or state.topic_id is None]

    def fetchable(self) -> Sequence[TopicPartition]:
        """Assigned partitions that are not paused or withheld, and have a position in a topic that exists."""
        return [
            tp
            for tp, state in self._partitions.items()
            if not (state.position is None or state.paused or state.withheld or state.topic_id in self.gone)
        ]

    def paused(self) -> frozenset[TopicPartition]:
        """Assigned partitions that are paused."""
        return frozenset(tp for tp, state in self._partitions.items() if state.paused)

    def consumed(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """The positions of `partitions` (default: all that are assigned), as offsets to commit.

        Not those of topics that are known to be gone: they would be refused again.
        """
        chosen = self._partitions if partitions is None else partitions
        offsets = {}
        for tp in chosen:
            state = self._partitions.get(tp)
            if state is not None and state.position is not None and state.topic_id not in self.gone:
                offsets[tp] = OffsetAndMetadata(state.position)
        return offsets


def _renewed(state: PartitionState) -> PartitionState:
    return PartitionState(paused=state.paused, withheld=state.withheld, renewed=True)
