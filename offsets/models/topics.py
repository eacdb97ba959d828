"""Deleted topics whose offsets have to be removed."""

from __future__ import annotations

from django.db import models

from groups.models import ProtocolOwned
from kcoord.database.fields import MillisField


class DeletedTopic(ProtocolOwned):
    """Written with the deletion of a topic; removed once no group has offsets of it.

    `record_offset`: the last record offset given out by then. An offset with a larger one, on an existing topic,
    belongs to a later topic with the same name.
    """

    topic = models.CharField(max_length=249)
    deleted_at = MillisField()
    principal = models.CharField(max_length=255, blank=True, default="", help_text="Token or account that asked.")
    record_offset = models.BigIntegerField()
    swept = models.BooleanField(default=False, help_text="All groups were visited once.")

    def __str__(self) -> str:
        return f"{self.topic} (deleted)"
