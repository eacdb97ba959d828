"""Alerts: what is open and what was, the rules, who can be told, and what they were told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend.ui import commands as as_command
from frontend.ui import reads
from frontend.ui.commands import Command, service_url
from frontend.ui.form import Refusal, attempt, done
from frontend.ui.page import Pace, address, cursor_given, form_page, page, show, text
from frontend.ui.rows import Millis
from frontend.ui.states import State
from frontend.ui.table import csv_of, rows_of
from frontend.ui.verdicts import VERDICTS
from frontend.ui.viewer import (
    ALERT_RULE,
    CHANGE_RECEIVERS,
    MUTE,
    SEE_RULES,
    Viewer,
    action,
    missing,
    require,
    viewer_of,
)
from frontend.ui.wording import duration, joined, number, time_lag
from kcoord.access import read_only
from kcoord.database.paging import MAX_CURSOR_LENGTH, MAX_LIMIT, Page
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.alerts.receivers import Receiver
from offsets.alerts.service import AlertService
from offsets.alerts.stored import ReceiverService
from offsets.alerts.types import GIVEN, AlertRow, AlertRuleView

SHOWN, RESOLVED_SHOWN, MESSAGES_SHOWN = 50, 20, 20
HOUR_MS = 3_600_000
OTHERS_MUTE = "Alerts whose button is disabled can be muted by accounts with admin on their group, or on the cluster."
RECEIVERS = "alerts/receivers"
BY_FILE = "Every user of a machine can read its command lines: have a file with the address, and -d @file."
MUTES = ((HOUR_MS, "1 hour"), (8 * HOUR_MS, "8 hours"), (24 * HOUR_MS, "24 hours"))


@form_page("alert.mute", test="alert.test", add="receiver.change", remove="receiver.delete")
def alerts_page(request: HttpRequest) -> HttpResponse:
    """The alerts on groups that the person may describe; rules, receivers and messages for who may see the cluster."""
    refusal = Refusal()
    if request.method == "POST":
        answer = _act(request)
        if isinstance(answer, HttpResponse):
            return answer
        refusal = answer
    viewer, group_id = viewer_of(request), text(request, "group")
    cursor = text(request, "after", MAX_CURSOR_LENGTH) or None
    found = bridge.call(lambda runtime: _read(runtime, viewer, group_id or None, cursor))
    opened: Page[AlertRow] = found["open"]
    context = {
        **found,
        "notice": refusal,
        "group": group_id,
        "open": [_line(row, viewer, found["now"]) for row in opened.items],
        "resolved": [_line(row, viewer, found["now"]) for row in found["resolved"].items],
        "first_url": address(request, after=None) if cursor else None,
        "next_url": address(request, after=opened.next_cursor) if opened.next_cursor else None,
        "unseen": missing(viewer, SEE_RULES),
        "some_lacking": _some_lacking(viewer, opened.items),
        "given": request.POST,
        "receivers_missing": missing(viewer, CHANGE_RECEIVERS),
        "create": action(viewer, "New alert rule", reverse("frontend:create-alert-rule"), ALERT_RULE),
        "mutes": MUTES,
        "commands": _commands(service_url(request), opened.items, found["receivers"]),
        "announcement": _announcement(opened, is_first=cursor is None),
        "stream": reverse("frontend:live"),
        # Celery checks the rules about once a minute; mutes and messages of others announce no change.
        "pace": Pace(every_ms=5_000, gap_ms=2_000),
    }
    return show(request, "pages/alerts/alerts", context, section="alerts", status=refusal.status, title="Alerts")


def _act(request: HttpRequest) -> HttpResponse | Refusal:
    """Mute an alert or end that; add, test or delete a receiver."""
    act = request.POST.get("act", "")
    if act in ("add", "test", "remove"):
        return _act_on_receiver(request, act)
    require(request, MUTE)
    if act not in ("mute", "unmute"):
        return Refusal("act: must be mute, unmute, add, test or remove.", 400)
    alert_id = _number(request.POST.get("alert", ""))
    lasting = _number(request.POST.get("duration_ms", "")) if act == "mute" else 0
    if alert_id is None or lasting not in (dict(MUTES) if act == "mute" else (0,)):
        return Refusal("Choose an alert and for how long it is muted.", 400)
    principal = viewer_of(request).principal
    muted, refusal = attempt(lambda runtime: runtime.get(AlertService).mute(alert_id, lasting or 0, principal))
    if muted is None:
        return refusal
    said = dict(MUTES).get(lasting or 0)
    told = f"Alerts on {muted.group_id} are muted for {said}." if said else f"The mute of {muted.group_id} ended."
    return done(request, told, request.get_full_path())


def _act_on_receiver(request: HttpRequest, act: str) -> HttpResponse | Refusal:
    """A test is sent while the page waits: its outcome is on the page that follows."""
    require(request, CHANGE_RECEIVERS)
    form, principal = request.POST, viewer_of(request).principal
    name = form.get("name" if act == "add" else "receiver", "").strip()
    if act == "remove" and not form.get("sure"):
        return Refusal("Nothing was deleted: tick the box beside the button.", 400)
    fields = {form.get("kind", ""): form.get("address", "").strip(), "secret": form.get("secret", "")}

    async def work(runtime: Runtime) -> str:
        receivers = runtime.get(ReceiverService)
        if act == "test":
            return await receivers.test(name, principal)
        if act == "remove":
            await receivers.delete(name, principal)
        else:
            await receivers.put(name, {field: value for field, value in fields.items() if value}, principal)
        return ""

    failure, refusal = attempt(work)
    if failure is None:
        return refusal
    if failure:
        return Refusal(f"The test to {name} was not taken: {failure}.")
    said = {"add": f"Added {name}. Send it a test.", "test": f"{name} took the test.", "remove": f"Deleted {name}."}
    return done(request, said[act], request.get_full_path())


def _number(written: str) -> int | None:
    return int(written) if written.isascii() and written.isdigit() and len(written) <= 18 else None


async def _read(runtime: Runtime, viewer: Viewer, group_id: str | None, cursor: str | None) -> dict[str, Any]:
    alerts = runtime.get(AlertService)
    with cursor_given():
        opened = await alerts.alerts(viewer.groups, group_id=group_id, cursor=cursor, limit=SHOWN)
    resolved = await alerts.alerts(viewer.groups, resolved=True, group_id=group_id, limit=RESOLVED_SHOWN)
    rules = [(rule, *rule_words(rule)) for rule in await alerts.rules(viewer.principal)]
    found = {"now": await reads.now(runtime.db), "open": opened, "resolved": resolved, "rules": rules, "receivers": ()}
    if not viewer.sees_cluster:
        return found
    receivers, problem = await receivers_of(runtime)
    messages = [(message, OUTCOMES[message.state]) for message in await alerts.messages(MESSAGES_SHOWN)]
    told = {"outcomes": await alerts.outcomes(), "messages_told": messages}
    return {**found, **told, "receivers": receivers, "receivers_problem": problem}


async def receivers_of(runtime: Runtime) -> tuple[Sequence[Receiver], str]:
    """Who can be told, or nobody and why it is not known."""
    try:
        return await runtime.get(ReceiverService).all(), ""
    except ProtocolError as error:
        if error.error is not Error.INVALID_CONFIG:
            raise
        return (), error.detail


def _line(row: AlertRow, viewer: Viewer, now: Millis) -> tuple[AlertRow, State, str, bool, str]:
    """An alert as the list shows it: badge, text, whether it is muted, and why the person may not mute it, if so."""
    muted = row.muted_until is not None and row.muted_until > now
    return row, *cause(row), muted, missing(viewer, MUTE, row.group_id)


def _some_lacking(viewer: Viewer, rows: Sequence[AlertRow]) -> str:
    """Why the person cannot mute some of these alerts, in one sentence for all of them."""
    lacking = [lacks for row in rows if (lacks := missing(viewer, MUTE, row.group_id))]
    if not lacking or read_only.is_read_only():
        return read_only.reason()
    return OTHERS_MUTE


def _announcement(found: Page[AlertRow], *, is_first: bool) -> str:
    """How many alerts are open, for those who hear the page; later pages of the list say nothing."""
    if not is_first:
        return ""
    if found.next_cursor:
        return f"More than {len(found.items)} alerts are open"
    return {0: "No alert is open", 1: "1 alert is open"}.get(len(found.items), f"{len(found.items)} alerts are open")


def _commands(url: str, opened: Sequence[AlertRow], receivers: Sequence[Receiver]) -> list[Command]:
    made = [as_command.request(url, "List alerts", "GET", "alerts")]
    for row in opened[:1]:
        for label, duration_ms in (("Mute the alert", HOUR_MS), ("End the mute", 0)):
            body = {"duration_ms": duration_ms}
            made.append(as_command.request(url, label, "POST", f"alerts/{row.id}/mute", body))
    added = as_command.curl("PUT", f"{url}/v1/{RECEIVERS}/ops", {"webhook": "https://ops.example.com/kcoord"})
    made.append(Command("Add a receiver", added, note=BY_FILE))
    for receiver in receivers[:1]:
        made.append(as_command.request(url, "Send a test", "POST", f"{RECEIVERS}/{receiver.name}/test"))
    for receiver in [receiver for receiver in receivers if receiver.is_stored][:1]:
        made.append(as_command.request(url, "Delete the receiver", "DELETE", f"{RECEIVERS}/{receiver.name}"))
    return made


@page
def alerts_csv(request: HttpRequest) -> HttpResponseBase:
    """The open alerts, with the filter of the page."""
    viewer, group_id = viewer_of(request), text(request, "group") or None
    columns = """
        alert_id=id rule=rule_name group_id cause value @since @opened_at @over_since @told_at @muted_until muted_by
        receivers
    """
    found = rows_of(
        lambda runtime, after: runtime.get(AlertService).alerts(
            viewer.groups, group_id=group_id, cursor=after, limit=MAX_LIMIT
        )
    )
    return csv_of("alerts", columns, found)


@page
def alert_rules_csv(request: HttpRequest) -> HttpResponseBase:
    """The rules that the person may see."""
    principal = viewer_of(request).principal
    rules = bridge.call(lambda runtime: runtime.get(AlertService).rules(principal))
    columns = f"rule_id=id {' '.join(GIVEN)} @updated_at updated_by"
    return csv_of("alert-rules", columns, rules)


LAG = State("lag", "Lag", "warn", "More records are to be read than the rule allows.")
TIME_LAG = State("time-lag", "Behind", "warn", "The next record to read is older than the rule allows.")

OUTCOMES: Mapping[str, State] = {
    "sent": State("sent", "Sent", "good", "The receiver took it."),
    "waiting": State("waiting", "Waiting", "warn", "It is sent again until it is taken, for up to half an hour."),
    "failed": State("failed", "Failed", "bad", "It was sent several times in vain, and is not sent again."),
}


def cause(row: AlertRow) -> tuple[State, str]:
    """Why an alert is open: a badge, and what goes on after it."""
    if row.cause == "lag":
        limit = "" if row.min_lag is None else f", limit {number(row.min_lag)}"
        return LAG, f"{number(row.value or 0)} records{limit}"
    if row.cause == "time-lag":
        limit = "" if row.min_time_lag_ms is None else f", limit {duration(row.min_time_lag_ms)}"
        return TIME_LAG, f"at least {time_lag(row.value or 0)}{limit}"
    state = VERDICTS.get(row.cause) or State(row.cause, row.cause, "idle", "This version does not know the verdict.")
    return state, ""


def rule_words(rule: AlertRuleView) -> tuple[str, str]:
    """A rule in words: on which groups it alerts and when, and who is notified."""
    labelled = f" with the label {rule.label}" if rule.label else ""
    groups = f"Groups beginning with {rule.group_name}" if rule.group_name else "All groups"
    if rule.pattern == "literal":
        groups = f"Group {rule.group_name}"
    reminder = f"; reminds every {duration(rule.remind_ms)}" if rule.remind_ms else ""
    resolved = "" if rule.send_resolved else "; not when resolved"
    receivers = joined(rule.receivers, 6) if rule.receivers else "nobody"
    lasting = f"for {duration(rule.for_ms)}" if rule.for_ms else "at once"
    return f"{groups}{labelled}: {_condition(rule)}, {lasting}", f"{receivers}{reminder}{resolved}"


def _condition(rule: AlertRuleView) -> str:
    """What a rule watches for: `stuck or stalled, or lag of at least 10,000`."""
    known = [VERDICTS[name].label.lower() if name in VERDICTS else name for name in rule.verdicts]
    parts = [" or ".join(filter(None, (", ".join(known[:-1]), known[-1])))] if known else []
    if rule.min_lag is not None:
        parts.append(f"lag of at least {number(rule.min_lag)}")
    if rule.min_time_lag_ms is not None:
        parts.append(f"at least {duration(rule.min_time_lag_ms)} behind")
    return ", or ".join(parts)
