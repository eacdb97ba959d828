"""A rule of alerts: make, change and delete it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from frontend import commands as as_command
from frontend import queries
from frontend.alerts.rule_form import Given, read, sent, shown
from frontend.alerts.words import VERDICTS, rule_words
from frontend.allowed import ALERT_RULE, ALERT_RULE_OF_ALL, SEE_RULES, Forbidden, missing, require
from frontend.commands import Command, service_url
from frontend.viewer import Viewer, viewer_of
from frontend.views.actions import Refusal, attempt, done
from frontend.views.alerts import Receivers, receivers_of, sees_rule
from frontend.views.page import form_page, message, number, show, text
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from offsets.alerts.service import AlertService
from offsets.alerts.types import Rule, RuleSpec
from offsets.core.types import Millis

T = TypeVar("T")

FIELDS = (
    "name",
    "pattern",
    "group_name",
    "label",
    "verdicts",
    "min_lag",
    "min_time_lag_ms",
    "for_ms",
    "remind_ms",
    "receivers",
)
"""The fields of the form beside which something can be wrong."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A box of the form."""

    name: str
    ticked: bool
    note: str = ""


@form_page
def new_rule(request: HttpRequest) -> HttpResponse:
    """Make a rule. `?group` and `?lag` of the URL fill it in."""
    require(request, ALERT_RULE)
    problems: Mapping[str, str] = {}
    refusal = Refusal()
    if request.method == "POST":
        given = sent(request.POST)
        principal = viewer_of(request).principal
        made, problems, refusal = _saved(given, lambda runtime, spec: runtime.get(AlertService).create(spec, principal))
        if made is not None:
            return done(request, f"Made the rule {made.name}. It is checked within a minute.", _list_url())
    else:
        given = _prefilled(request)
    return _form(request, given, problems, refusal, rule=None)


def _prefilled(request: HttpRequest) -> Given:
    group_id, lag = text(request, "group"), number(request, "lag")
    given = Given()
    if group_id:
        given = replace(given, name=f"{group_id}"[:100], pattern="literal", group_name=group_id)
    return replace(given, min_lag=str(lag)) if lag else given


@form_page
def rule_page(request: HttpRequest, rule_id: int) -> HttpResponse:
    """A rule: change or delete it."""
    viewer = viewer_of(request)
    rule = _rule(viewer, rule_id)
    if rule is None or not sees_rule(viewer, rule):
        require(request, SEE_RULES)
        return message(request, 404, "No such rule", "There is no such rule; it may have been deleted.", "alerts")
    given, refusal, act = shown(rule), Refusal(), request.POST.get("act", "")
    problems: Mapping[str, str] = {}
    if request.method == "POST":
        if lacking := _lacking(viewer, rule.pattern, rule.group_name):
            raise Forbidden(lacking)
        if act == "delete":
            refusal = _delete(request, rule)
            if not refusal.text:
                return done(request, f"Deleted the rule {rule.name}.", _list_url())
        elif act == "save":
            given = sent(request.POST)
            changed, problems, refusal = _saved(
                given, lambda runtime, spec: runtime.get(AlertService).update(rule_id, spec, viewer.principal)
            )
            if changed is not None:
                return done(request, f"Changed the rule {changed.name}.", _list_url())
        else:
            refusal = Refusal("act: must be save or delete.", 400)
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
    found = read(given)
    spec = found.spec
    if spec is None:
        return None, found.problems, Refusal("Nothing was stored: see below.", 400)
    try:
        return bridge.call(lambda runtime: save(runtime, spec)), {}, Refusal()
    except ProtocolError as error:
        field = str(error.fields.get("field", ""))
        status = getattr(error, "status", error.error.status)
        if field not in FIELDS:
            return None, {}, Refusal(error.detail, status)
        detail = error.detail.removeprefix(f"{field}: ")
        return None, {field: f"{detail[:1].upper()}{detail[1:]}."}, Refusal("Nothing was stored: see below.", status)


def _lacking(viewer: Viewer, pattern: str, group_name: str) -> str:
    """Why a person may not change a rule for these groups, "" if allowed."""
    if pattern == "literal":
        return missing(viewer, ALERT_RULE, group_name)
    return missing(viewer, ALERT_RULE_OF_ALL)


def _list_url() -> str:
    return reverse("frontend:alerts")


def _form(
    request: HttpRequest, given: Given, problems: Mapping[str, str], refusal: Refusal, *, rule: Rule | None
) -> HttpResponse:
    viewer = viewer_of(request)

    async def look(runtime: Runtime) -> tuple[Millis, Receivers]:
        return await queries.now(runtime.db), await receivers_of(runtime)

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
        "verdicts": [(state, name in given.verdicts) for name, state in VERDICTS.items()],
        "receivers": _ticks(given, receivers, is_new=rule is None and request.method == "GET"),
        "receivers_problem": receivers.problem,
        "commands": _commands(service_url(request), given, rule),
    }
    return show(request, "alert_rule", context, section="alerts", status=refusal.status)


def _ticks(given: Given, receivers: Receivers, *, is_new: bool) -> list[Tick]:
    """The receivers to choose from. If there is one, a new rule tells it."""
    known = [one.name for one in receivers.found]
    chosen: Sequence[str] = known if is_new and len(known) == 1 else given.receivers
    ticks = [Tick(one.name, one.name in chosen, one.kind) for one in receivers.found]
    return [*ticks, *(Tick(name, True, "not in the file of receivers") for name in chosen if name not in known)]


def _commands(url: str, given: Given, rule: Rule | None) -> list[Command]:
    spec = read(given).spec
    body = None if spec is None else {**asdict(spec), "verdicts": [*spec.verdicts], "receivers": [*spec.receivers]}
    if rule is None:
        return [] if body is None else [as_command.create_alert_rule(url, body)]
    change = [] if body is None else [as_command.change_alert_rule(url, rule.id, body)]
    return [*change, as_command.delete_alert_rule(url, rule.id)]
