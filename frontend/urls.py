"""URLs of the pages. A group id is one segment: it may contain anything but a slash."""

from __future__ import annotations

from django.contrib.auth.views import PasswordChangeDoneView
from django.urls import path

from frontend.live import live
from frontend.pages.access.grant import grant
from frontend.pages.access.tokens import new_token, token_list, token_page, tokens_csv
from frontend.pages.access.view import access_csv, access_page
from frontend.pages.actions.labels import group_labels
from frontend.pages.actions.simulation import simulate_group, simulated_members_csv, simulated_moves_csv
from frontend.pages.actions.view import delete_group, group_config, hold_group, kick_member
from frontend.pages.alerts.rules import new_rule, rule_page
from frontend.pages.alerts.view import alert_rules_csv, alerts_csv, alerts_page
from frontend.pages.archive import reports
from frontend.pages.archive.view import archive, cancel_run, findings, findings_csv, run_page, runs_csv, start_run
from frontend.pages.audit.view import audit_csv, audit_page
from frontend.pages.docs.view import docs
from frontend.pages.group.snapshot import group_snapshot
from frontend.pages.group.view import group_page, group_states, handovers_csv, lag_csv, members_csv, offsets_csv
from frontend.pages.groups.bulk import group_actions
from frontend.pages.groups.saved_views import saved_views
from frontend.pages.groups.view import group_list, groups_csv
from frontend.pages.history.compare import compare
from frontend.pages.history.events import commits_csv, events_csv, group_commits, group_events, rebalances_csv
from frontend.pages.history.timeline import timeline, timeline_file
from frontend.pages.history.view import group_history, group_rebalances
from frontend.pages.items.view import dead_letters, group_items
from frontend.pages.member.view import member, member_csv
from frontend.pages.nodes.view import coordinator_partitions_csv, hand_overs_csv, node_page, nodes_csv
from frontend.pages.offsets.edit import create_group, delete_offsets, group_pins, pins_csv
from frontend.pages.offsets.plan import offset_plan
from frontend.pages.offsets.plans import plan_csv, plan_list, plans_csv
from frontend.pages.offsets.reset import reset_offsets
from frontend.pages.overview.health import health_page
from frontend.pages.overview.view import overview
from frontend.pages.search.view import search_page
from frontend.pages.sign_in import view as sign_in
from frontend.pages.topics.topic import topic, topic_groups_csv, topic_partitions_csv
from frontend.pages.topics.topics import topic_list, topics_csv

app_name = "frontend"

urlpatterns = [
    path("", overview, name="home"),
    path("sign-in", sign_in.SignIn.as_view(), name="login"),
    path("sign-in/provider", sign_in.begin, name="identity"),
    path("sign-in/provider/answer", sign_in.answer, name="identity-answer"),
    path("sign-out", sign_in.SignOut.as_view(), name="logout"),
    path("signed-out", sign_in.signed_out, name="signed-out"),
    path("signed-out/provider", sign_in.leave, name="identity-sign-out"),
    path("password", sign_in.ChangePassword.as_view(), name="password"),
    path(
        "password/changed",
        PasswordChangeDoneView.as_view(template_name="frontend/pages/sign_in/password_changed.html"),
        name="password-changed",
    ),
    path("timeline", timeline, name="timeline"),
    path("timeline.csv", timeline_file, {"kind": "csv"}, name="timeline-csv"),
    path("timeline.json", timeline_file, {"kind": "json"}, name="timeline-json"),
    path("timeline.md", timeline_file, {"kind": "md"}, name="timeline-md"),
    path("groups", group_list, name="groups"),
    path("views", saved_views, name="views"),
    path("groups.csv", groups_csv, name="groups-csv"),
    path("groups/<str:group_id>", group_page, name="group"),
    path("groups/<str:group_id>/events", group_events, name="events"),
    path("groups/<str:group_id>/commits", group_commits, name="commits"),
    path("groups/<str:group_id>/commits.csv", commits_csv, name="commits-csv"),
    path("groups/<str:group_id>/members.csv", members_csv, name="members-csv"),
    path("groups/<str:group_id>/offsets.csv", offsets_csv, name="offsets-csv"),
    path("groups/<str:group_id>/rebalances.csv", rebalances_csv, name="rebalances-csv"),
    path("groups/<str:group_id>/events.csv", events_csv, name="events-csv"),
    path("groups/<str:group_id>/hand-overs.csv", handovers_csv, name="handovers-csv"),
    path("groups/<str:group_id>/lag.csv", lag_csv, name="lag-csv"),
    path("groups/<str:group_id>/member.csv", member_csv, name="member-csv"),
    path("groups/<str:group_id>/pins.csv", pins_csv, name="pins-csv"),
    path("groups/<str:group_id>/report-days.csv", reports.group_report_days_csv, name="group-report-days-csv"),
    path("groups/<str:group_id>/report-members.csv", reports.report_members_csv, name="group-report-members-csv"),
    path("groups/<str:group_id>/simulated-members.csv", simulated_members_csv, name="simulated-members-csv"),
    path("groups/<str:group_id>/simulated-moves.csv", simulated_moves_csv, name="simulated-moves-csv"),
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
    path("groups/<str:group_id>/report", reports.group_report, name="group-report"),
    path("groups/<str:group_id>/reset", reset_offsets, name="reset-offsets"),
    path("groups/<str:group_id>/simulate", simulate_group, name="simulate"),
    path("groups/<str:group_id>/states", group_states, name="states"),
    path("groups/<str:group_id>/snapshot.<str:kind>", group_snapshot, name="snapshot"),
    path("groups/<str:group_id>/plans/<uuid:plan_id>", offset_plan, name="offset-plan"),
    path("groups/<str:group_id>/plans/<uuid:plan_id>.csv", plan_csv, name="plan-csv"),
    path("topics.csv", topics_csv, name="topics-csv"),
    path("topics", topic_list, name="topics"),
    path("topics/<str:name>/partitions.csv", topic_partitions_csv, name="topic-partitions-csv"),
    path("topics/<str:name>/groups.csv", topic_groups_csv, name="topic-groups-csv"),
    path("topics/<str:name>", topic, name="topic"),
    path("plans.csv", plans_csv, name="plans-csv"),
    path("plans", plan_list, name="plans"),
    path("alerts.csv", alerts_csv, name="alerts-csv"),
    path("alerts", alerts_page, name="alerts"),
    path("alerts/rules.csv", alert_rules_csv, name="alert-rules-csv"),
    path("alerts/rules/new", new_rule, name="create-alert-rule"),
    path("alerts/rules/<int:rule_id>", rule_page, name="alert-rule"),
    path("audit.csv", audit_csv, name="audit-csv"),
    path("audit", audit_page, name="audit"),
    path("access.csv", access_csv, name="access-csv"),
    path("access", access_page, name="access"),
    path("access/grant", grant, name="grant"),
    path("health", health_page, name="health"),
    path("search", search_page, name="search"),
    path("compare", compare, name="compare"),
    path("nodes.csv", nodes_csv, name="nodes-csv"),
    path("nodes/partitions.csv", coordinator_partitions_csv, name="coordinator-partitions-csv"),
    path("nodes/hand-overs.csv", hand_overs_csv, name="hand-overs-csv"),
    path("nodes", node_page, name="nodes"),
    path("archive", archive, name="archive"),
    path("archive/runs.csv", runs_csv, name="runs-csv"),
    path("archive/start", start_run, name="start-run"),
    path("archive/findings", findings, name="findings"),
    path("archive/findings.csv", findings_csv, name="findings-csv"),
    path("archive/runs/<uuid:run_id>", run_page, name="run"),
    path("archive/runs/<uuid:run_id>/groups", reports.report_groups, name="report-groups"),
    path("archive/runs/<uuid:run_id>/partitions", reports.report_partitions, name="report-partitions"),
    path("archive/runs/<uuid:run_id>/groups.csv", reports.report_groups_csv, name="report-groups-csv"),
    path("archive/runs/<uuid:run_id>/partitions.csv", reports.report_partitions_csv, name="report-partitions-csv"),
    path("archive/runs/<uuid:run_id>/days.csv", reports.report_days_csv, name="report-days-csv"),
    path("archive/runs/<uuid:run_id>/cancel", cancel_run, name="cancel-run"),
    path("tokens.csv", tokens_csv, name="tokens-csv"),
    path("tokens", token_list, name="tokens"),
    path("tokens/new", new_token, name="create-token"),
    path("tokens/<int:token_id>", token_page, name="token"),
    path("docs", docs, name="docs"),
    path("live", live, name="live"),
]
