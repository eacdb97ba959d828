"""URLs of the pages. A group id is one segment: it may contain anything but a slash."""

from __future__ import annotations

from django.contrib.auth.views import PasswordChangeDoneView
from django.urls import path

from frontend.live import live
from frontend.views import (
    alert_exports,
    archive_exports,
    exports,
    group_exports,
    identity,
    node_exports,
    sign_out,
    topic_exports,
)
from frontend.views.access import access_csv, access_page
from frontend.views.accounts import ChangePassword, SignIn
from frontend.views.actions import delete_group, hold_group, kick_member
from frontend.views.alert_rules import new_rule, rule_page
from frontend.views.alerts import alerts_page
from frontend.views.archive import archive, cancel_run, findings, run_page, start_run
from frontend.views.audit import audit_page
from frontend.views.commits import group_commits
from frontend.views.compare import compare
from frontend.views.events import group_events
from frontend.views.group_actions import group_actions
from frontend.views.group_config import group_config
from frontend.views.group_labels import group_labels
from frontend.views.group_list import group_list
from frontend.views.group_offsets import create_group, delete_offsets
from frontend.views.group_states import group_states
from frontend.views.groups import group_page
from frontend.views.health import health_page
from frontend.views.history import group_rebalances
from frontend.views.items import dead_letters, group_items
from frontend.views.member import member
from frontend.views.nodes import node_page
from frontend.views.overview import overview
from frontend.views.past import group_history
from frontend.views.pins import group_pins
from frontend.views.plan_list import plan_list
from frontend.views.plans import offset_plan
from frontend.views.reports import group_report, report_groups, report_partitions
from frontend.views.reset import reset_offsets
from frontend.views.saved_views import saved_views
from frontend.views.search import search_page
from frontend.views.simulation import simulate_group
from frontend.views.snapshot import group_snapshot
from frontend.views.timeline import timeline, timeline_csv
from frontend.views.tokens import new_token, token_list, token_page
from frontend.views.topic import topic
from frontend.views.topics import topic_list

app_name = "frontend"

urlpatterns = [
    path("", overview, name="home"),
    path("sign-in", SignIn.as_view(), name="login"),
    path("sign-in/provider", identity.begin, name="identity"),
    path("sign-in/provider/answer", identity.answer, name="identity-answer"),
    path("sign-out", sign_out.SignOut.as_view(), name="logout"),
    path("signed-out", sign_out.signed_out, name="signed-out"),
    path("signed-out/provider", sign_out.leave, name="identity-sign-out"),
    path("password", ChangePassword.as_view(), name="password"),
    path(
        "password/changed",
        PasswordChangeDoneView.as_view(template_name="frontend/password_changed.html"),
        name="password-changed",
    ),
    path("timeline", timeline, name="timeline"),
    path("timeline.csv", timeline_csv, name="timeline-csv"),
    path("groups", group_list, name="groups"),
    path("views", saved_views, name="views"),
    path("groups.csv", exports.groups_csv, name="groups-csv"),
    path("groups/<str:group_id>", group_page, name="group"),
    path("groups/<str:group_id>/events", group_events, name="events"),
    path("groups/<str:group_id>/commits", group_commits, name="commits"),
    path("groups/<str:group_id>/commits.csv", exports.commits_csv, name="commits-csv"),
    path("groups/<str:group_id>/members.csv", exports.members_csv, name="members-csv"),
    path("groups/<str:group_id>/offsets.csv", exports.offsets_csv, name="offsets-csv"),
    path("groups/<str:group_id>/rebalances.csv", exports.rebalances_csv, name="rebalances-csv"),
    path("groups/<str:group_id>/events.csv", group_exports.events_csv, name="events-csv"),
    path("groups/<str:group_id>/hand-overs.csv", group_exports.handovers_csv, name="handovers-csv"),
    path("groups/<str:group_id>/lag.csv", group_exports.lag_csv, name="lag-csv"),
    path("groups/<str:group_id>/member.csv", group_exports.member_csv, name="member-csv"),
    path("groups/<str:group_id>/pins.csv", group_exports.pins_csv, name="pins-csv"),
    path("groups/<str:group_id>/report-days.csv", group_exports.report_days_csv, name="group-report-days-csv"),
    path("groups/<str:group_id>/report-members.csv", group_exports.report_members_csv, name="group-report-members-csv"),
    path(
        "groups/<str:group_id>/simulated-members.csv",
        group_exports.simulated_members_csv,
        name="simulated-members-csv",
    ),
    path("groups/<str:group_id>/simulated-moves.csv", group_exports.simulated_moves_csv, name="simulated-moves-csv"),
    path("groups/<str:group_id>/config", group_config, name="config"),
    path("groups/<str:group_id>/delete", delete_group, name="delete-group"),
    path("groups/<str:group_id>/delete-offsets", delete_offsets, name="delete-offsets"),
    path("group-actions", group_actions, name="group-actions"),
    path("create-group", create_group, name="create-group"),
    path("groups/<str:group_id>/hold", hold_group, name="hold-group"),
    path("groups/<str:group_id>/kick", kick_member, name="kick-member"),
    path("groups/<str:group_id>/items", group_items, name="items"),
    path("groups/<str:group_id>/dead-letters", dead_letters, name="dead-letters"),
    path("groups/<str:group_id>/labels", group_labels, name="labels"),
    path("groups/<str:group_id>/members/<path:member_id>", member, name="member"),
    path("groups/<str:group_id>/pins", group_pins, name="pins"),
    path("groups/<str:group_id>/rebalances", group_rebalances, name="rebalances"),
    path("groups/<str:group_id>/history", group_history, name="history"),
    path("groups/<str:group_id>/report", group_report, name="group-report"),
    path("groups/<str:group_id>/reset", reset_offsets, name="reset-offsets"),
    path("groups/<str:group_id>/simulate", simulate_group, name="simulate"),
    path("groups/<str:group_id>/states", group_states, name="states"),
    path("groups/<str:group_id>/snapshot.<str:kind>", group_snapshot, name="snapshot"),
    path("groups/<str:group_id>/plans/<uuid:plan_id>", offset_plan, name="offset-plan"),
    path("groups/<str:group_id>/plans/<uuid:plan_id>.csv", exports.plan_csv, name="plan-csv"),
    path("topics.csv", exports.topics_csv, name="topics-csv"),
    path("topics", topic_list, name="topics"),
    path("topics/<str:name>/partitions.csv", topic_exports.partitions_csv, name="topic-partitions-csv"),
    path("topics/<str:name>/groups.csv", topic_exports.groups_csv, name="topic-groups-csv"),
    path("topics/<str:name>", topic, name="topic"),
    path("plans.csv", exports.plans_csv, name="plans-csv"),
    path("plans", plan_list, name="plans"),
    path("alerts.csv", alert_exports.alerts_csv, name="alerts-csv"),
    path("alerts", alerts_page, name="alerts"),
    path("alerts/rules.csv", alert_exports.alert_rules_csv, name="alert-rules-csv"),
    path("alerts/rules/new", new_rule, name="create-alert-rule"),
    path("alerts/rules/<int:rule_id>", rule_page, name="alert-rule"),
    path("audit.csv", exports.audit_csv, name="audit-csv"),
    path("audit", audit_page, name="audit"),
    path("access.csv", access_csv, name="access-csv"),
    path("access", access_page, name="access"),
    path("health", health_page, name="health"),
    path("search", search_page, name="search"),
    path("compare", compare, name="compare"),
    path("nodes.csv", node_exports.nodes_csv, name="nodes-csv"),
    path("nodes/partitions.csv", node_exports.coordinator_partitions_csv, name="coordinator-partitions-csv"),
    path("nodes/hand-overs.csv", node_exports.hand_overs_csv, name="hand-overs-csv"),
    path("nodes", node_page, name="nodes"),
    path("archive", archive, name="archive"),
    path("archive/runs.csv", archive_exports.runs_csv, name="runs-csv"),
    path("archive/start", start_run, name="start-run"),
    path("archive/findings", findings, name="findings"),
    path("archive/findings.csv", archive_exports.findings_csv, name="findings-csv"),
    path("archive/runs/<uuid:run_id>", run_page, name="run"),
    path("archive/runs/<uuid:run_id>/groups", report_groups, name="report-groups"),
    path("archive/runs/<uuid:run_id>/partitions", report_partitions, name="report-partitions"),
    path("archive/runs/<uuid:run_id>/groups.csv", archive_exports.report_groups_csv, name="report-groups-csv"),
    path(
        "archive/runs/<uuid:run_id>/partitions.csv", archive_exports.report_partitions_csv, name="report-partitions-csv"
    ),
    path("archive/runs/<uuid:run_id>/days.csv", archive_exports.report_days_csv, name="report-days-csv"),
    path("archive/runs/<uuid:run_id>/cancel", cancel_run, name="cancel-run"),
    path("tokens.csv", exports.tokens_csv, name="tokens-csv"),
    path("tokens", token_list, name="tokens"),
    path("tokens/new", new_token, name="create-token"),
    path("tokens/<int:token_id>", token_page, name="token"),
    path("live", live, name="live"),
]
