"""What this package serves to Kafka clients."""

from __future__ import annotations

from groups.api.kafka import brokers, classic, consumer, reads, share, storage
from kcoord.door.kafka.api import Api

APIS: tuple[Api, ...] = (*brokers.APIS, *classic.APIS, *consumer.APIS, *share.APIS, *reads.APIS, *storage.APIS)
