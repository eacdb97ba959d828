"""Pins: groups and topics whose offsets retention keeps."""

from __future__ import annotations

from django.db import models

from groups.models import ProtocolOwned
from kcoord.database.fields import MillisField


class RetentionPin(ProtocolOwned):
    """Offsets of a group, or of one of its topics, that do not expire. It names the group, which may be recreated."""

    group_name = models.CharField(max_length=255)
    topic = models.CharField(max_length=249, blank=True, default="", help_text="Empty: all topics of the group.")
    pinned_at = MillisField()
    pinned_by = models.CharField(max_length=255)
    reason = models.TextField(blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group_name", "topic"], name="offsets_pin_once")]

    def __str__(self) -> str:
        return f"{self.group_name} {self.topic or '(all topics)'}"
