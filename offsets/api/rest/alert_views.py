"""Alerts: what is open, the rules behind it, and who is told.

Everyone who may describe a group sees its alerts. Reading rules, receivers and messages takes `describe` on the
cluster, and changing them takes `admin` there. For a rule that covers a single group, `admin` on that group is enough.
"""

from __future__ import annotations

import re

from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from kcoord.access.rights import Permission, Resource
from kcoord.control.rest.answers import shown
from kcoord.control.rest.schema import Name, describe
from kcoord.control.rest.views import ControlView
from kcoord.door.http.problem import RequestRefused
from kcoord.protocol.errors import Error
from kcoord.secret_tables import NAME
from offsets.alerts.service import AlertService
from offsets.alerts.stored import MAX_STORED, ReceiverService
from offsets.alerts.types import AlertRuleView, AlertView
from offsets.api.rest import alert_serializers as s

RULE_ID = Name("rule_id", "Id of the rule.", {"type": "integer", "minimum": 1})
ALERT_ID = Name("alert_id", "Id of the alert.", {"type": "integer", "minimum": 1})
RECEIVER = Name("name", "Name of the receiver.", {"type": "string", "minLength": 1, "maxLength": 64})
NEW_RECEIVER = Name("name", "Name of the receiver.", {"type": "string", "pattern": f"^{NAME.pattern}$"})
_ID = re.compile(r"[1-9][0-9]{0,17}")
_DENIED = (Error.CLUSTER_AUTHORIZATION_FAILED,)
_CHANGES = (*_DENIED, Error.GROUP_AUTHORIZATION_FAILED, Error.INVALID_GROUP_ID, Error.INVALID_CONFIG)
RECEIVER_EXAMPLE = {"webhook": "https://ops.example.com/kcoord", "secret": "a long random text"}
EXAMPLE = {
    "name": "billing is stuck",
    "pattern": "prefix",
    "group_name": "billing-",
    "verdicts": ["stuck", "stalled"],
    "min_lag": 10_000,
    "for_ms": 300_000,
    "remind_ms": 14_400_000,
    "receivers": ["oncall"],
}


class AlertsView(ControlView):
    """`/v1/alerts`."""

    @describe(
        "listAlerts",
        "List alerts",
        tag="alerts",
        takes=Permission.DESCRIBE_GROUP,
        query=s.AlertQuery,
        response=s.AlertPage,
        description="The open ones, or with `state=resolved` those that ended; of groups that the caller may describe.",
    )
    def get(self, request: Request) -> Response:
        """A page of alerts."""
        query, visible = self.query(s.AlertQuery), self.visible(Resource.GROUP)
        page = self.service(
            lambda runtime: runtime.get(AlertService).alerts(
                visible,
                resolved=query["state"] == "resolved",
                group_id=query.get("group_id"),
                cursor=query.get("cursor"),
                limit=query["limit"],
            )
        )
        return self.listed(s.AlertPage, "alerts", page)


class MuteView(ControlView):
    """`/v1/alerts/{alert_id}/mute`."""

    @describe(
        "muteAlert",
        "Mute an open alert",
        tag="alerts",
        takes=Permission.ADMIN_CLUSTER,
        audit="alert.mute",
        path=[ALERT_ID],
        request=s.Mute,
        response=AlertView,
        errors=(*_DENIED, Error.GROUP_AUTHORIZATION_FAILED),
        missing="There is no such alert, or it is resolved.",
        description="Nobody is told of it for a while; when that ends and it is still open, its receivers are told. "
        "Takes `admin` on the group or the cluster.",
    )
    def post(self, request: Request, alert_id: str) -> Response:
        """Mute, or end the mute."""
        self.query()
        number, given, principal = _number(alert_id, "alert"), self.given(s.Mute), self.principal
        row = self.service(lambda runtime: runtime.get(AlertService).mute(number, given["duration_ms"], principal))
        return Response(shown(AlertView, row))


class RulesView(ControlView):
    """`/v1/alerts/rules`."""

    @describe(
        "listAlertRules",
        "List the rules of alerts",
        tag="alerts",
        takes=Permission.DESCRIBE_CLUSTER,
        response=s.AlertRules,
        errors=_DENIED,
        description="Takes `describe` on the cluster. A rule for a group that a rule of the caller denies is left out.",
    )
    def get(self, request: Request) -> Response:
        """All rules."""
        self.query()
        self.require()
        principal = self.principal
        rules = self.service(lambda runtime: runtime.get(AlertService).rules(principal))
        return Response(shown(s.AlertRules, {"rules": rules}))

    @describe(
        "createAlertRule",
        "Create a rule of alerts",
        tag="alerts",
        takes=Permission.ADMIN_CLUSTER,
        audit="alert.rule",
        request=s.NewAlertRule,
        response=AlertRuleView,
        status=201,
        errors=_CHANGES,
        description="A rule has a condition: any of `verdicts`, a lag of `min_lag` records, or a time lag. Takes "
        "`admin` on the cluster, or for a `literal` rule on its group.",
        examples=[OpenApiExample("Groups of a team", EXAMPLE, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """Create a rule."""
        self.query()
        given, principal = self.given(s.NewAlertRule), self.principal
        rule = self.service(lambda runtime: runtime.get(AlertService).store(given, principal))
        return Response(shown(AlertRuleView, rule), status=201)


class RuleDetailView(ControlView):
    """`/v1/alerts/rules/{rule_id}`."""

    @describe(
        "getAlertRule",
        "Get a rule of alerts",
        tag="alerts",
        takes=Permission.DESCRIBE_CLUSTER,
        path=[RULE_ID],
        response=AlertRuleView,
        errors=_DENIED,
        missing="There is no such rule.",
        description="Takes `describe` on the cluster.",
    )
    def get(self, request: Request, rule_id: str) -> Response:
        """One rule."""
        self.query()
        self.require()
        number, principal = _number(rule_id, "alert rule"), self.principal
        rule = self.service(lambda runtime: runtime.get(AlertService).rule(number, principal))
        return Response(shown(AlertRuleView, rule))

    @describe(
        "updateAlertRule",
        "Change a rule of alerts",
        tag="alerts",
        takes=Permission.ADMIN_CLUSTER,
        audit="alert.rule",
        path=[RULE_ID],
        request=s.AlertRuleChange,
        response=AlertRuleView,
        errors=_CHANGES,
        missing="There is no such rule.",
        description="Fields that are not given stay as they are; open alerts go on. Takes what creating it takes, for "
        "the groups before and after.",
    )
    def patch(self, request: Request, rule_id: str) -> Response:
        """Change a rule."""
        self.query()
        number, given, principal = _number(rule_id, "alert rule"), self.given(s.AlertRuleChange), self.principal
        rule = self.service(lambda runtime: runtime.get(AlertService).store(given, principal, number))
        return Response(shown(AlertRuleView, rule))

    @describe(
        "deleteAlertRule",
        "Delete a rule of alerts",
        tag="alerts",
        takes=Permission.ADMIN_CLUSTER,
        audit="alert.delete",
        path=[RULE_ID],
        response=None,
        status=204,
        errors=(*_DENIED, Error.GROUP_AUTHORIZATION_FAILED),
        missing="There is no such rule.",
        description="Its alerts are deleted too; nobody is told. Takes what creating it takes.",
    )
    def delete(self, request: Request, rule_id: str) -> Response:
        """Delete a rule."""
        self.query()
        number, principal = _number(rule_id, "alert rule"), self.principal
        self.service(lambda runtime: runtime.get(AlertService).delete(number, principal))
        return Response(status=204)


class ReceiversView(ControlView):
    """`/v1/alerts/receivers`."""

    @describe(
        "listReceivers",
        "List who can be told of alerts",
        tag="alerts",
        takes=Permission.DESCRIBE_CLUSTER,
        response=s.Receivers,
        errors=(*_DENIED, Error.INVALID_CONFIG),
        description="Those of the file `alerts.receivers.file`, and those that were added. Takes `describe` on the "
        "cluster.",
    )
    def get(self, request: Request) -> Response:
        """The receivers."""
        self.query()
        self.require()
        found = self.service(lambda runtime: runtime.get(ReceiverService).all())
        return Response(shown(s.Receivers, {"receivers": found}))


class ReceiverDetailView(ControlView):
    """`/v1/alerts/receivers/{name}`."""

    @describe(
        "putReceiver",
        "Add or replace a receiver",
        tag="alerts",
        takes=Permission.ADMIN_CLUSTER,
        audit="receiver.change",
        path=[NEW_RECEIVER],
        request=s.NewReceiver,
        response=s.ReceiverView,
        errors=(*_DENIED, Error.INVALID_CONFIG),
        conflict="The file has a receiver of this name.",
        description="Gives either `webhook`, with or without `secret`, or `url`. The address is encrypted with "
        f"`KCOORD_SECRET_KEY`, and no answer contains it. At most {MAX_STORED} can be added. Takes `admin` on the "
        "cluster.",
        examples=[OpenApiExample("A program", RECEIVER_EXAMPLE, request_only=True)],
    )
    def put(self, request: Request, name: str) -> Response:
        """Add or replace a receiver."""
        self.query()
        given, principal = self.given(s.NewReceiver), self.principal
        receiver = self.service(lambda runtime: runtime.get(ReceiverService).put(name, given, principal))
        return Response(shown(s.ReceiverView, receiver))

    @describe(
        "deleteReceiver",
        "Delete a receiver",
        tag="alerts",
        takes=Permission.ADMIN_CLUSTER,
        audit="receiver.delete",
        path=[RECEIVER],
        response=None,
        status=204,
        errors=(*_DENIED, Error.INVALID_CONFIG),
        missing="There is no such receiver.",
        conflict="Rules name it, or only the file has it.",
        description="One that was added. Takes `admin` on the cluster.",
    )
    def delete(self, request: Request, name: str) -> Response:
        """Delete a receiver."""
        self.query()
        principal = self.principal
        self.service(lambda runtime: runtime.get(ReceiverService).delete(name, principal))
        return Response(status=204)


class TestReceiverView(ControlView):
    """`/v1/alerts/receivers/{name}/test`."""

    @describe(
        "testReceiver",
        "Send a test to a receiver",
        tag="alerts",
        takes=Permission.ADMIN_CLUSTER,
        audit="alert.test",
        path=[RECEIVER],
        response=s.TestOutcome,
        errors=(*_DENIED, Error.INVALID_CONFIG),
        missing="There is no such receiver.",
        description="Waits for the receiver, up to half a minute. Takes `admin` on the cluster.",
    )
    def post(self, request: Request, name: str) -> Response:
        """Send a test."""
        self.query()
        principal = self.principal
        error = self.service(lambda runtime: runtime.get(ReceiverService).test(name, principal))
        return Response(shown(s.TestOutcome, {"sent": not error, "error": error}))


class MessagesView(ControlView):
    """`/v1/alerts/messages`."""

    @describe(
        "listAlertMessages",
        "List the latest messages about alerts",
        tag="alerts",
        takes=Permission.DESCRIBE_CLUSTER,
        query=s.MessageQuery,
        response=s.Messages,
        errors=_DENIED,
        description="Sent, waiting to be sent again, or failed for good. Takes `describe` on the cluster.",
    )
    def get(self, request: Request) -> Response:
        """The latest messages."""
        query = self.query(s.MessageQuery)
        self.require()
        found = self.service(lambda runtime: runtime.get(AlertService).messages(query["limit"]))
        return Response(shown(s.Messages, {"messages": found}))


def _number(text: str, what: str) -> int:
    if not _ID.fullmatch(text):
        raise RequestRefused(404, f"there is no {what} {text[:50]!r}")
    return int(text)
