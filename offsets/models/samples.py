"""Samples over time: where logs ended, and how far groups were behind."""

from __future__ import annotations

from django.db import models

from groups.models import Group, ProtocolOwned, Topic
from kcoord.database.fields import MillisField


class WatermarkSample(ProtocolOwned):
    """The log of a partition ended at one offset from `at` until `until`, as watermarks reported then said.

    Time lag and resets to a time are interpolated from these. Over time a partition's `log_end_offset` never falls:
    where a log is truncated, earlier samples are cut to its new end. The topic is referenced by the key of its row,
    which no later topic of the same name has; no foreign key constraint exists, so that deleting a topic does not wait
    for the deletion of millions of samples. `offsets.lag.samples` removes them.
    """

    pk = models.CompositePrimaryKey("topic_id", "partition", "at")
    topic = models.ForeignKey(
        Topic, on_delete=models.DO_NOTHING, related_name="samples", db_constraint=False, db_index=False
    )
    partition = models.IntegerField()
    at = MillisField()
    until = MillisField(help_text="The last report that said the same.")
    log_start_offset = models.BigIntegerField(help_text="As of `until`.")
    log_end_offset = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["topic", "partition", "log_end_offset", "at"], name="offsets_sample_by_end")]

    def __str__(self) -> str:
        return f"{self.topic_id}-{self.partition} @{self.at}: {self.log_end_offset}"


class LagSample(ProtocolOwned):
    """How far a group was behind on a topic at an instant, the same for all topics. It outlives its group.

    Topics with an unknown lag at that instant have no row.
    """

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


class LagPeak(ProtocolOwned):
    """What was largest in a step of which only the first and last samples of lag are kept: a sample of its own.

    Without `topic`: the sum over the topics of the group; without `group_name`: over the groups of the topic. `parts`:
    how many there are in the sum; of a group on one topic, how many topics the group had in that step.
    """

    pk = models.CompositePrimaryKey("group_name", "topic", "at")
    group_name = models.CharField(max_length=255)
    topic = models.CharField(max_length=249)
    at = MillisField()
    lag = models.BigIntegerField()
    time_lag_ms = models.BigIntegerField(null=True)
    parts = models.IntegerField()

    class Meta:
        indexes = [models.Index(fields=["at"], name="offsets_lagpeak_time")]

    def __str__(self) -> str:
        return f"{self.group_name} {self.topic} @{self.at}: at most {self.lag}"


class GroupLag(ProtocolOwned):
    """A group when it was last sampled: what lists of groups show and sort by, and what /metrics exposes.

    No foreign key constraint: its check would lock the group's row while thousands of groups are sampled. A group's key
    is never reused, and `offsets.lag.samples` removes the rows of deleted groups.
    """

    group = models.OneToOneField(
        Group, on_delete=models.DO_NOTHING, related_name="sampled_lag", primary_key=True, db_constraint=False
    )
    at = MillisField()
    lag = models.BigIntegerField(null=True, help_text="Null: of no partition is it known.")
    time_lag_ms = models.BigIntegerField(null=True)
    time_lag_at_least_ms = models.BigIntegerField(
        null=True, help_text="If time_lag_ms is not known: it is at least this. Null: nothing is known."
    )
    state = models.CharField(max_length=32, db_default="")
    generation_id = models.IntegerField(db_default=0)
    members = models.IntegerField(db_default=0)
    partitions = models.IntegerField(null=True, help_text="That it owns or committed an offset on.")

    def __str__(self) -> str:
        return f"{self.group_id} @{self.at}: {self.lag}"


class TopicLag(ProtocolOwned):
    """A group on a topic that it has committed on, when it was last sampled; exposed by /metrics.

    Sums over the partitions with a committed offset; of lag and log ends, over those of them with a watermark. Like
    `GroupLag`, its rows have no foreign key constraint and are removed by `offsets.lag.samples`.
    """

    pk = models.CompositePrimaryKey("group_id", "topic")
    group = models.ForeignKey(
        Group, on_delete=models.DO_NOTHING, related_name="sampled_topics", db_constraint=False, db_index=False
    )
    topic = models.CharField(max_length=249)
    at = MillisField()
    lag = models.BigIntegerField(null=True, help_text="Null: of no partition is it known.")
    max_lag = models.BigIntegerField(null=True, help_text="Of the partition that is furthest behind.")
    time_lag_ms = models.BigIntegerField(null=True)
    time_lag_at_least_ms = models.BigIntegerField(
        null=True, help_text="If time_lag_ms is not known: it is at least this. Null: nothing is known."
    )
    committed_offsets = models.BigIntegerField(help_text="Their sum.")
    log_end_offsets = models.BigIntegerField(null=True, help_text="Their sum.")
    partitions = models.IntegerField()
    unknown_partitions = models.IntegerField(help_text="Those without a watermark.")

    class Meta:
        indexes = [models.Index(fields=["topic", "group"], name="offsets_topiclag_by_topic")]

    def __str__(self) -> str:
        return f"{self.group_id} {self.topic} @{self.at}: {self.lag}"


class TopicTotal(ProtocolOwned):
    """A topic over all groups that have committed on it, when lag was last sampled: what the list of topics shows.

    Of groups of which the lag is not known, only their number counts.
    """

    topic = models.CharField(max_length=249, primary_key=True)
    at = MillisField()
    groups = models.IntegerField()
    lag = models.BigIntegerField(null=True, help_text="The sum over these groups; null: of none is it known.")
    worst_group_id = models.BigIntegerField(null=True, help_text="The key of the group that is furthest behind.")
    worst_lag = models.BigIntegerField(null=True)
    time_lag_ms = models.BigIntegerField(null=True, help_text="Of the group that is furthest behind in time.")
    time_lag_at_least_ms = models.BigIntegerField(
        null=True, help_text="If time_lag_ms is not known of each group: the largest is at least this."
    )

    def __str__(self) -> str:
        return f"{self.topic} @{self.at}: {self.lag}"
