"""Alerts: the rules, what they found, and the messages about it."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from groups.models import ProtocolOwned
from kcoord.database.fields import MillisField


class AlertRule(ProtocolOwned):
    """Which groups are watched for what, and who is told. Lengths in ms."""

    class Pattern(models.TextChoices):
        LITERAL = "literal"
        PREFIX = "prefix"

    name = models.CharField(max_length=100, unique=True)
    enabled = models.BooleanField(default=True)
    pattern = models.CharField(max_length=8, choices=Pattern.choices)
    group_name = models.CharField(max_length=255, blank=True, help_text="A group, or what their ids begin with.")
    label = models.CharField(max_length=319, blank=True, default="", db_default="", help_text="name=value, or name.")
    verdicts = ArrayField(models.CharField(max_length=16), help_text="Any of them; none: only the lags count.")
    min_lag = models.BigIntegerField(null=True, help_text="Smallest lag of a group, in records.")
    min_time_lag_ms = models.BigIntegerField(null=True, help_text="Smallest time lag of a group.")
    for_ms = models.BigIntegerField(help_text="How long it lasts before an alert opens.")
    remind_ms = models.BigIntegerField(help_text="How often receivers are reminded; 0: never.")
    send_resolved = models.BooleanField(help_text="Receivers are told when an alert is resolved.")
    receivers = ArrayField(models.CharField(max_length=64))
    updated_at = MillisField()
    updated_by = models.CharField(max_length=255)

    def __str__(self) -> str:
        return self.name


class AlertReceiver(ProtocolOwned):
    """Who can be told besides those of the file. Its address is secret; see `offsets.alerts.stored`."""

    name = models.CharField(max_length=64, primary_key=True)
    kind = models.CharField(max_length=64)
    sealed = models.TextField(help_text="Its address, encrypted.")
    updated_at = MillisField()
    updated_by = models.CharField(max_length=255)

    def __str__(self) -> str:
        return self.name


class Alert(ProtocolOwned):
    """A rule's condition holds for a group, or did. Instants in ms; see `offsets.core.alerts.Alert`."""

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="alerts", db_index=False)
    group_name = models.CharField(max_length=255)
    cause = models.CharField(max_length=16)
    value = models.BigIntegerField(null=True)
    since = MillisField()
    opened_at = MillisField(null=True)
    over_since = MillisField(null=True)
    told_at = MillisField(null=True)
    muted_until = MillisField(null=True)
    muted_by = models.CharField(max_length=255, blank=True, default="", db_default="")
    resolved_at = MillisField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "group_name"], condition=models.Q(resolved_at=None), name="offsets_one_alert"
            )
        ]
        indexes = [
            models.Index(fields=["resolved_at"], name="offsets_alert_by_end"),
            models.Index(fields=["rule"], name="offsets_alert_by_rule"),
        ]

    def __str__(self) -> str:
        return f"{self.group_name}: {self.cause}"


class AlertMessage(ProtocolOwned):
    """What a receiver is told, until it is sent or has failed for good."""

    id = models.UUIDField(primary_key=True)
    rule_id = models.BigIntegerField(null=True, help_text="Null: a test. It outlives the rule.")
    rule_name = models.CharField(max_length=100)
    receiver = models.CharField(max_length=64)
    notice = models.CharField(max_length=8)
    content = models.JSONField(help_text="The first alerts, and how many there are.")
    created_at = MillisField()
    attempts = models.IntegerField(default=0, db_default=0)
    next_at = MillisField(null=True, help_text="Null: it is sent, or has failed for good.")
    sent_at = MillisField(null=True)
    error = models.TextField(blank=True, default="", db_default="", help_text="Why the last attempt failed.")

    class Meta:
        indexes = [
            models.Index(fields=["next_at"], condition=models.Q(next_at__isnull=False), name="offsets_message_due"),
            models.Index(fields=["-created_at"], name="offsets_message_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.rule_name} to {self.receiver}: {self.notice}"
