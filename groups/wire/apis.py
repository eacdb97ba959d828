"""What this package serves to Kafka clients."""

from __future__ import annotations

from groups.wire import brokers, classic, consumer, reads, share, storage
from kcoord.wire.api import Api

APIS: tuple[Api, ...] = (*brokers.APIS, *classic.APIS, *consumer.APIS, *share.APIS, *reads.APIS, *storage.APIS)
