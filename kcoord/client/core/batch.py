"""Records that were fetched for an iterator: each one moves the position when it is handed out, not before."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kcoord.client.core.subscription import PartitionState, SubscriptionState
from kcoord.client.types import Record, TopicPartition


@dataclass(frozen=True, slots=True)
class Fetched:
    """A record, with the position at which it is the next one, in this stay of the partition."""

    partition: TopicPartition
    state: PartitionState
    position: int
    record: Record[Any]


class Batch:
    """What one poll fetched and the iterator has not handed out yet."""

    def __init__(self, subscription: SubscriptionState) -> None:
        self._subscription = subscription
        self._fetched: deque[Fetched] = deque()

    def fill(self, records: Mapping[TopicPartition, Sequence[Record[Any]]]) -> None:
        """Add records that follow on the current positions."""
        for partition, found in records.items():
            state = self._subscription.state(partition)
            position = state.position
            assert position is not None, "it has been read from"
            for record in found:
                self._fetched.append(Fetched(partition, state, position, record))
                position = record.offset + 1

    def take(self) -> Record[Any] | None:
        """The next record that is still to be read; None: fetch more.

        Not read any more: what was sought away from, paused, revoked, or is read by `poll` in between.
        """
        while self._fetched:
            fetched = self._fetched.popleft()
            state = self._subscription.get(fetched.partition)
            if state is not fetched.state or state.position != fetched.position or state.paused or state.withheld:
                continue
            state.position = fetched.record.offset + 1
            return fetched.record
        return None
