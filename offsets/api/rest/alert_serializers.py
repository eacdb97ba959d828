"""Requests and responses of the endpoints of alerts. Lengths in ms."""

from __future__ import annotations

from typing import Annotated, Any

from rest_framework import serializers

from kcoord.control.rest.answers import Answer, NextCursor, doc, one_of
from kcoord.control.rest.fields import Choice, Flag, Number, PageQuery, StrictSerializer, Text
from kcoord.control.rest.labels import MAX_LABEL_NAME, MAX_LABEL_VALUE
from offsets.alerts.receivers import Source
from offsets.alerts.stored import LONGEST_ADDRESS
from offsets.alerts.types import PATTERNS, VERDICTS, AlertRuleView, AlertView, MessageView

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


class AlertRules(Answer):
    """All rules, by name."""

    rules: list[AlertRuleView]


class AlertQuery(PageQuery):
    """Which alerts to list."""

    state = Choice(["open", "resolved"], required=False, default="open", help_text="`resolved`: those that ended.")
    group_id = Text(required=False, max_length=255, help_text="Only those of this group.")


class AlertPage(Answer):
    """A page of alerts, the latest first."""

    alerts: list[AlertView]
    next_cursor: NextCursor


class Mute(StrictSerializer):
    """For how long nobody is told of an alert."""

    duration_ms = Number(min_value=0, max_value=LONGEST_MUTE_MS, help_text="0: the mute ends; at most 30 days.")


class NewReceiver(StrictSerializer):
    """How a receiver is reached: by `webhook` or `url`, which no answer contains."""

    webhook = Text(max_length=LONGEST_ADDRESS, required=False, help_text="The http or https address of a program.")
    secret = Text(max_length=LONGEST_ADDRESS, required=False, help_text="Signs what is sent to the webhook.")
    url = Text(max_length=LONGEST_ADDRESS, required=False, help_text="An address of Apprise: a chat, e-mail, a pager.")


class ReceiverView(Answer):
    """Who can be told. Addresses are secret."""

    name: str
    kind: Annotated[str, doc("`webhook`, or a scheme of Apprise, such as `slack` or `mailto`.")]
    source: Annotated[str, one_of(Source, "Where it is kept: in the file `alerts.receivers.file`, or in Postgres.")]
    problem: Annotated[str, doc("What is wrong with it, and what to do.")]


class Receivers(Answer):
    """Who can be told, by name."""

    receivers: list[ReceiverView]


class TestOutcome(Answer):
    """How a test went."""

    sent: bool
    error: Annotated[str, doc("Why the receiver did not take it.")]


class MessageQuery(StrictSerializer):
    """How many messages to list."""

    limit = serializers.IntegerField(
        min_value=1, max_value=1_000, required=False, default=100, help_text="Largest number of messages."
    )


class Messages(Answer):
    """The latest messages, the newest first."""

    messages: list[MessageView]
