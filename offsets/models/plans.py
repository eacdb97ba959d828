"""Offset plans: a computed reset that can be reviewed, applied and undone."""

from __future__ import annotations

from django.db import models

from groups.models import ProtocolOwned
from kcoord.database.fields import MillisField


class OffsetPlan(ProtocolOwned):
    """A plan as it was computed. Its lines do not change; `state` does, forward only."""

    class State(models.TextChoices):
        PLANNED = "planned"
        APPLIED = "applied"
        UNDONE = "undone"

    id = models.UUIDField(primary_key=True)
    group_name = models.CharField(max_length=255)
    strategy = models.CharField(max_length=32)
    parameters = models.JSONField(help_text="What the strategy was given, to show it again.")
    totals = models.JSONField(help_text="The plan in numbers: partitions, changed, clamped, removed, lag_change.")
    state = models.CharField(max_length=16, choices=State.choices)
    reason = models.TextField(blank=True, default="")
    created_at = MillisField()
    created_by = models.CharField(max_length=255)
    maker = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="Who answers for it: an account, or a token without owner.",
    )
    approved_at = MillisField(null=True)
    approved_by = models.CharField(max_length=255, null=True)
    applied_at = MillisField(null=True)
    applied_by = models.CharField(max_length=255, null=True)
    undone_at = MillisField(null=True)
    undone_by = models.CharField(max_length=255, null=True)

    class Meta:
        indexes = [
            models.Index(fields=["group_name", "-created_at"], name="offsets_plan_by_group"),
            models.Index(fields=["created_at", "id"], name="offsets_plan_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.group_name}: {self.strategy} ({self.state})"


class PlannedOffset(ProtocolOwned):
    """One partition of a plan.

    `old_offset` null: nothing was committed. `new_offset` null: the committed offset is removed.
    `old_record_offset` and `applied_record_offset` tell whether anything was committed since the plan was made, and
    since it was applied; of a share group, whether anything happened to items (`kcoord.share_state`).
    """

    pk = models.CompositePrimaryKey("plan_id", "topic", "partition")
    plan = models.ForeignKey(OffsetPlan, on_delete=models.CASCADE, related_name="lines", db_index=False)
    topic = models.CharField(max_length=249)
    partition = models.IntegerField()
    old_offset = models.BigIntegerField(null=True)
    old_leader_epoch = models.IntegerField(default=-1)
    old_metadata = models.TextField(blank=True, default="")
    old_commit_timestamp = MillisField(null=True)
    old_expire_timestamp = MillisField(null=True)
    old_record_offset = models.BigIntegerField(null=True)
    requested_offset = models.BigIntegerField(null=True, help_text="Before it was clamped to the log.")
    new_offset = models.BigIntegerField(null=True)
    log_start_offset = models.BigIntegerField(null=True)
    log_end_offset = models.BigIntegerField(null=True)
    note = models.TextField(blank=True, default="")
    applied_record_offset = models.BigIntegerField(null=True)
    old_items = models.JSONField(
        null=True, help_text="Of a share group that was reset: where the partition was, and the items that went."
    )

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}: {self.old_offset} -> {self.new_offset}"
