"""A listener that writes down what it is told."""

from __future__ import annotations

from typing import Any

from kcoord.client import ConsumerRebalanceListener


class Journal(ConsumerRebalanceListener):
    """Writes down the rebalances of one consumer: what happened, and to which partitions."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[int]]] = []

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.calls.append(("revoked", [tp.partition for tp in revoked]))

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.calls.append(("assigned", [tp.partition for tp in assigned]))

    def on_partitions_lost(self, lost: Any) -> None:
        self.calls.append(("lost", [tp.partition for tp in lost]))
