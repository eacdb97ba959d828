"""What this package serves to Kafka clients."""

from __future__ import annotations

from groups.wire import brokers, classic, consumer, reads, storage
from kcoord.wire.api import Api

APIS: tuple[Api, ...] = (*brokers.APIS, *classic.APIS, *consumer.APIS, *reads.APIS, *storage.APIS)
