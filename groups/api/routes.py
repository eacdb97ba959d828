"""All operations of this package."""

from __future__ import annotations

from groups.api import consumer, coordination, handlers

OPERATIONS = (
    handlers.join,
    handlers.sync,
    handlers.heartbeat,
    handlers.leave,
    handlers.many_heartbeats,
    consumer.consumer_heartbeat,
    consumer.share_heartbeat,
    coordination.coordinator,
    coordination.assign,
)
