"""Groups with their members, what they own, and what happened to them."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import models

from groups import states
from kcoord.database.fields import MillisField, ProtocolOwned


class Group(ProtocolOwned):
    """A group of any type: the header row, which is also its lock."""

    class Type(models.TextChoices):
        CLASSIC = states.CLASSIC
        CONSUMER = states.CONSUMER
        SHARE = states.SHARE

    group_id = models.CharField(max_length=255, unique=True)
    type = models.CharField(max_length=16, choices=Type.choices, default=Type.CLASSIC)
    state = models.CharField(max_length=32)
    previous_state = models.CharField(max_length=32)
    state_since = MillisField()
    generation_id = models.IntegerField(default=0, help_text="Of a consumer group: the group epoch.")
    protocol_type = models.CharField(max_length=255, null=True)
    protocol_name = models.CharField(max_length=255, null=True)
    leader_id = models.CharField(max_length=300, null=True)
    new_member_added = models.BooleanField(default=False)
    join_deadline = MillisField(null=True)
    join_delay_ms = models.BigIntegerField(null=True, help_text="Window of an initial rebalance, else null.")
    join_remaining_ms = models.BigIntegerField(null=True)
    sync_deadline = MillisField(null=True)
    assignment_epoch = models.IntegerField(db_default=0, help_text="Of a consumer group: the epoch of its target.")
    assignment_timestamp = MillisField(db_default=0)
    metadata_hash = models.CharField(max_length=128, blank=True, db_default="")
    metadata_version = models.BigIntegerField(db_default=-1)
    resolution = models.JSONField(null=True, help_text="What regular expressions match, by the rights of members.")
    jobs = models.JSONField(null=True, help_text="Background work of a consumer group that is out.")
    partition = models.IntegerField(
        null=True, help_text="The coordinator partition; null: not known to what made the group."
    )
    armed_gap = models.BigIntegerField(
        db_default=0, help_text="The gap of the partition under which the deadlines count (CoordinatorPartition)."
    )
    held_until = MillisField(null=True, help_text="Nobody may join before; null: the group is not held.")
    held_by = models.CharField(max_length=255, null=True)
    hold_reason = models.TextField(null=True)
    wake_at = MillisField(null=True, help_text="When to look next: not after the earliest deadline of the group.")
    version = models.BigIntegerField(default=0, help_text="Counts the transactions that changed the group.")
    version_tag = models.UUIDField(
        db_default=RandomUUID(), help_text="Random, drawn with each version: a count can come again after a restore."
    )
    created_at = MillisField()
    updated_at = MillisField()

    class Meta:
        indexes = [
            models.Index(fields=["wake_at"], name="groups_group_due", condition=models.Q(wake_at__isnull=False)),
            models.Index(fields=["state", "group_id"], name="groups_group_by_state"),
            models.Index(fields=["-updated_at", "group_id"], name="groups_group_by_change"),
        ]
        constraints = [
            models.CheckConstraint(condition=models.Q(generation_id__gte=0), name="groups_group_generation_positive"),
            models.CheckConstraint(
                condition=models.Q(type="classic", state__in=states.CLASSIC_STATES)
                | models.Q(type="consumer", state__in=states.CONSUMER_STATES)
                | models.Q(type="share", state__in=states.SHARE_STATES),
                name="groups_group_state_known",
            ),
            models.CheckConstraint(
                condition=models.Q(held_until__isnull=True) | models.Q(state="Empty", held_by__isnull=False),
                name="groups_group_held_is_empty",
            ),
        ]

    def __str__(self) -> str:
        return self.group_id


def group_key(related_name: str) -> models.ForeignKey[Group, Group]:
    """The reference of a child row to its group; the constraint with its cascade is made by the migration.

    It has no index of its own: a key of each such table begins with the group, and for one row of a large group
    Postgres would take either.
    """
    return models.ForeignKey(
        Group, on_delete=models.DO_NOTHING, related_name=related_name, db_constraint=False, db_index=False
    )


class Member(ProtocolOwned):
    """A member of a group. `id` keeps the order of arrival."""

    group = group_key("members")
    member_id = models.CharField(max_length=300)
    instance_id = models.CharField(max_length=255, null=True)
    client_id = models.CharField(max_length=255)
    client_host = models.CharField(max_length=255)
    session_timeout_ms = models.BigIntegerField()
    rebalance_timeout_ms = models.BigIntegerField()
    protocol_type = models.CharField(max_length=255)
    protocol_names = ArrayField(models.TextField())
    protocol_metadata = ArrayField(models.BinaryField())
    assignment = models.BinaryField(help_text="The leader's bytes for this member, as they came.")
    is_new = models.BooleanField()
    join_parked_until = MillisField(null=True)
    sync_parked_until = MillisField(null=True)
    pending_sync = models.BooleanField()
    session_deadline = MillisField(null=True)
    last_heartbeat_at = MillisField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["group", "member_id"], name="groups_member_id_once"),
            models.UniqueConstraint(
                fields=["group", "instance_id"],
                name="groups_member_instance_once",
                condition=models.Q(instance_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.member_id


class PendingMember(ProtocolOwned):
    """A member id handed out with MEMBER_ID_REQUIRED but not used yet."""

    group = group_key("pending_members")
    member_id = models.CharField(max_length=300)
    deadline = MillisField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "member_id"], name="groups_pendingmember_once")]

    def __str__(self) -> str:
        return self.member_id


class GenerationTopics(ProtocolOwned):
    """What the members of a classic group subscribed to when its last generation began; no row: unknown.

    A separate table, because the header is read and written with every request.
    """

    group = models.OneToOneField(
        Group,
        on_delete=models.DO_NOTHING,
        primary_key=True,
        related_name="generation_topics",
        db_constraint=False,
    )
    topics = ArrayField(models.TextField())

    def __str__(self) -> str:
        return f"{self.group}: {', '.join(self.topics)}"


class ConsumerMember(ProtocolOwned):
    """A member of a consumer group (KIP-848), whose partitions are in `Assignment`, or of a share group (KIP-932)."""

    group = group_key("consumer_members")
    member_id = models.CharField(max_length=300)
    instance_id = models.CharField(max_length=255, null=True)
    rack_id = models.CharField(max_length=255, null=True)
    client_id = models.CharField(max_length=255)
    client_host = models.CharField(max_length=255)
    rebalance_timeout_ms = models.BigIntegerField()
    subscribed_topic_names = ArrayField(models.TextField())
    subscribed_topic_regex = models.TextField(blank=True, default="")
    topic_rights = models.CharField(
        max_length=64, blank=True, db_default="", help_text="Digest of what it may describe of topics; empty: all."
    )
    server_assignor = models.CharField(max_length=255, null=True)
    classic_session_timeout_ms = models.BigIntegerField(null=True, help_text="Only of members of the classic protocol.")
    classic_protocol_names = ArrayField(models.TextField(), null=True)
    classic_protocol_metadata = ArrayField(models.BinaryField(), null=True)
    member_epoch = models.IntegerField()
    previous_member_epoch = models.IntegerField()
    state = models.SmallIntegerField(help_text="0 stable, 1 unrevoked partitions, 2 unreleased partitions.")
    target = models.JSONField(help_text="What it is meant to have: partitions by topic id.")
    assigned = models.JSONField(
        null=True, help_text="Of a member of a share group: what it has, by topic id; null: `Assignment` has it."
    )
    session_deadline = MillisField(null=True)
    session_armed_at = MillisField(null=True)
    rebalance_deadline = MillisField(null=True)
    rebalance_armed_at = MillisField(null=True)
    join_deadline = MillisField(null=True)
    join_armed_at = MillisField(null=True)
    sync_deadline = MillisField(null=True)
    sync_armed_at = MillisField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["group", "member_id"], name="groups_consumermember_id_once"),
            models.UniqueConstraint(
                fields=["group", "instance_id"],
                name="groups_consumermember_instance_once",
                condition=models.Q(instance_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.member_id


class Assignment(ProtocolOwned):
    """The owner of a partition in a group: the primary key ensures that no partition has two owners.

    For consumer groups it is authoritative; `pending` partitions are to be given up and no other member may have them
    yet. For classic groups the rows repeat what the leader assigned, if its bytes are Kafka's ConsumerProtocol, with
    the topic's name as its id; a partition that a leader gave to two members is stored here once.
    """

    pk = models.CompositePrimaryKey("group_id", "topic_id", "partition")
    group = group_key("assignments")
    topic_id = models.CharField(max_length=249)
    topic = models.CharField(max_length=249)
    partition = models.IntegerField()
    member_id = models.CharField(max_length=300)
    generation_id = models.IntegerField(help_text="Of consumer groups: the epoch in which the member got it.")
    pending = models.BooleanField(db_default=False, help_text="To be given up.")

    class Meta:
        indexes = [
            models.Index(fields=["group", "member_id", "topic", "partition"], name="groups_assignment_by_owner"),
            models.Index(fields=["group", "topic", "partition"], name="groups_assignment_by_name"),
            models.Index(fields=["topic", "partition", "group"], name="groups_assignment_of_topic"),
        ]

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} -> {self.member_id}"


class Event(ProtocolOwned):
    """What happened to a group, for people. It outlives the group, so it names the group instead of referencing it."""

    group_name = models.CharField(max_length=255)
    at = MillisField()
    kind = models.CharField(max_length=40)
    generation_id = models.IntegerField()
    member_id = models.CharField(max_length=300, null=True)
    detail = models.JSONField()

    class Meta:
        indexes = [
            models.Index(fields=["group_name", "id"], name="groups_event_of_group"),
            models.Index(
                fields=["at", "id"],
                name="groups_event_of_people",
                condition=models.Q(detail__has_key="principal") | models.Q(kind="group_deleted"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.group_name}: {self.kind}"


class ClientSoftware(ProtocolOwned):
    """The software that a client said it is (KIP-511), by the client id and the address of members.

    Not every connection says it, so it is kept apart from members.
    """

    pk = models.CompositePrimaryKey("client_id", "client_host")
    client_id = models.CharField(max_length=255)
    client_host = models.CharField(max_length=255)
    name = models.CharField(max_length=128)
    version = models.CharField(max_length=128)
    seen_at = MillisField()

    def __str__(self) -> str:
        return f"{self.client_id}@{self.client_host}: {self.name} {self.version}"
