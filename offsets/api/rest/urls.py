"""Paths of committed offsets, below /v1/."""

from django.urls import path

from kcoord.control.rest import converters  # noqa: F401 - registers `anything`
from offsets.api.rest import (
    alert_views,
    committed,
    deletions,
    groups,
    item_views,
    journal,
    lag,
    pins,
    plan_views,
    run_views,
)

urlpatterns = [
    path("alerts", alert_views.AlertsView.as_view()),
    path("alerts/messages", alert_views.MessagesView.as_view()),
    path("alerts/receivers", alert_views.ReceiversView.as_view()),
    path("alerts/receivers/<anything:name>/test", alert_views.TestReceiverView.as_view()),
    path("alerts/receivers/<anything:name>", alert_views.ReceiverDetailView.as_view()),
    path("alerts/rules", alert_views.RulesView.as_view()),
    path("alerts/rules/<anything:rule_id>", alert_views.RuleDetailView.as_view()),
    path("alerts/<anything:alert_id>/mute", alert_views.MuteView.as_view()),
    path("archive/runs", run_views.RunsView.as_view()),
    path("archive/runs/<anything:run_id>/log", run_views.RunLogView.as_view()),
    path("archive/runs/<anything:run_id>/cancel", run_views.CancelRunView.as_view()),
    path("archive/runs/<anything:run_id>", run_views.RunView.as_view()),
    path("reconcile/findings", run_views.FindingsView.as_view()),
    path("groups", groups.GroupsView.as_view()),
    path("groups/<anything:group_id>/commits", journal.GroupCommitsView.as_view()),
    path("groups/<anything:group_id>/items", item_views.ItemsView.as_view()),
    path("groups/<anything:group_id>/items/release", item_views.ReleaseItemsView.as_view()),
    path("groups/<anything:group_id>/items/reject", item_views.RejectItemsView.as_view()),
    path("groups/<anything:group_id>/dead-letters", item_views.DeadLettersView.as_view()),
    path("groups/<anything:group_id>/dead-letters/replay", item_views.ReplayDeadLettersView.as_view()),
    path("groups/<anything:group_id>/dead-letters/discard", item_views.DiscardDeadLettersView.as_view()),
    path("groups/<anything:group_id>/share-offsets", item_views.ShareOffsetsView.as_view()),
    path("groups/<anything:group_id>/lag", lag.GroupLagEndpoint.as_view()),
    path("groups/<anything:group_id>/lag/history", lag.GroupLagHistoryView.as_view()),
    path("groups/<anything:group_id>/pins", pins.GroupPinsView.as_view()),
    path("groups/<anything:group_id>/offsets/delete", deletions.DeleteOffsetsView.as_view()),
    path("groups/<anything:group_id>/offsets/plan", plan_views.PlanOffsetsView.as_view()),
    path("groups/<anything:group_id>/offsets/plans", plan_views.PlansView.as_view()),
    path("groups/<anything:group_id>/offsets/plans/<anything:plan_id>/apply", plan_views.ApplyPlanView.as_view()),
    path("groups/<anything:group_id>/offsets/plans/<anything:plan_id>/approve", plan_views.ApprovePlanView.as_view()),
    path("groups/<anything:group_id>/offsets/plans/<anything:plan_id>/undo", plan_views.UndoPlanView.as_view()),
    path("groups/<anything:group_id>/offsets/plans/<anything:plan_id>", plan_views.PlanDetailView.as_view()),
    path("groups/<anything:group_id>/offsets", committed.GroupOffsetsView.as_view()),
]
