"""Requests and responses of the endpoints of alerts. Lengths in ms."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from groups.core.model.types import VerdictKind
from kcoord.rest.fields import Choice, Flag, Instant, NextCursor, Number, PageQuery, StrictSerializer, Text
from kcoord.rest.labels import MAX_LABEL_NAME, MAX_LABEL_VALUE
from offsets.alerts.rules import PATTERNS

VERDICTS = [kind.value for kind in VerdictKind]
MOST_RECEIVERS = 20
LONGEST_MUTE_MS = 30 * 86_400_000


class _RuleFields(StrictSerializer):
    """The fields of a rule; `offsets.alerts.rules` checks them together."""

    name = Text(max_length=100, help_text="Unique; messages begin with it.")
    pattern = Choice(PATTERNS, help_text="Whether `group_name` is a group, or what the ids of groups begin with.")
    group_name = Text(allow_blank=True, max_length=255)
    label = Text(  # type: ignore[assignment]  # the metaclass removes it from the class
        allow_blank=True,
        max_length=MAX_LABEL_NAME + 1 + MAX_LABEL_VALUE,
        required=False,
        default="",
        help_text="Only groups that have this label: `name=value`, or `name` for any value; empty: any group.",
    )
    verdicts = serializers.ListField(child=Choice(VERDICTS), max_length=len(VERDICTS), required=False, default=list)
    min_lag = Number(min_value=1, max_value=2**63 - 1, required=False, allow_null=True, default=None)
    min_time_lag_ms = Number(min_value=1, max_value=2**63 - 1, required=False, allow_null=True, default=None)
    for_ms = Number(min_value=0, required=False, default=0, help_text="How long it lasts before an alert opens.")
    remind_ms = Number(min_value=0, required=False, default=0, help_text="How often receivers are reminded; 0: never.")
    send_resolved = Flag(required=False, default=True)
    receivers = serializers.ListField(child=Text(max_length=64), max_length=MOST_RECEIVERS)
    enabled = Flag(required=False, default=True)


class NewAlertRule(_RuleFields):
    """A rule: which groups, what is wrong with them, for how long, and who is told."""


class AlertRuleChange(_RuleFields):
    """The fields of a rule that change."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "partial": True})


class AlertRuleView(serializers.Serializer[Any]):
    """A rule."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    enabled = serializers.BooleanField()
    pattern = Choice(PATTERNS)
    group_name = serializers.CharField(allow_blank=True)
    label = serializers.CharField(allow_blank=True)  # type: ignore[assignment]
    verdicts = serializers.ListField(child=Choice(VERDICTS))
    min_lag = serializers.IntegerField(allow_null=True)
    min_time_lag_ms = serializers.IntegerField(allow_null=True)
    for_ms = serializers.IntegerField()
    remind_ms = serializers.IntegerField()
    send_resolved = serializers.BooleanField()
    receivers = serializers.ListField(child=serializers.CharField())
    updated_at = Instant()
    updated_by = serializers.CharField()


class AlertRules(serializers.Serializer[Any]):
    """All rules, by name."""

    rules = AlertRuleView(many=True)


class AlertQuery(PageQuery):
    """Which alerts to list."""

    state = Choice(["open", "resolved"], required=False, default="open", help_text="`resolved`: those that ended.")
    group_id = Text(required=False, max_length=255, help_text="Only those of this group.")


class AlertView(serializers.Serializer[Any]):
    """An alert. `cause`: a verdict, `lag` or `time-lag`; `value`: records or ms."""

    id = serializers.IntegerField()
    rule_id = serializers.IntegerField()
    rule_name = serializers.CharField()
    group_id = serializers.CharField()
    cause = serializers.CharField()
    value = serializers.IntegerField(allow_null=True)
    since = Instant()
    opened_at = Instant(allow_null=True)
    over_since = Instant(allow_null=True, help_text="The condition has been over since then, but not for long enough.")
    told_at = Instant(allow_null=True, help_text="null: it is muted, and nobody was told.")
    muted_until = Instant(allow_null=True)
    muted_by = serializers.CharField(allow_blank=True)
    resolved_at = Instant(allow_null=True)
    receivers = serializers.ListField(child=serializers.CharField())


class AlertPage(serializers.Serializer[Any]):
    """A page of alerts, the latest first."""

    alerts = AlertView(many=True)
    next_cursor = NextCursor()


class Mute(StrictSerializer):
    """For how long nobody is told of an alert."""

    duration_ms = Number(min_value=0, max_value=LONGEST_MUTE_MS, help_text="0: the mute ends; at most 30 days.")


class ReceiverView(serializers.Serializer[Any]):
    """Who can be told. Addresses are secret."""

    name = serializers.CharField()
    kind = serializers.CharField(help_text="`webhook`, or a scheme of Apprise, such as `slack` or `mailto`.")


class Receivers(serializers.Serializer[Any]):
    """Who can be told, by name."""

    receivers = ReceiverView(many=True)


class TestOutcome(serializers.Serializer[Any]):
    """How a test went."""

    sent = serializers.BooleanField()
    error = serializers.CharField(allow_blank=True, help_text="Why the receiver did not take it.")


class MessageQuery(StrictSerializer):
    """How many messages to list."""

    limit = serializers.IntegerField(
        min_value=1, max_value=1_000, required=False, default=100, help_text="Largest number of messages."
    )


class MessageView(serializers.Serializer[Any]):
    """What a receiver was told, or is to be told."""

    id = serializers.UUIDField()
    rule_id = serializers.IntegerField(allow_null=True)
    rule_name = serializers.CharField()
    receiver = serializers.CharField()
    notice = Choice(["opened", "reminder", "resolved"])
    state = Choice(["sent", "waiting", "failed"])
    alert_count = serializers.IntegerField(source="content.alert_count")
    created_at = Instant()
    attempts = serializers.IntegerField()
    next_at = Instant(allow_null=True, help_text="When it is sent again.")
    sent_at = Instant(allow_null=True)
    error = serializers.CharField(allow_blank=True, help_text="Why the last attempt failed.")


class Messages(serializers.Serializer[Any]):
    """The latest messages, the newest first."""

    messages = MessageView(many=True)
