"""The journal of committed offsets: what was committed, reset, deleted and expired, when, and by whom."""

from __future__ import annotations

from django.db import models

from groups.models import ProtocolOwned
from kcoord.database.fields import MillisField


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
