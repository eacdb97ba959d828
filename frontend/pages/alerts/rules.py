"""A rule of alerts: its form, and what is sent with it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse

from frontend.pages.alerts.view import Receivers, receivers_of, rule_words, sees_rule
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
from offsets.alerts.rules import LEAST_REMIND_MS, LONGEST_MS
from offsets.alerts.service import AlertService
from offsets.alerts.types import Preview, Rule, RuleSpec
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
"""What the fields of the form have, as people write it, by the names of a `RuleSpec`."""
LENGTHS, BOXES = ("min_time_lag_ms", "for_ms", "remind_ms"), ("send_resolved", "enabled")
NEW: Given = {
    "name": "", "pattern": "prefix", "group_name": "", "label": "", "verdicts": COMMON, "min_lag": "",
    "min_time_lag_ms": "", "for_ms": "5 min", "remind_ms": "4 h", "send_resolved": True, "receivers": (),
    "enabled": True,
}  # fmt: skip


def shown(rule: Rule) -> Given:
    """The form of a stored rule."""
    stored = {name: getattr(rule, name) for name in NEW}
    lengths = {name: "" if stored[name] is None else length(stored[name]) for name in LENGTHS}
    reminds = {"remind_ms": lengths["remind_ms"] if rule.remind_ms else ""}
    return {**stored, **lengths, **reminds, "min_lag": "" if rule.min_lag is None else str(rule.min_lag)}


def sent(post: QueryDict) -> Given:
    """The form as it was sent."""
    return {
        **{name: post.get(name, "").strip() for name in NEW},
        **{name: bool(post.get(name)) for name in BOXES},
        "verdicts": tuple(name for name in VERDICTS if name in post.getlist("verdicts")),
        "receivers": tuple(dict.fromkeys(post.getlist("receivers"))),
    }


def read(given: Given) -> tuple[RuleSpec | None, Mapping[str, str]]:
    """What a form says, or what is wrong with which fields. What the service refuses as well is left to it."""
    problems: dict[str, str] = {}
    lengths = {name: milliseconds(given[name]) if given[name] else None for name in LENGTHS}
    problems |= {name: NOT_A_LENGTH for name, found in lengths.items() if given[name] and found is None}
    for name in ("for_ms", "remind_ms"):
        lengths[name] = found = lengths[name] or 0
        if found > LONGEST_MS:
            problems[name] = TOO_LONG
    if 0 < (lengths["remind_ms"] or 0) < LEAST_REMIND_MS:
        problems["remind_ms"] = TOO_OFTEN
    lag = given["min_lag"].replace(",", "").replace(" ", "")
    if lag and not _COUNT.fullmatch(lag):
        problems["min_lag"] = NOT_A_COUNT
    if problems:
        return None, problems
    return RuleSpec(**{**given, **lengths, "min_lag": int(lag) if lag else None}), {}


def milliseconds(written: str) -> int | None:
    """The length in ms of text such as `5 min` or `90 s`. None: the text is not a length, or exceeds a year."""
    match = _LENGTH.fullmatch(written.lower())
    if match is None or match[2] not in UNITS:
        return None
    found = int(match[1]) * UNITS[match[2]]
    return found if found <= 365 * DAY else None


def length(ms: int) -> str:
    """A length as the form shows it, exactly: `5 min`, `90 s`, `4 h`."""
    for unit in ("h", "min", "s"):
        if ms % UNITS[unit] == 0 and ms:
            return f"{ms // UNITS[unit]} {unit}"
    return f"{ms} ms" if ms else "0 s"


T = TypeVar("T")


@form_page("alert.rule")
def new_rule(request: HttpRequest) -> HttpResponse:
    """Make a rule. `?group` and `?lag` of the URL fill it in."""
    require(request, ALERT_RULE)
    problems: Mapping[str, str] = {}
    refusal = Refusal()
    if request.method == "POST":
        given = sent(request.POST)
        if request.POST.get("act") == "preview":
            return _previewed(request, given, rule=None)
        principal = viewer_of(request).principal
        made, problems, refusal = _saved(given, lambda runtime, spec: runtime.get(AlertService).create(spec, principal))
        if made is not None:
            return done(request, f"Made the rule {made.name}. It is checked within a minute.", _list_url())
    else:
        given = _prefilled(request)
    return _form(request, given, problems, refusal, rule=None)


def _prefilled(request: HttpRequest) -> Given:
    group_id, lag = text(request, "group"), number(request, "lag")
    of = {"name": group_id[:100], "pattern": "literal", "group_name": group_id} if group_id else {}
    return {**NEW, **of, "min_lag": str(lag or "")}


@form_page("alert.rule", delete="alert.delete")
def rule_page(request: HttpRequest, rule_id: int) -> HttpResponse:
    """A rule: change or delete it."""
    viewer = viewer_of(request)
    rule = _rule(viewer, rule_id)
    if rule is None or not sees_rule(viewer, rule):
        require(request, SEE_RULES)
        raise Absent("No such rule", "There is no such rule; it may have been deleted.", "alerts")
    given, refusal, act = shown(rule), Refusal(), request.POST.get("act", "")
    problems: Mapping[str, str] = {}
    if request.method == "POST":
        if lacking := _lacking(viewer, rule.pattern, rule.group_name):
            raise Forbidden(lacking)
        if act == "delete":
            refusal = _delete(request, rule)
            if not refusal.text:
                return done(request, f"Deleted the rule {rule.name}.", _list_url())
        elif act == "preview":
            return _previewed(request, sent(request.POST), rule=rule)
        elif act == "save":
            given = sent(request.POST)
            changed, problems, refusal = _saved(
                given, lambda runtime, spec: runtime.get(AlertService).update(rule_id, spec, viewer.principal)
            )
            if changed is not None:
                return done(request, f"Changed the rule {changed.name}.", _list_url())
        else:
            refusal = Refusal("act: must be save, preview or delete.", 400)
    return _form(request, given, problems, refusal, rule=rule)


def _rule(viewer: Viewer, rule_id: int) -> Rule | None:
    if rule_id >= 2**63:
        return None
    try:
        return bridge.call(lambda runtime: runtime.get(AlertService).rule(rule_id, viewer.listed))
    except ProtocolError as error:
        if getattr(error, "status", 0) == 404:
            return None
        raise


def _delete(request: HttpRequest, rule: Rule) -> Refusal:
    if not request.POST.get("sure"):
        return Refusal("Nothing was deleted: tick the box beside the button.", 400)

    async def delete(runtime: Runtime) -> bool:
        await runtime.get(AlertService).delete(rule.id, viewer_of(request).principal)
        return True

    return attempt(delete)[1]


def _saved(
    given: Given, save: Callable[[Runtime, RuleSpec], Awaitable[T]]
) -> tuple[T | None, Mapping[str, str], Refusal]:
    """The stored rule; or None, what is wrong with which field, and what is wrong besides."""
    spec, problems = read(given)
    if spec is None:
        return None, problems, Refusal("Nothing was stored: see below.", 400)
    try:
        return bridge.call(lambda runtime: save(runtime, spec)), {}, Refusal()
    except ProtocolError as error:
        field = str(error.fields.get("field", ""))
        status = getattr(error, "status", error.error.status)
        if field not in NEW or field in BOXES:
            return None, {}, Refusal(error.detail, status)
        detail = error.detail.removeprefix(f"{field}: ")
        return None, {field: f"{detail[:1].upper()}{detail[1:]}."}, Refusal("Nothing was stored: see below.", status)


def _previewed(request: HttpRequest, given: Given, *, rule: Rule | None) -> HttpResponse:
    """The form, with what the rule would find now; nothing is stored."""
    viewer = viewer_of(request)
    preview, problems, refusal = _saved(
        given, lambda runtime, spec: runtime.get(AlertService).preview(spec, viewer.listed)
    )
    return _form(request, given, problems, refusal, rule=rule, preview=preview)


def _lacking(viewer: Viewer, pattern: str, group_name: str) -> str:
    """Why a person may not change a rule for these groups, "" if allowed."""
    if pattern == "literal":
        return missing(viewer, ALERT_RULE, group_name)
    return missing(viewer, ALERT_RULE_OF_ALL)


def _list_url() -> str:
    return reverse("frontend:alerts")


def _form(
    request: HttpRequest,
    given: Given,
    problems: Mapping[str, str],
    refusal: Refusal,
    *,
    rule: Rule | None,
    preview: Preview | None = None,
) -> HttpResponse:
    viewer = viewer_of(request)

    async def look(runtime: Runtime) -> tuple[Millis, Receivers]:
        return await reads.now(runtime.db), await receivers_of(runtime)

    now, receivers = bridge.call(look)
    context: dict[str, Any] = {
        "now": now,
        "rule": rule,
        "words": rule_words(rule) if rule else None,
        "given": given,
        "problems": problems,
        "refusal": refusal,
        "lacking": _lacking(viewer, rule.pattern, rule.group_name) if rule else "",
        "only_groups": missing(viewer, ALERT_RULE_OF_ALL),
        "verdicts": [(state, name in given["verdicts"]) for name, state in VERDICTS.items()],
        "receivers": _ticks(given, receivers, is_new=rule is None and request.method == "GET"),
        "receivers_problem": receivers.problem,
        "preview": preview,
        "preview_named": preview.opened[:PREVIEWED] if preview else (),
        "preview_more": max(len(preview.opened) - PREVIEWED, 0) if preview else 0,
        "commands": _commands(service_url(request), given, rule),
    }
    return show(request, "pages/alerts/alert_rule", context, section="alerts", status=refusal.status)


def _ticks(given: Given, receivers: Receivers, *, is_new: bool) -> list[tuple[str, bool, str]]:
    """The receivers to choose from: name, ticked, and what is known of it. If there is one, a new rule tells it."""
    known = [one.name for one in receivers.found]
    chosen: Sequence[str] = known if is_new and len(known) == 1 else given["receivers"]
    ticks = [(one.name, one.name in chosen, str(one.kind)) for one in receivers.found]
    return [*ticks, *((name, True, "not in the file of receivers") for name in chosen if name not in known)]


def _commands(url: str, given: Given, rule: Rule | None) -> list[Command]:
    spec, _ = read(given)
    body = None if spec is None else {**asdict(spec), "verdicts": [*spec.verdicts], "receivers": [*spec.receivers]}
    if rule is None:
        return [] if body is None else [as_command.request(url, "Create the rule", "POST", "alerts/rules", body)]
    here = f"alerts/rules/{rule.id}"
    change = [] if body is None else [as_command.request(url, "Change the rule", "PATCH", here, body)]
    return [*change, as_command.request(url, "Delete the rule", "DELETE", here)]
