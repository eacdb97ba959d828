"""Coordinator nodes and the partitions they own. Written by `groups.nodes.store` only.

Source: architecture.md 6; offsets.md 9.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from kcoord.database.fields import MillisField, ProtocolOwned


class CoordinatorNode(ProtocolOwned):
    """One run of a server process. Its id is the incarnation: a restart is another row."""

    class EndReason(models.TextChoices):
        STOPPED = "stopped"
        LAPSED = "lapsed"

    node_id = models.CharField(max_length=255, help_text="The server's name; it keeps it over restarts.")
    url = models.CharField(max_length=500, blank=True, help_text="Where clients reach it; empty: unknown.")
    broker_id = models.IntegerField(
        db_default=0, help_text="Its number as a broker of Kafka clients; it keeps it over restarts."
    )
    kafka_host = models.CharField(
        max_length=255, blank=True, db_default="", help_text="Where Kafka clients reach it; empty: where they came by."
    )
    kafka_port = models.IntegerField(db_default=0, help_text="0: it does not listen for Kafka clients.")
    version = models.CharField(max_length=50)
    started_at = MillisField()
    renewed_at = MillisField()
    expires_at = MillisField(help_text="When its lease runs out. A lease that has run out is not renewed.")
    flushed_until = MillisField(
        null=True,
        help_text="Sessions that it renewed in memory until then are stored. Null: it renews none in memory.",
    )
    ended_at = MillisField(null=True)
    end_reason = models.CharField(max_length=16, null=True, choices=EndReason.choices)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node_id"], name="groups_coordinatornode_once", condition=Q(ended_at__isnull=True)
            ),
            models.UniqueConstraint(
                fields=["url"],
                name="groups_coordinatornode_url_once",
                condition=Q(ended_at__isnull=True) & ~Q(url=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node_id} ({self.pk})"


class CoordinatorPartition(ProtocolOwned):
    """A coordinator partition: the groups whose ids hash to its number, and the node that runs their timers.

    No row: no node has ever owned it, and the timers of its groups run without one.
    """

    class State(models.TextChoices):
        LOADING = "LOADING"
        ACTIVE = "ACTIVE"
        CLOSED = "CLOSED"

    partition = models.IntegerField(primary_key=True)
    owner = models.ForeignKey(
        CoordinatorNode, null=True, on_delete=models.DO_NOTHING, related_name="partitions", db_index=False
    )
    epoch = models.BigIntegerField(default=0, help_text="Grows with every change of the owner.")
    gap = models.BigIntegerField(
        default=0, help_text="Grows when sessions could not be counted: groups with a smaller armed_gap start over."
    )
    state = models.CharField(max_length=16, choices=State.choices)
    state_since = MillisField()
    active_since = MillisField(null=True)
    load_ms = models.BigIntegerField(null=True, help_text="How long the last loading took.")

    def __str__(self) -> str:
        return f"{self.partition}: {self.state}"


class PartitionChange(ProtocolOwned):
    """A change of the owner of a coordinator partition, for people."""

    class Reason(models.TextChoices):
        TAKEN = "taken"
        LAPSED = "lapsed"
        STOPPED = "stopped"
        BALANCED = "balanced"

    at = MillisField()
    partition = models.IntegerField()
    epoch = models.BigIntegerField()
    gap = models.BigIntegerField()
    from_node = models.CharField(max_length=255, blank=True, help_text="Empty: nobody owned it.")
    to_node = models.CharField(max_length=255, blank=True, help_text="Empty: nobody owns it.")
    reason = models.CharField(max_length=16, choices=Reason.choices)
    gap_ms = models.BigIntegerField(null=True, help_text="How long nobody owned it; null: not at all.")

    class Meta:
        indexes = [models.Index(F("at").desc(), name="groups_partitionchange_by_age")]

    def __str__(self) -> str:
        return f"{self.partition}: {self.from_node} -> {self.to_node}"
