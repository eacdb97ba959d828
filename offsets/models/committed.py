"""Committed offsets: where each group is now, the journal of how it came there, and what keeps and removes them.

Rows are written only by `offsets.commits`.
"""

from __future__ import annotations

from django.db import models

from groups.models import ProtocolOwned, group_key
from kcoord.database.fields import MillisField


class CommittedOffset(ProtocolOwned):
    """The last committed offset of a group on a partition: the next offset to read.

    Source: offsets.md 3.6.
    """

    pk = models.CompositePrimaryKey("group_id", "topic", "partition")
    group = group_key("offsets")
    topic = models.CharField(max_length=249)
    partition = models.IntegerField()
    committed_offset = models.BigIntegerField()
    leader_epoch = models.IntegerField(default=-1)
    metadata = models.TextField(blank=True, default="")
    commit_timestamp = MillisField()
    expire_timestamp = MillisField(null=True, help_text="Only where the commit named a retention time.")
    member_id = models.CharField(max_length=300, blank=True, default="", help_text="Who committed it.")
    generation_id = models.IntegerField(default=-1)
    record_offset = models.BigIntegerField(
        db_default=0, help_text="Id of its line in the journal: a larger one was written later."
    )

    class Meta:
        indexes = [models.Index(fields=["topic", "partition", "group"], name="offsets_committed_of_topic")]

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}: {self.committed_offset}"


class OffsetCommitLog(ProtocolOwned):
    """One change of one committed offset. Append-only, partitioned by day of `at` (`0001_journal.sql`).

    It outlives its group, so it stores the group's name. `id` is the record offset: within a group, a larger id was
    written later. `xact_id` is the Postgres transaction that wrote it: ids are not in commit order, so incremental
    readers bound their reads by `pg_snapshot_xmin`.
    Source: architecture.md 7.
    """

    id = models.BigIntegerField(primary_key=True)
    at = MillisField()
    xact_id = models.BigIntegerField()
    kind = models.CharField(max_length=16)
    group_name = models.CharField(max_length=255)
    topic = models.CharField(max_length=249)
    partition = models.IntegerField()
    committed_offset = models.BigIntegerField(null=True, help_text="Null where the offset was removed.")
    leader_epoch = models.IntegerField(default=-1)
    metadata = models.TextField(blank=True, default="")
    expire_timestamp = MillisField(null=True)
    member_id = models.CharField(max_length=300, blank=True, default="")
    generation_id = models.IntegerField(default=-1)
    client_id = models.CharField(max_length=255, blank=True, default="")
    principal = models.CharField(max_length=255, blank=True, default="", help_text="Token or account that asked.")
    transactional_id = models.CharField(max_length=255, null=True)
    plan_id = models.UUIDField(null=True)

    class Meta:
        db_table = "offset_commit_log"

    def __str__(self) -> str:
        return f"{self.group_name}: {self.kind} {self.topic}-{self.partition} {self.committed_offset}"


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
