"""Items of share groups: what has no row is done.

Source: share.md 7.
"""

from __future__ import annotations

from typing import Any

from django.db import models

from groups.models import ProtocolOwned
from groups.models.membership import group_key
from kcoord.database.fields import MillisField


class OffsetsField(models.Field):  # type: ignore[type-arg]
    """A set of offsets, `int8multirange`. Pages and services read it by SQL."""

    def db_type(self, connection: Any) -> str:
        """The type of Postgres."""
        return "int8multirange"


class SharePartition(ProtocolOwned):
    """A partition of a topic as a share group sees it. Offsets from `next_offset` on were never given out."""

    group = group_key("share_partitions")
    topic_id = models.UUIDField()
    partition = models.IntegerField()
    group_name = models.CharField(max_length=255, help_text="Set by the database, as the next two.")
    topic_name = models.CharField(max_length=249)
    topic_pk = models.BigIntegerField()
    next_offset = models.BigIntegerField(null=True, help_text="Null: it begins at the first end that is known.")
    end_offset = models.BigIntegerField(
        help_text="As workers reported it. Items at or above it, and above the watermark, are not given out."
    )

    class Meta:
        indexes = [models.Index(fields=["topic_id"], name="offsets_sharepartition_topic")]
        constraints = [
            models.UniqueConstraint(fields=["group", "topic_id", "partition"], name="offsets_sharepartition_once"),
        ]

    def __str__(self) -> str:
        return f"{self.topic_id}-{self.partition}"


class ShareLock(ProtocolOwned):
    """Offsets that a member acquired together and has not settled. One row for each acquisition and delivery count."""

    share_partition = models.ForeignKey(
        SharePartition, on_delete=models.DO_NOTHING, related_name="locks", db_constraint=False, db_index=False
    )
    member_id = models.CharField(max_length=300)
    held = OffsetsField()
    delivery_count = models.IntegerField()
    until = MillisField(db_index=True)
    lock_ms = models.BigIntegerField(help_text="How long a renewal lasts.")
    acquired_at = MillisField()
    last_error = models.TextField(null=True, help_text="Of the attempt before.")

    class Meta:
        indexes = [models.Index(fields=["share_partition", "until"], name="offsets_sharelock_partition")]

    def __str__(self) -> str:
        return f"{self.member_id}: {self.held}"


class ShareEnded(ProtocolOwned):
    """What became of a lock, for some minutes: who settles it again gets the same answer, or learns why not."""

    lock_id = models.BigIntegerField(primary_key=True)
    share_partition = models.ForeignKey(
        SharePartition, on_delete=models.DO_NOTHING, related_name="ended", db_constraint=False, db_index=False
    )
    member_id = models.CharField(max_length=300)
    cause = models.CharField(max_length=16, help_text="settled, expired, or released: its member is gone.")
    accepted = OffsetsField()
    released = OffsetsField()
    rejected = OffsetsField()
    at = MillisField()

    def __str__(self) -> str:
        return f"{self.lock_id}: {self.cause}"


class ShareRetry(ProtocolOwned):
    """Offsets that are available again, not before an instant."""

    share_partition = models.ForeignKey(
        SharePartition, on_delete=models.DO_NOTHING, related_name="retries", db_constraint=False, db_index=False
    )
    held = OffsetsField()
    delivery_count = models.IntegerField()
    not_before = MillisField()
    last_error = models.TextField(null=True)
    last_member = models.CharField(max_length=300)

    class Meta:
        indexes = [models.Index(fields=["share_partition", "not_before"], name="offsets_shareretry_due")]

    def __str__(self) -> str:
        return f"{self.held} from {self.not_before}"


class ShareDead(ProtocolOwned):
    """An item that was given up: one row each, because people look at it."""

    share_partition = models.ForeignKey(
        SharePartition, on_delete=models.DO_NOTHING, related_name="dead", db_constraint=False, db_index=False
    )
    offset = models.BigIntegerField()
    delivery_count = models.IntegerField()
    cause = models.CharField(max_length=16, help_text="rejected, or limit: delivered as often as allowed.")
    error = models.TextField(null=True)
    member_id = models.CharField(max_length=300)
    at = MillisField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["share_partition", "offset"], name="offsets_sharedead_once"),
        ]

    def __str__(self) -> str:
        return f"{self.offset}: {self.cause}"
