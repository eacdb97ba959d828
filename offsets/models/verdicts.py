"""What is wrong with groups, as last judged, and how busy they are."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from groups.models import Group, ProtocolOwned
from kcoord.database.fields import MillisField


class GroupVerdict(ProtocolOwned):
    """A verdict on a group (`offsets.core.verdicts.Verdict`): what lists, /metrics and the overview show.

    No foreign key constraint, as in `GroupLag`; `offsets.verdicts` removes the rows of deleted groups.
    """

    pk = models.CompositePrimaryKey("group_id", "kind", "topic")
    group = models.ForeignKey(
        Group, on_delete=models.DO_NOTHING, related_name="verdicts", db_constraint=False, db_index=False
    )
    kind = models.CharField(max_length=16)
    topic = models.CharField(max_length=249, blank=True, help_text="Empty: it is not about a topic.")
    since = MillisField()
    due_at = MillisField(null=True, help_text="When something happens by itself; null: nothing, or not known.")
    number = models.BigIntegerField(help_text="Of members, rebalances or partitions, depending on the kind.")
    lag = models.BigIntegerField(null=True)
    names = ArrayField(models.TextField(), help_text="The first of these members or partitions.")

    class Meta:
        indexes = [models.Index(fields=["kind", "since"], name="offsets_verdict_by_kind")]

    def __str__(self) -> str:
        return f"{self.group_id}: {self.kind} {self.topic}"


class VerdictRun(ProtocolOwned):
    """When all groups were last judged by their members, and by their offsets."""

    name = models.CharField(max_length=16, primary_key=True)
    at = MillisField()

    def __str__(self) -> str:
        return f"{self.name} @{self.at}"


class Activity(ProtocolOwned):
    """How much has happened by an instant, about every minute: differences say how busy all groups are."""

    at = MillisField(primary_key=True)
    record_offset = models.BigIntegerField(help_text="The last one given out: counts the lines of the journal.")
    event_id = models.BigIntegerField(help_text="The last one of the events of groups.")
    rebalances = models.BigIntegerField(help_text="Rebalances that began since the instant before.")
    lag = models.BigIntegerField(null=True, help_text="Of all groups together; null: of none is it known as of now.")

    def __str__(self) -> str:
        return f"@{self.at}: {self.record_offset}"
