"""The calls that both share consumers have alike: those that never wait."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Generic, TypeVar

from kcoord.client.base import Driver
from kcoord.client.core.membership import Generation
from kcoord.client.core.share.consumer import AcknowledgeCallback, ShareCore
from kcoord.client.types import AcknowledgeType, Item, MemberState, TopicPartition

T = TypeVar("T")


class BaseShareConsumer(ABC, Generic[T]):
    """What a share consumer does without waiting. `acknowledge`, `acknowledge_offset` and `locks_for` may be called by
    the handlers of `run`: of a `ShareConsumer` in any thread, of an `AsyncShareConsumer` in its event loop.
    """

    _core: ShareCore

    @property
    @abstractmethod
    def _driver(self) -> Driver: ...

    def subscribe(self, topics: Iterable[str]) -> None:
        """Work on these topics instead of the previous ones. Raises IllegalStateError for none, TypeError."""
        self._driver.now(self._core.subscribe, topics)

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to."""
        return self._core.topics

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this worker is meant to work on; others may have the same."""
        return self._driver.look(lambda: self._core.member.assigned)

    @property
    def state(self) -> MemberState:
        """The state of the member in the group."""
        return self._driver.look(lambda: self._core.member.state)

    @property
    def generation(self) -> Generation:
        """The member's id, and its epoch as `generation_id`, as far as known."""
        return self._driver.look(lambda: self._core.member.generation)

    def acknowledge(
        self,
        item: Item[T],
        type: AcknowledgeType = "accept",
        delay: float | timedelta | None = None,
        error: str | BaseException | None = None,
    ) -> None:
        """Say what became of `item`, with acknowledgement_mode="explicit". It is sent a moment later.

        "accept": done. "release": to be given to somebody again after `delay` seconds (None: after the back-off of the
        group), until it was delivered as often as the group allows. "reject": given up. What is given up is a dead
        letter. "renew": the work goes on, max_processing_s starts again. `error` is for the next worker, or the dead
        letter.
        Raises IllegalStateError for an item that was acknowledged before, and in implicit mode; TypeError, ValueError.
        Whether it was too late is in the results of `commit`.

        Differs from Kafka: an item that is renewed stays with the program, and is not returned by a poll again.
        Source: KIP-932, KIP-1222.
        """
        self._driver.look(self._core.acknowledge, item, type, delay, error)

    def acknowledge_offset(
        self,
        topic: str,
        partition: int,
        offset: int,
        type: AcknowledgeType = "accept",
        delay: float | timedelta | None = None,
        error: str | BaseException | None = None,
    ) -> None:
        """`acknowledge` for an item that is known by its offset."""
        chosen = TopicPartition(topic, partition)
        self._driver.look(self._core.acknowledge_offset, chosen, offset, type, delay, error)

    def locks_for(self, items: Iterable[Item[T]]) -> list[dict[str, Any]]:
        """These items as the SQL function `kcoord.settle` takes them, to be accepted in your own transaction.

        From then on they are neither accepted nor renewed by this consumer. If the transaction fails, raise, or release
        them. Raises InvalidRecordStateError if a lock is known to be lost, IllegalStateError.
        """
        return self._driver.look(self._core.locks_for, items)

    def commit_async(self, callback: AcknowledgeCallback | None = None) -> None:
        """Send what was acknowledged (in implicit mode: accept what was returned) without waiting.

        `callback(results)` runs in a later `poll`, `run` or `close`, with what `commit` would return. Without one,
        failures are logged, as they always are.
        """
        self._driver.now(self._core.commit_async, callback)

    @property
    def stopping(self) -> bool:
        """It was told to stop: `while not worker.stopping: worker.poll(1000)`."""
        return self._core.stopping
