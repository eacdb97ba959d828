"""Samples over time: where logs ended, and how far groups were behind."""

from __future__ import annotations

from django.db import models

from groups.models import ProtocolOwned
from kcoord.fields import MillisField


class WatermarkSample(ProtocolOwned):
    """Where the log of a partition was at an instant. Time lag and resets to a time are interpolated from these."""

    pk = models.CompositePrimaryKey("topic", "partition", "at")
    topic = models.CharField(max_length=249)
    partition = models.IntegerField()
    at = MillisField()
    log_start_offset = models.BigIntegerField()
    log_end_offset = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["at"], name="offsets_watermarksample_time")]

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} @{self.at}: {self.log_end_offset}"


class LagSample(ProtocolOwned):
    """How far a group was behind on a topic at an instant. It outlives its group."""

    pk = models.CompositePrimaryKey("group_name", "topic", "at")
    group_name = models.CharField(max_length=255)
    topic = models.CharField(max_length=249)
    at = MillisField()
    lag = models.BigIntegerField()
    time_lag_ms = models.BigIntegerField(null=True)

    class Meta:
        indexes = [models.Index(fields=["at"], name="offsets_lagsample_time")]

    def __str__(self) -> str:
        return f"{self.group_name} {self.topic} @{self.at}: {self.lag}"
