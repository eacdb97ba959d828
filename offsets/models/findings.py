"""Findings of reconcile: committed offsets that differ from the commits, commits that should not exist, lost items."""

from __future__ import annotations

from django.db import models

from groups.models import ProtocolOwned
from offsets.models.spark_runs import SparkRun


class ReconcileFinding(ProtocolOwned):
    """One finding of one run. Rows are written by `offsets.spark.reconcile`, in the process of the run.

    A run keeps a bounded number of them; `SparkRun.findings` counts all. The meaning of `expected` and `found` depends
    on the kind: docs/reconcile.md has the table.
    """

    class Kind(models.TextChoices):
        MISSING_IN_VIEW = "missing_in_view"
        MISSING_IN_JOURNAL = "missing_in_journal"
        SURPLUS_IN_VIEW = "surplus_in_view"
        OTHER_OFFSET = "other_offset"
        OTHER_METADATA = "other_metadata"
        REWIND = "rewind"
        BEYOND_LOG_END = "beyond_log_end"
        BELOW_LOG_START = "below_log_start"
        TOPIC_GONE = "topic_gone"
        PARTITION_GONE = "partition_gone"
        TWO_MEMBERS = "two_members"
        FENCED_GENERATION = "fenced_generation"
        TIME_BACKWARDS = "time_backwards"
        ITEM_LOST = "item_lost"
        ITEM_TWICE = "item_twice"

    pk = models.CompositePrimaryKey("run_id", "number")
    run = models.ForeignKey(SparkRun, on_delete=models.CASCADE, related_name="found", db_index=False)
    number = models.IntegerField(help_text="Counted from 1, in the order of group, topic, partition.")
    kind = models.CharField(max_length=32, choices=Kind.choices)
    group_name = models.CharField(max_length=255)
    topic = models.CharField(max_length=249)
    partition = models.IntegerField()
    expected = models.BigIntegerField(null=True, help_text="What the journal, or the log, says.")
    found = models.BigIntegerField(null=True, help_text="What is committed, or was.")
    evidence = models.JSONField(help_text="journal_ids, members, generations, instants (ms), and more by kind.")

    class Meta:
        indexes = [models.Index(fields=["group_name", "run"], name="offsets_finding_by_group")]

    def __str__(self) -> str:
        return f"{self.kind}: {self.group_name} {self.topic}-{self.partition} {self.expected} {self.found}"
