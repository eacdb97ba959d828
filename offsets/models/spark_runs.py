"""Runs of the Spark jobs, and which days of the journal the archive holds."""

from __future__ import annotations

from django.db import models

from groups.models import ProtocolOwned
from kcoord.database.fields import MillisField


class SparkRun(ProtocolOwned):
    """A run of a Spark job of any kind. Rows are written by `offsets.spark.runs`, in the process of the run.

    A run that is `running` while no process holds the lock of its kind has died; the next one marks it `lost`. The
    columns from `bound` to `manifest_sha256` are filled by runs that publish to the archive or read it at a bound.
    Source: architecture.md 7; docs/archive.md.
    """

    class Kind(models.TextChoices):
        ARCHIVE = "archive"
        RECONCILE = "reconcile"
        RESTORE = "restore"
        REPORT = "report"
        IMPORT = "import"

    class State(models.TextChoices):
        REQUESTED = "requested"
        RUNNING = "running"
        SUCCEEDED = "succeeded"
        FAILED = "failed"
        CANCELLED = "cancelled"
        LOST = "lost"

    id = models.UUIDField(primary_key=True)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    state = models.CharField(max_length=16, choices=State.choices)
    parameters = models.JSONField(default=dict, help_text="What the run was asked for.")
    requested_at = MillisField()
    requested_by = models.CharField(max_length=255)
    started_at = MillisField(null=True)
    ended_at = MillisField(null=True)
    heartbeat_at = MillisField(null=True, help_text="The last sign of life of the process.")
    cancel_requested_at = MillisField(null=True)
    host = models.CharField(max_length=255, blank=True, default="")
    pid = models.IntegerField(null=True)
    log_path = models.TextField(blank=True, default="")
    stage = models.CharField(max_length=64, blank=True, default="", help_text="What it does, or did last.")
    slices_done = models.IntegerField(default=0)
    slices_total = models.IntegerField(default=0)
    bound = models.BigIntegerField(null=True, help_text="Transaction ids below it are covered.")
    system_identifier = models.CharField(max_length=32, blank=True, default="")
    timeline = models.IntegerField(null=True)
    archive_path = models.TextField(blank=True, default="")
    archive_id = models.CharField(max_length=64, blank=True, default="", help_text="Id of the Delta table.")
    manifest = models.BigIntegerField(null=True, help_text="Number of the last manifest that it published.")
    manifest_sha256 = models.CharField(max_length=64, blank=True, default="")
    rows = models.BigIntegerField(null=True)
    files = models.IntegerField(null=True)
    bytes = models.BigIntegerField(null=True)
    findings = models.IntegerField(null=True)
    result = models.JSONField(null=True, help_text="What the command prints with --format json.")
    error = models.TextField(blank=True, default="")

    class Meta:
        indexes = [models.Index(fields=["kind", "-requested_at"], name="offsets_sparkrun_by_kind")]

    def __str__(self) -> str:
        return f"{self.kind} {self.id} ({self.state})"


class ArchivedDay(ProtocolOwned):
    """Rows of one day that one run published, counted and summed up from the published files.

    `checksum` is the sum of a hash of each row, so that days add up over runs; see `offsets.spark.archive.jobs`. A row
    counts until its day of the journal is dropped, or another database took over the archive.
    """

    pk = models.CompositePrimaryKey("run_id", "manifest", "day")
    run = models.ForeignKey(SparkRun, on_delete=models.PROTECT, related_name="days", db_index=False)
    manifest = models.BigIntegerField()
    day = models.IntegerField(help_text="UTC, counted from 1970-01-01.")
    archive_id = models.CharField(max_length=64)
    system_identifier = models.CharField(max_length=32)
    timeline = models.IntegerField()
    rows = models.BigIntegerField()
    checksum = models.DecimalField(max_digits=38, decimal_places=0)
    counts = models.BooleanField(default=True)

    class Meta:
        indexes = [models.Index(fields=["day"], name="offsets_archivedday_counts", condition=models.Q(counts=True))]

    def __str__(self) -> str:
        return f"{self.day}: {self.rows} rows"
