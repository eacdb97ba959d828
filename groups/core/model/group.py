"""A group of either protocol. A group id belongs to one type at a time (consumer.md 1.1)."""

from __future__ import annotations

from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.types import ClassicGroup

Group = ClassicGroup | ConsumerGroup
