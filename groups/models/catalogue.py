"""Topics with their watermarks, settings and labels of groups, and the versions of what processes keep in memory."""

from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Cast

from kcoord.database.fields import MillisField, ProtocolOwned


class Topic(models.Model):
    """A named set of partitions that members share. Anything can be one: files, shards, tables."""

    name = models.CharField(max_length=249, unique=True)
    topic_id = models.UUIDField(unique=True)
    partitions = models.PositiveIntegerField()
    labels = models.JSONField(default=dict, blank=True)
    created_at = MillisField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(partitions__gte=1), name="groups_topic_partitions_min"),
            # Groups store the ids as text, because classic ones have the name of a topic there.
            models.UniqueConstraint(Cast("topic_id", models.TextField()), name="groups_topic_by_id_as_text"),
        ]

    def __str__(self) -> str:
        return self.name


class Watermark(models.Model):
    """Where a partition's log begins and ends, as last reported by a producer or probe.

    `lower_end_offset`: the last report of an earlier end without a truncation, when it came and from whom.
    """

    topic = models.ForeignKey(Topic, on_delete=models.CASCADE, related_name="watermarks", db_index=False)
    partition = models.PositiveIntegerField()
    log_start_offset = models.BigIntegerField()
    log_end_offset = models.BigIntegerField()
    sampled_at = MillisField()
    lower_end_offset = models.BigIntegerField(null=True)
    lower_at = MillisField(null=True)
    lower_by = models.CharField(max_length=255, default="", db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["topic", "partition"], name="groups_watermark_once"),
            models.CheckConstraint(
                condition=models.Q(log_start_offset__gte=0, log_end_offset__gte=models.F("log_start_offset")),
                name="groups_watermark_ordered",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} [{self.log_start_offset}, {self.log_end_offset})"


class GroupConfigOverride(ProtocolOwned):
    """A setting that one group overrides. It exists whether or not the group does, so it names the group.

    Written only by `groups.configs`, which validates it and notifies the other processes.
    """

    group_name = models.CharField(max_length=255)
    name = models.CharField(max_length=100)
    value = models.TextField(help_text="As it would be written in the environment.")
    updated_at = MillisField()
    updated_by = models.CharField(max_length=255)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group_name", "name"], name="groups_configoverride_once")]

    def __str__(self) -> str:
        return f"{self.group_name}: {self.name}={self.value}"


class GroupLabels(ProtocolOwned):
    """The labels of a group. They exist whether or not the group does; a group without labels has no row.

    Written only by `groups.labels`.
    """

    group_name = models.CharField(max_length=255, unique=True)
    labels = models.JSONField()
    updated_at = MillisField()
    updated_by = models.CharField(max_length=255)

    class Meta:
        verbose_name_plural = "group labels"
        indexes = [GinIndex(fields=["labels"], name="groups_grouplabels_labels")]

    def __str__(self) -> str:
        return f"{self.group_name}: {', '.join(f'{name}={value}' for name, value in self.labels.items())}"


class Revision(ProtocolOwned):
    """The version of something that every process keeps a copy of in memory; no row: it was never changed.

    A transaction that changes it raises the version as its last step, so that a copy with a version has all changes up
    to it. The steps are random, so that different changes after a restore do not lead to the same versions.
    """

    subject = models.CharField(max_length=32, primary_key=True)
    version = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.subject}: {self.version}"
