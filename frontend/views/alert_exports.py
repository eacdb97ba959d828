"""Alerts and their rules as CSV files."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponseBase

from frontend.viewer import viewer_of
from frontend.views.alerts import sees_rule
from frontend.views.csv_pages import all_rows, csv_file, parts
from frontend.views.page import page, text
from frontend.wording import iso, iso_if_known
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.rest.paging import MAX_LIMIT
from offsets.alerts.service import AlertService
from offsets.alerts.types import AlertRow


@page
def alerts_csv(request: HttpRequest) -> HttpResponseBase:
    """The open alerts, with the filter of the page."""
    viewer, group_id = viewer_of(request), text(request, "group") or None

    async def read(runtime: Runtime, after: str | None) -> tuple[Sequence[AlertRow], str | None]:
        found = await runtime.get(AlertService).alerts(viewer.groups, group_id=group_id, cursor=after, limit=MAX_LIMIT)
        return parts(found)

    head = (
        "alert_id", "rule", "group_id", "cause", "value", "since", "opened_at", "over_since", "told_at", "muted_until",
        "muted_by", "receivers",
    )  # fmt: skip
    rows = (
        (
            row.id, row.rule_name, row.group_id, row.cause, row.value, iso(row.since), iso_if_known(row.opened_at),
            iso_if_known(row.over_since), iso_if_known(row.told_at), iso_if_known(row.muted_until), row.muted_by,
            " ".join(row.receivers),
        )
        for row in all_rows(read)
    )  # fmt: skip
    return csv_file("alerts", head, rows)


@page
def alert_rules_csv(request: HttpRequest) -> HttpResponseBase:
    """The rules that the person may see."""
    viewer = viewer_of(request)
    rules = bridge.call(lambda runtime: runtime.get(AlertService).rules(viewer.listed))
    head = (
        "rule_id", "name", "enabled", "pattern", "group_name", "label", "verdicts", "min_lag", "min_time_lag_ms",
        "for_ms", "remind_ms", "send_resolved", "receivers", "updated_at", "updated_by",
    )  # fmt: skip
    rows = (
        (
            rule.id, rule.name, rule.enabled, rule.pattern, rule.group_name, rule.label, " ".join(rule.verdicts),
            rule.min_lag, rule.min_time_lag_ms, rule.for_ms, rule.remind_ms, rule.send_resolved,
            " ".join(rule.receivers), iso(rule.updated_at), rule.updated_by,
        )
        for rule in rules
        if sees_rule(viewer, rule)
    )  # fmt: skip
    return csv_file("alert-rules", head, rows)
