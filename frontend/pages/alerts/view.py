"""Alerts: what is open and what was, the rules, who can be told, and what they were told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend.ui import commands as as_command
from frontend.ui import reads
from frontend.ui.commands import Command, service_url
from frontend.ui.form import Refusal, attempt, done
from frontend.ui.page import BadAddress, Pace, address, form_page, page, show, text
from frontend.ui.rows import Millis
from frontend.ui.states import State
from frontend.ui.table import csv_of, rows_of
from frontend.ui.verdicts import VERDICTS
from frontend.ui.viewer import ALERT_RULE, MUTE, SEE_RULES, TEST_RECEIVER, Viewer, action, missing, require, viewer_of
from frontend.ui.wording import duration, joined, number, time_lag
from kcoord.access import read_only
from kcoord.database.paging import MAX_CURSOR_LENGTH, MAX_LIMIT, Page
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.alerts.receivers import Receiver
from offsets.alerts.service import AlertService, may_change
from offsets.alerts.types import AlertRow, MessageRow, Outcomes, Rule

SHOWN, RESOLVED_SHOWN, MESSAGES_SHOWN = 50, 20, 20
HOUR_MS = 3_600_000
OTHERS_MUTE = "Alerts whose button is disabled can be muted by accounts with admin on their group, or on the cluster."
MUTES = ((HOUR_MS, "1 hour"), (8 * HOUR_MS, "8 hours"), (24 * HOUR_MS, "24 hours"))


@dataclass(frozen=True, slots=True)
class AlertLine:
    """An alert as the list shows it. `lacking`: why the person may not mute it, "" if allowed."""

    alert: AlertRow
    state: State
    text: str
    muted: bool
    lacking: str


@dataclass(frozen=True, slots=True)
class Receivers:
    """Who can be told. `problem`: why nobody can be, although the file is set."""

    found: Sequence[Receiver] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What the page shows. `outcomes` None: the person may not see what receivers were told."""

    now: Millis
    open: Page[AlertRow]
    resolved: Page[AlertRow]
    rules: Sequence[Rule]
    receivers: Receivers
    messages: Sequence[MessageRow]
    outcomes: Outcomes | None


@form_page("alert.mute", test="alert.test")
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
    filtered = bool(group_id)
    context = {
        "now": found.now,
        "refusal": refusal,
        "group": group_id,
        "open": [_line(row, viewer, found.now) for row in found.open.items],
        "resolved": [_line(row, viewer, found.now) for row in found.resolved.items],
        "first_url": address(request, after=None) if cursor else None,
        "next_url": address(request, after=found.open.next_cursor) if found.open.next_cursor else None,
        "filtered": filtered,
        "rules": [(rule, rule_words(rule)) for rule in found.rules],
        "receivers": found.receivers,
        "outcomes": found.outcomes,
        "messages_told": [_message(row) for row in found.messages],
        "unseen": missing(viewer, SEE_RULES),
        "some_lacking": _some_lacking(viewer, found.open.items),
        "test_missing": missing(viewer, TEST_RECEIVER),
        "create": action(viewer, "New alert rule", reverse("frontend:create-alert-rule"), ALERT_RULE),
        "mutes": MUTES,
        "commands": _commands(service_url(request), found),
        "announcement": _announcement(found.open, is_first=cursor is None),
        "stream": reverse("frontend:live"),
        # Celery checks the rules about once a minute; mutes and messages of others announce no change.
        "pace": Pace(every_ms=5_000, gap_ms=2_000),
    }
    return show(request, "pages/alerts/alerts", context, section="alerts", status=refusal.status)


def _act(request: HttpRequest) -> HttpResponse | Refusal:
    """Mute an alert, end that, or send a test."""
    act = request.POST.get("act", "")
    if act == "test":
        return _test(request)
    if act not in ("mute", "unmute"):
        require(request, MUTE)
        return Refusal("act: must be mute, unmute or test.", 400)
    require(request, MUTE)
    alert_id = _number(request.POST.get("alert", ""))
    lasting = _number(request.POST.get("duration_ms", "")) if act == "mute" else 0
    if alert_id is None or lasting not in (0, *(ms for ms, _ in MUTES)) or (act == "mute" and not lasting):
        return Refusal("Choose an alert and for how long it is muted.", 400)
    principal = viewer_of(request).principal
    muted, refusal = attempt(lambda runtime: runtime.get(AlertService).mute(alert_id, lasting or 0, principal))
    if muted is None:
        return refusal
    said = dict(MUTES).get(lasting or 0)
    told = f"Alerts on {muted.group_id} are muted for {said}." if said else f"The mute of {muted.group_id} ended."
    return done(request, told, request.get_full_path())


def _test(request: HttpRequest) -> HttpResponse | Refusal:
    """The test is sent while the page waits: its outcome is on the page that follows."""
    require(request, TEST_RECEIVER)
    name, principal = request.POST.get("receiver", ""), viewer_of(request).principal
    failure, refusal = attempt(lambda runtime: runtime.get(AlertService).test(name, principal))
    if failure is None:
        return refusal
    if failure:
        return Refusal(f"The test to {name} was not taken: {failure}.")
    return done(request, f"{name} took the test.", request.get_full_path())


def _number(written: str) -> int | None:
    return int(written) if written.isascii() and written.isdigit() and len(written) <= 18 else None


async def _read(runtime: Runtime, viewer: Viewer, group_id: str | None, cursor: str | None) -> Found:
    alerts = runtime.get(AlertService)
    try:
        found = await alerts.alerts(viewer.groups, group_id=group_id, cursor=cursor, limit=SHOWN)
    except ProtocolError as error:
        if error.error is not Error.INVALID_REQUEST:
            raise
        raise BadAddress("after: no such page of the list; start again from the first.") from None
    resolved = await alerts.alerts(viewer.groups, resolved=True, group_id=group_id, limit=RESOLVED_SHOWN)
    rules = [rule for rule in await alerts.rules(viewer.listed) if sees_rule(viewer, rule)]
    now = await reads.now(runtime.db)
    if not viewer.sees_cluster:
        return Found(now, found, resolved, rules, Receivers(), (), None)
    receivers, messages = await receivers_of(runtime), await alerts.messages(MESSAGES_SHOWN)
    return Found(now, found, resolved, rules, receivers, messages, await alerts.outcomes())


async def receivers_of(runtime: Runtime) -> Receivers:
    """Who can be told, or why it is not known."""
    try:
        return Receivers(await runtime.get(AlertService).receivers())
    except ProtocolError as error:
        if error.error is not Error.INVALID_CONFIG:
            raise
        return Receivers(problem=error.detail)


def sees_rule(viewer: Viewer, rule: Rule) -> bool:
    """The person may see a rule: who may describe the cluster sees all, others those that they may change."""
    return viewer.sees_cluster or may_change(viewer.principal, rule.pattern, rule.group_name)


def _line(row: AlertRow, viewer: Viewer, now: Millis) -> AlertLine:
    muted = row.muted_until is not None and row.muted_until > now
    return AlertLine(row, *cause(row), muted, missing(viewer, MUTE, row.group_id))


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


def _message(row: MessageRow) -> tuple[MessageRow, State, str, str]:
    return row, OUTCOMES[row.state], NOTICES.get(row.notice, row.notice), about(row)


def _commands(url: str, found: Found) -> list[Command]:
    alert_id = next((row.id for row in found.open.items), None)
    receiver = next((one.name for one in found.receivers.found), None)
    made = [as_command.request(url, "List alerts", "GET", "alerts")]
    if alert_id is not None:
        for label, duration_ms in (("Mute the alert", HOUR_MS), ("End the mute", 0)):
            body = {"duration_ms": duration_ms}
            made.append(as_command.request(url, label, "POST", f"alerts/{alert_id}/mute", body))
    if receiver is not None:
        address = f"alerts/receivers/{quote(receiver, safe='')}/test"
        made.append(as_command.request(url, "Send a test", "POST", address))
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
    viewer = viewer_of(request)
    rules = bridge.call(lambda runtime: runtime.get(AlertService).rules(viewer.listed))
    columns = """
        rule_id=id name enabled pattern group_name label verdicts min_lag min_time_lag_ms for_ms remind_ms send_resolved
        receivers @updated_at updated_by
    """
    return csv_of("alert-rules", columns, (rule for rule in rules if sees_rule(viewer, rule)))


LAG = State("lag", "Lag", "warn", "More records are to be read than the rule allows.")
TIME_LAG = State("time-lag", "Behind", "warn", "The next record to read is older than the rule allows.")

NOTICES = {"opened": "opened", "reminder": "reminder", "resolved": "resolved", "test": "test"}
OUTCOMES: Mapping[str, State] = {
    "sent": State("sent", "Sent", "good", "The receiver took it."),
    "waiting": State("waiting", "Waiting", "warn", "It is sent again until it is taken, for up to half an hour."),
    "failed": State("failed", "Failed", "bad", "It was sent several times in vain, and is not sent again."),
}


@dataclass(frozen=True, slots=True)
class RuleWords:
    """What a rule says, in parts of a sentence."""

    groups: str
    condition: str
    lasting: str
    told: str


def cause(row: AlertRow) -> tuple[State, str]:
    """Why an alert is open: a badge, and what goes on after it."""
    if row.cause == "lag":
        limit = "" if row.min_lag is None else f", limit {number(row.min_lag)}"
        return LAG, f"{number(row.value or 0)} records{limit}"
    if row.cause == "time-lag":
        limit = "" if row.min_time_lag_ms is None else f", limit {duration(row.min_time_lag_ms)}"
        return TIME_LAG, f"{time_lag(row.value or 0)}{limit}"
    state = VERDICTS.get(row.cause) or State(row.cause, row.cause, "idle", "This version does not know the verdict.")
    return state, ""


def rule_words(rule: Rule) -> RuleWords:
    """A rule in words."""
    reminder = f"; reminds every {duration(rule.remind_ms)}" if rule.remind_ms else ""
    resolved = "" if rule.send_resolved else "; not when resolved"
    receivers = joined(list(rule.receivers), 6) if rule.receivers else "nobody"
    return RuleWords(
        groups(rule.pattern, rule.group_name, rule.label),
        condition(rule.verdicts, rule.min_lag, rule.min_time_lag_ms),
        f"for {duration(rule.for_ms)}" if rule.for_ms else "at once",
        f"{receivers}{reminder}{resolved}",
    )


def groups(pattern: str, name: str, label: str = "") -> str:
    """The groups of a rule."""
    labelled = f" with the label {label}" if label else ""
    if pattern == "literal":
        return f"Group {name}{labelled}"
    return f"Groups beginning with {name}{labelled}" if name else f"All groups{labelled}"


def condition(verdicts: Sequence[str], min_lag: int | None, min_time_lag_ms: int | None) -> str:
    """What a rule watches for: `stuck or stalled, or lag of at least 10,000`."""
    known = [VERDICTS[name].label.lower() if name in VERDICTS else name for name in verdicts]
    parts = [" or ".join(filter(None, (", ".join(known[:-1]), known[-1])))] if known else []
    if min_lag is not None:
        parts.append(f"lag of at least {number(min_lag)}")
    if min_time_lag_ms is not None:
        parts.append(f"at least {duration(min_time_lag_ms)} behind")
    return ", or ".join(parts)


def about(message: MessageRow) -> str:
    """What a message was about: how many groups, which is all that everybody who sees messages may know."""
    count: int = int(message.content.get("alert_count") or 0)
    return "" if not count else "1 group" if count == 1 else f"{number(count)} groups"
