"""A rule of alerts: its form, and what is sent with it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse

from frontend.pages.alerts.view import receivers_of, rule_words
from frontend.ui import commands as as_command
from frontend.ui import reads
from frontend.ui.commands import Command, service_url
from frontend.ui.form import Refusal, attempt, done
from frontend.ui.page import Absent, form_page, number, show, text
from frontend.ui.verdicts import VERDICTS
from frontend.ui.viewer import ALERT_RULE, ALERT_RULE_OF_ALL, SEE_RULES, Forbidden, Viewer, missing, require, viewer_of
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from offsets.alerts.receivers import Receiver
from offsets.alerts.rules import LEAST_REMIND_MS, LONGEST_MS
from offsets.alerts.service import AlertService
from offsets.alerts.types import GIVEN, AlertRuleView, Preview, given_of
from offsets.core.types import Millis

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
UNITS = {"d": DAY, "day": DAY, "days": DAY, "h": HOUR, "": MINUTE, "min": MINUTE, "m": MINUTE, "s": 1_000, "ms": 1}
_LENGTH = re.compile(r"([0-9]{1,12})\s*([a-z]*)")
_COUNT = re.compile(r"[0-9]{1,18}")
NOT_A_LENGTH = "Write a length such as 5 min, 90 s or 4 h; a number alone is minutes."
TOO_LONG = f"At most {LONGEST_MS // DAY} days."
TOO_OFTEN = f"At least {LEAST_REMIND_MS // MINUTE} min; empty: only once."
NOT_A_COUNT = "Write a whole number of records."
PREVIEWED = 10
"""Groups that a preview names."""
COMMON = ("uncovered", "unattended", "stalled", "stuck")
"""What a new rule watches for, unless its author says otherwise: what never is as it should be."""

Given = Mapping[str, Any]
"""What the fields of the form have, as people write it, by the names of `GIVEN`."""
LENGTHS, BOXES = ("min_time_lag_ms", "for_ms", "remind_ms"), ("send_resolved", "enabled")
NEW: Given = {
    **dict.fromkeys(GIVEN, ""), **dict.fromkeys(BOXES, True), "pattern": "prefix", "verdicts": COMMON, "receivers": (),
    "for_ms": "5 min", "remind_ms": "4 h",
}  # fmt: skip


def shown(rule: AlertRuleView) -> Given:
    """The form of a rule."""
    lengths = {name: length(getattr(rule, name)) for name in LENGTHS}
    reminds = lengths["remind_ms"] if rule.remind_ms else ""
    lag = "" if rule.min_lag is None else str(rule.min_lag)
    return {**given_of(rule), **lengths, "remind_ms": reminds, "min_lag": lag}


def sent(post: QueryDict) -> Given:
    """The form as it was sent."""
    return {
        **{name: post.get(name, "").strip() for name in GIVEN},
        **{name: bool(post.get(name)) for name in BOXES},
        "verdicts": [name for name in VERDICTS if name in post.getlist("verdicts")],
        "receivers": list(dict.fromkeys(post.getlist("receivers"))),
    }


def read(given: Given) -> tuple[Given | None, Mapping[str, str]]:
    """What a form says, or what is wrong with which fields. What the service refuses as well is left to it."""
    lengths = {name: milliseconds(given[name]) for name in LENGTHS}
    problems = {name: NOT_A_LENGTH for name, found in lengths.items() if given[name] and found is None}
    for name in ("for_ms", "remind_ms"):
        lengths[name] = found = lengths[name] or 0
        if found > LONGEST_MS:
            problems[name] = TOO_LONG
        elif name == "remind_ms" and 0 < found < LEAST_REMIND_MS:
            problems[name] = TOO_OFTEN
    lag = given["min_lag"].replace(",", "").replace(" ", "")
    if lag and not _COUNT.fullmatch(lag):
        problems["min_lag"] = NOT_A_COUNT
    return None if problems else {**given, **lengths, "min_lag": int(lag) if lag else None}, problems


def milliseconds(written: str) -> int | None:
    """The length in ms of text such as `5 min` or `90 s`. None: the text is not a length, or exceeds a year."""
    match = _LENGTH.fullmatch(written.lower())
    if match is None or match[2] not in UNITS:
        return None
    found = int(match[1]) * UNITS[match[2]]
    return found if found <= 365 * DAY else None


def length(ms: int | None) -> str:
    """A length as the form shows it, exactly: `5 min`, `90 s`, `4 h`; "" for None."""
    for unit in ("h", "min", "s"):
        if ms is not None and ms % UNITS[unit] == 0 and ms:
            return f"{ms // UNITS[unit]} {unit}"
    return "" if ms is None else f"{ms} ms" if ms else "0 s"


T = TypeVar("T")


@form_page("alert.rule")
def new_rule(request: HttpRequest) -> HttpResponse:
    """Make a rule. `?group` and `?lag` of the URL fill it in."""
    require(request, ALERT_RULE)
    if request.method == "POST":
        return _answered(request, None)
    group_id, lag = text(request, "group"), number(request, "lag")
    of = {"name": group_id[:100], "pattern": "literal", "group_name": group_id} if group_id else {}
    return _form(request, {**NEW, **of, "min_lag": str(lag or "")}, rule=None)


@form_page("alert.rule", delete="alert.delete")
def rule_page(request: HttpRequest, rule_id: int) -> HttpResponse:
    """A rule: change or delete it."""
    viewer = viewer_of(request)
    rules = bridge.call(lambda runtime: runtime.get(AlertService).rules(viewer.principal))
    rule = next((rule for rule in rules if rule.id == rule_id), None)
    if rule is None:
        require(request, SEE_RULES)
        raise Absent("No such rule", "There is no such rule; it may have been deleted.", "alerts")
    if request.method != "POST":
        return _form(request, shown(rule), rule=rule)
    if lacking := _lacking(viewer, rule):
        raise Forbidden(lacking)
    act = request.POST.get("act", "")
    if act in ("save", "preview"):
        return _answered(request, rule)
    refusal = _delete(request, rule) if act == "delete" else Refusal("act: must be save, preview or delete.", 400)
    if refusal.text:
        return _form(request, shown(rule), rule=rule, refusal=refusal)
    return done(request, f"Deleted the rule {rule.name}.", reverse("frontend:alerts"))


def _delete(request: HttpRequest, rule: AlertRuleView) -> Refusal:
    if not request.POST.get("sure"):
        return Refusal("Nothing was deleted: tick the box beside the button.", 400)
    principal = viewer_of(request).principal
    return attempt(lambda runtime: runtime.get(AlertService).delete(rule.id, principal))[1]


def _answered(request: HttpRequest, rule: AlertRuleView | None) -> HttpResponse:
    """Store a new rule or the changes of one; or the form, with what is wrong, or with what the rule would find now."""
    given, viewer = sent(request.POST), viewer_of(request)
    if request.POST.get("act") == "preview":
        preview, wrong = _tried(given, lambda alerts, read: alerts.preview(read, viewer.listed))
        return _form(request, given, rule=rule, preview=preview, **wrong)
    rule_id = rule.id if rule else None
    stored, wrong = _tried(given, lambda alerts, read: alerts.store(read, viewer.principal, rule_id))
    if stored is None:
        return _form(request, given, rule=rule, **wrong)
    said = "Changed the rule {}." if rule else "Made the rule {}. It is checked within a minute."
    return done(request, said.format(stored.name), reverse("frontend:alerts"))


def _tried(given: Given, work: Callable[[AlertService, Given], Awaitable[T]]) -> tuple[T | None, dict[str, Any]]:
    """What came of it; or None, with what is wrong with which field (`problems`) and besides (`refusal`)."""
    found, problems = read(given)
    refusal = Refusal("Nothing was stored: see below.", 400)
    if found is not None:
        try:
            return bridge.call(lambda runtime: work(runtime.get(AlertService), found)), {}
        except ProtocolError as error:
            field, status = str(error.fields.get("field", "")), getattr(error, "status", error.error.status)
            if field not in GIVEN:
                return None, {"refusal": Refusal(error.detail, status)}
            detail = error.detail.removeprefix(f"{field}: ")
            problems, refusal = {field: f"{detail[:1].upper()}{detail[1:]}."}, replace(refusal, status=status)
    return None, {"problems": problems, "refusal": refusal}


def _lacking(viewer: Viewer, rule: AlertRuleView) -> str:
    """Why a person may not change a rule, "" if allowed."""
    if rule.pattern == "literal":
        return missing(viewer, ALERT_RULE, rule.group_name)
    return missing(viewer, ALERT_RULE_OF_ALL)


def _form(
    request: HttpRequest,
    given: Given,
    *,
    rule: AlertRuleView | None,
    problems: Mapping[str, str] = {},
    refusal: Refusal | None = None,
    preview: Preview | None = None,
) -> HttpResponse:
    viewer = viewer_of(request)

    async def look(runtime: Runtime) -> tuple[Millis, tuple[Sequence[Receiver], str]]:
        return await reads.now(runtime.db), await receivers_of(runtime)

    now, (receivers, receivers_problem) = bridge.call(look)
    known = [one.name for one in receivers]
    is_new = rule is None and request.method == "GET"
    # If there is only one receiver, a new rule tells it.
    chosen: Sequence[str] = known if is_new and len(known) == 1 else given["receivers"]
    context: dict[str, Any] = {
        "now": now,
        "rule": rule,
        "words": rule_words(rule) if rule else None,
        "given": given,
        "problems": problems,
        "refusal": refusal or Refusal(),
        "lacking": _lacking(viewer, rule) if rule else "",
        "only_groups": missing(viewer, ALERT_RULE_OF_ALL),
        "verdicts": [(state, name in given["verdicts"]) for name, state in VERDICTS.items()],
        "receivers": [
            *((one.name, one.name in chosen, one.problem or one.kind) for one in receivers),
            *((name, True, "no such receiver any more") for name in chosen if name not in known),
        ],
        "receivers_problem": receivers_problem,
        "preview": preview,
        "preview_named": preview.opened[:PREVIEWED] if preview else (),
        "preview_more": max(len(preview.opened) - PREVIEWED, 0) if preview else 0,
        "commands": _commands(service_url(request), given, rule),
    }
    return show(request, "pages/alerts/alert_rule", context, section="alerts", status=context["refusal"].status)


def _commands(url: str, given: Given, rule: AlertRuleView | None) -> list[Command]:
    body, _ = read(given)
    if rule is None:
        return [] if body is None else [as_command.request(url, "Create the rule", "POST", "alerts/rules", body)]
    here = f"alerts/rules/{rule.id}"
    change = [] if body is None else [as_command.request(url, "Change the rule", "PATCH", here, body)]
    return [*change, as_command.request(url, "Delete the rule", "DELETE", here)]
