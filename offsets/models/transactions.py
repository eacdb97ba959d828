"""Transactional commits: producers, and the offsets of their open transactions."""

from __future__ import annotations

from django.db import models

from groups.models import ProtocolOwned, group_key
from kcoord.database.fields import MillisField


class Producer(ProtocolOwned):
    """The producer registered for a transactional id. A larger epoch fences every earlier one (KIP-98).

    `ended_…`: the transaction whose end gave the producer its epoch (KIP-890); null if something else did.
    """

    producer_id = models.BigIntegerField(primary_key=True)
    transactional_id = models.CharField(max_length=255, unique=True)
    producer_epoch = models.IntegerField()
    updated_at = MillisField()
    ended_producer_id = models.BigIntegerField(null=True)
    ended_producer_epoch = models.IntegerField(null=True)
    ended_committed = models.BooleanField(null=True)

    def __str__(self) -> str:
        return f"{self.transactional_id} ({self.producer_id}:{self.producer_epoch})"


class PendingOffset(ProtocolOwned):
    """An offset of a transaction that has not ended (offsets.md 4.2).

    `record_offset` orders it against plain commits: of two, the one written later wins, whenever the marker arrives.
    """

    pk = models.CompositePrimaryKey("producer_id", "group_id", "topic", "partition")
    producer = models.ForeignKey(
        Producer, on_delete=models.DO_NOTHING, related_name="pending", db_constraint=False, db_index=False
    )
    group = group_key("pending_offsets")
    topic = models.CharField(max_length=249)
    partition = models.IntegerField()
    committed_offset = models.BigIntegerField()
    leader_epoch = models.IntegerField(default=-1)
    metadata = models.TextField(blank=True, default="")
    commit_timestamp = MillisField()
    opened_at = MillisField(help_text="When its transaction first wrote to the partition.")
    record_offset = models.BigIntegerField()
    member_id = models.CharField(max_length=300, blank=True, default="")
    generation_id = models.IntegerField(default=-1)
    client_id = models.CharField(max_length=255, blank=True, default="")
    principal = models.CharField(max_length=255, blank=True, default="")

    class Meta:
        indexes = [models.Index(fields=["group", "topic", "partition"], name="offsets_pending_by_group")]

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}: {self.committed_offset} (pending)"
