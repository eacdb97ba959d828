"""States of the coordinator partitions that one node hosts: which change leads where, and what a request meets.

Pure. Source: offsets.md 9.2 and 9.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from kcoord.protocol.errors import Error


class ShardState(str, Enum):
    """States of a partition that has a context here; without one it is not hosted here."""

    LOADING = "LOADING"
    ACTIVE = "ACTIVE"
    FAILED = "FAILED"


ANSWERS: Mapping[ShardState | None, Error] = {
    None: Error.NOT_COORDINATOR,
    ShardState.LOADING: Error.COORDINATOR_LOAD_IN_PROGRESS,
    ShardState.ACTIVE: Error.NONE,
    ShardState.FAILED: Error.NOT_COORDINATOR,
}
"""What a request to a group of such a partition is answered (offsets.md 9.2); None: not hosted here."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The context of a partition: `epoch` is the one under which this node was elected."""

    state: ShardState
    epoch: int


class Shards(Mapping[int, Shard]):
    """The contexts of this node by partition."""

    def __init__(self) -> None:
        self._contexts: dict[int, Shard] = {}

    def elect(self, partition: int, epoch: int) -> None:
        """This node owns the partition from `epoch` on. An epoch that is not newer is ignored.

        A partition that is loading or active goes on under the new epoch; any other has to be loaded.
        """
        known = self._contexts.get(partition)
        if known is not None and epoch <= known.epoch:
            return
        goes_on = known is not None and known.state is not ShardState.FAILED
        self._contexts[partition] = Shard(known.state if known is not None and goes_on else ShardState.LOADING, epoch)

    def loaded(self, partition: int, epoch: int) -> None:
        """The loading that began under `epoch` succeeded. Ignored unless it still loads."""
        self._finish(partition, epoch, ShardState.ACTIVE)

    def load_failed(self, partition: int, epoch: int) -> None:
        """The loading that began under `epoch` failed; only a newer epoch loads again."""
        self._finish(partition, epoch, ShardState.FAILED)

    def _finish(self, partition: int, epoch: int, state: ShardState) -> None:
        known = self._contexts.get(partition)
        if known is not None and known.state is ShardState.LOADING and known.epoch >= epoch:
            self._contexts[partition] = Shard(state, known.epoch)

    def resign(self, partition: int, epoch: int | None) -> bool:
        """Another node owns the partition from `epoch` on (None: whatever the epoch); returns whether it was dropped.

        An epoch that is not newer than that of the context is ignored.
        """
        known = self._contexts.get(partition)
        if known is None or (epoch is not None and known.epoch >= epoch):
            return False
        del self._contexts[partition]
        return True

    def answer(self, partition: int) -> Error:
        """What a request to a group of this partition meets; NONE: it is handled."""
        known = self._contexts.get(partition)
        return ANSWERS[known.state if known is not None else None]

    def __getitem__(self, partition: int) -> Shard:
        return self._contexts[partition]

    def __iter__(self) -> Iterator[int]:
        return iter(tuple(self._contexts))

    def __len__(self) -> int:
        return len(self._contexts)
