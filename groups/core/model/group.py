"""A group of any type. A group id belongs to one type at a time (consumer.md 1.1, share.md 4)."""

from __future__ import annotations

from groups.core.model.consumer_group import EpochGroup
from groups.core.model.types import ClassicGroup

Group = ClassicGroup | EpochGroup
