"""Committed offsets: where each group is now. Rows are written only by `offsets.commits.store`."""

from __future__ import annotations

from django.db import models

from groups.models import ProtocolOwned, group_key
from kcoord.database.fields import MillisField


class CommittedOffset(ProtocolOwned):
    """The last committed offset of a group on a partition: the next offset to read.

    Source: offsets.md 3.6.
    """

    pk = models.CompositePrimaryKey("group_id", "topic", "partition")
    group = group_key("offsets", db_index=False)
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
        indexes = [models.Index(fields=["topic", "partition"], name="offsets_committed_by_topic")]

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}: {self.committed_offset}"
