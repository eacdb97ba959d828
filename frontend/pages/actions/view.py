"""What operators do to a group: each action has its own page that says what will happen, and a form that does it.

Each takes what the endpoint of `/v1` takes that does the same (`frontend.ui.viewer`). If the service refuses, the page
shows the reason and the form as it was filled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse

from frontend.ui import commands as as_command
from frontend.ui.commands import service_url
from frontend.ui.form import (
    LONGEST_REASON,
    Refusal,
    actor,
    attempt,
    delete_now,
    done,
    existing,
    form,
    header,
    hold_choices,
    hold_now,
    release_now,
    successful,
)
from frontend.ui.labels import shown as shown_labels
from frontend.ui.page import form_page, group_url, member_names, show
from frontend.ui.page import missing as no_group
from frontend.ui.reads import now_ms
from frontend.ui.states import state
from frontend.ui.viewer import CHANGE_CONFIG, DELETE_GROUP, HOLD, KICK, missing, require, viewer_of
from frontend.ui.wording import duration, joined, number, plural
from groups.configs import SETTINGS, Entry, GroupConfigs, Source
from groups.core.model.replies import Done
from groups.engine.service import GroupService
from groups.labels import GroupLabels
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.setting import Value


@form_page("group.delete")
def delete_group(request: HttpRequest, group_id: str) -> HttpResponse:
    """Delete an empty group with its offsets. Its name has to be typed: the deletion cannot be undone."""
    require(request, DELETE_GROUP, group_id)
    brief, url, refusal = existing(request, group_id), service_url(request), Refusal()
    if request.method == "POST":
        if request.POST.get("confirm", "").strip() != group_id:
            refusal = Refusal("That is not the id of this group: nothing was deleted.", 400)
        else:
            deleted, refusal = attempt(lambda runtime: delete_now(runtime, group_id, actor(request)))
            if deleted is not None:
                text = f"Deleted {group_id} with {plural(brief.offsets, 'committed offset')}."
                return done(request, text, group_url(group_id))
    return form(
        request, "pages/actions/delete_group", brief, refusal, {"commands": [as_command.delete_group(url, group_id)]}
    )


@form_page("group.hold", release="group.release")
def hold_group(request: HttpRequest, group_id: str) -> HttpResponse:
    """Keep members out for a while, or let them in again."""
    require(request, HOLD, group_id)
    brief, refusal = existing(request, group_id), Refusal()
    if request.method == "POST" and request.POST.get("act") == "release":
        released, refusal = attempt(lambda runtime: release_now(runtime, group_id, actor(request)))
        if released is not None:
            return done(request, f"The hold has ended: members can join {group_id} again.", group_url(group_id))
    elif request.method == "POST":
        held, refusal = attempt(lambda runtime: hold_now(runtime, request, group_id))
        if held is not None:
            text = f"{group_id} is held: no member can join; {plural(held.removed, 'member')} removed."
            return done(request, text, group_url(group_id))
    choices = hold_choices()
    url, chosen = service_url(request), request.POST.get("duration_ms")
    commands = [as_command.hold(url, group_id, choices[0][0]), as_command.end_hold(url, group_id)]
    extra = {"choices": choices, "chosen": chosen, "commands": commands}
    return form(request, "pages/actions/hold_group", brief, refusal, extra)


@form_page("member.remove")
def kick_member(request: HttpRequest, group_id: str) -> HttpResponse:
    """Remove one member. Its id is passed in the query: it may contain a slash."""
    require(request, KICK, group_id)
    brief, refusal, member_id = existing(request, group_id), Refusal(), request.GET.get("member", "")
    if request.method == "POST":
        kicked, refusal = attempt(lambda runtime: _kick(runtime, request, group_id, member_id))
        if kicked is not None:
            return done(request, f"Removed {member_id}. It can join again.", group_url(group_id))
    commands = [as_command.kick(service_url(request), group_id, member_id)] if member_id else []
    names = member_names(viewer_of(request), group_id, {member_id})
    context = {"member_id": member_id, "name": names.get(member_id, ""), "commands": commands}
    return form(request, "pages/actions/kick_member", brief, refusal, context)


async def _kick(runtime: Runtime, request: HttpRequest, group_id: str, member_id: str) -> Done:
    if not member_id:
        raise ProtocolError(Error.UNKNOWN_MEMBER_ID, "member_id is missing.")
    reason = request.POST.get("reason", "").strip()[:LONGEST_REASON]
    groups = runtime.get(GroupService)
    return successful(await groups.kick(group_id, member_id, principal=actor(request), reason=reason))


LONGEST_ID = 255
SHOWN = "shown:"
"""What the form showed of a setting: only differences are applied, so that two people do not undo each other."""
MANY = 10
"""More names than there are settings: all of them are named."""


@dataclass(frozen=True, slots=True)
class SettingLine:
    """A setting in the form. `given`: the text of its field; `shown`: that of its override; `problem`: what to mend."""

    entry: Entry
    text: str
    inherited: str
    default: str
    source: str
    server_setting: str
    limits: str
    limited_by: str
    given: str
    shown: str
    problem: str = ""

    @property
    def overridden(self) -> bool:
        """The group has its own value."""
        return self.entry.source is Source.GROUP


Outcome = tuple[Sequence[str], Mapping[str, str]]
"""What a form came to: the names of the settings that changed, or why none did, by setting."""


@form_page("group.config")
def group_config(request: HttpRequest, group_id: str) -> HttpResponse:
    """All settings with their sources, and the form. The group need not exist."""
    if len(group_id) > LONGEST_ID:
        return no_group(request, group_id)
    refusal = Refusal()
    problems: Mapping[str, str] = {}
    changes = _changes(request)
    if request.method == "POST":
        require(request, CHANGE_CONFIG, group_id)
        outcome, refusal = attempt(lambda runtime: _save(runtime, group_id, changes, actor(request)))
        if outcome is not None:
            changed, problems = outcome
            if not problems:
                text = f"Changed {joined(changed, MANY)}." if changed else "No setting was changed."
                return done(request, text, f"{group_url(group_id)}/config")
            refusal = Refusal("Nothing was changed:", 400, list(problems.values()))
    described = bridge.call(lambda runtime: runtime.get(GroupConfigs).describe(group_id))
    labelled = bridge.call(lambda runtime: runtime.get(GroupLabels).describe(group_id))
    brief = header(request, group_id)
    entries = [entry for entry in described if brief is None or brief.type == "classic" or applies(entry, brief.type)]
    context = {
        "brief": brief,
        "group_type": brief.type if brief else None,
        "state": state(brief.state, held=brief.held) if brief else None,
        "lines": [_line(entry, request.POST, problems) for entry in entries],
        "lacking": missing(viewer_of(request), CHANGE_CONFIG, group_id),
        "labels": shown_labels(labelled.labels),
        "labels_url": f"{group_url(group_id)}/labels",
        "refusal": refusal,
        "commands": _commands(request, group_id, entries, changes),
        "now": brief.now if brief else now_ms(),
    }
    return show(request, "pages/actions/group_config", context, section="groups", status=refusal.status)


def applies(entry: Entry, kind: str) -> bool:
    """Whether a setting is for groups of this type."""
    return entry.name.startswith(f"{kind}.")


def _changes(request: HttpRequest) -> dict[str, str]:
    """The fields whose text differs from what the form showed, by setting."""
    given = {name: request.POST[name].strip() for name in SETTINGS if name in request.POST}
    return {name: text for name, text in given.items() if text != request.POST.get(SHOWN + name, "")}


async def _save(runtime: Runtime, group_id: str, changes: Mapping[str, str], principal: str) -> Outcome:
    """Apply all changes or none. Raises ProtocolError."""
    configs = runtime.get(GroupConfigs)
    entries = {entry.name: entry for entry in await configs.describe(group_id)}
    problems: dict[str, str] = {}
    given: dict[str, Value | None] = {}
    for name, text in changes.items():
        try:
            given |= configs.checked({name: _value(entries[name], text)})
        except ProtocolError as error:
            problems[name] = told(entries[name], error.detail)
    if problems:
        return (), problems
    try:
        await configs.alter(group_id, given, updated_by=principal)
    except ProtocolError as error:
        name = str(error.fields.get("field", ""))
        if error.error is not Error.INVALID_CONFIG or name not in entries:
            raise
        return (), {name: told(entries[name], error.detail)}
    return tuple(given), {}


def _value(entry: Entry, text: str) -> Value | None:
    """What the text of a field means; None: inherit. Raises ProtocolError INVALID_CONFIG."""
    if not text:
        return None
    if entry.minimum is None:
        return text
    digits = text.replace(",", "")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        raise ProtocolError(Error.INVALID_CONFIG, f"{entry.name}: {text[:40]!r} is not a whole number of {entry.unit}")
    return int(digits)


def told(entry: Entry, detail: str) -> str:
    """Why a value was refused, with the remedy."""
    allowed = f"one of {', '.join(entry.choices)}"
    if entry.minimum is not None and entry.maximum is not None:
        allowed = f"a number from {number(entry.minimum)} to {number(entry.maximum)} ({entry.unit})"
    inherited = _with_unit(entry, entry.inherited)
    return f"{detail}. Enter {allowed}, or leave the field empty to inherit {inherited}."


def _with_unit(entry: Entry, value: Value) -> str:
    """A value for people: `45,000 ms (45 s)`."""
    if not isinstance(value, int):
        return str(value)
    written = f"{number(value)} {entry.unit}"
    return f"{written} ({duration(value)})" if entry.unit == "ms" and value >= 1_000 else written


SOURCES = {Source.DEFAULT: "Default", Source.GLOBAL: "Server setting", Source.GROUP: "Group override"}


def _line(entry: Entry, posted: Mapping[str, str], problems: Mapping[str, str]) -> SettingLine:
    setting = SETTINGS[entry.name]
    shown = str(entry.value) if entry.source is Source.GROUP else ""
    limits = ", ".join(entry.choices)
    if entry.minimum is not None and entry.maximum is not None:
        limits = f"{number(entry.minimum)} to {number(entry.maximum)} {entry.unit}"
    return SettingLine(
        entry=entry,
        text=_with_unit(entry, entry.value),
        inherited=_with_unit(entry, entry.inherited),
        default=_with_unit(entry, entry.default),
        source=SOURCES[entry.source],
        server_setting=setting.inherited_from,
        limits=limits,
        limited_by=", ".join(setting.limits or (setting.inherited_from,)),
        given=posted.get(entry.name, shown),
        shown=posted.get(SHOWN + entry.name, shown),
        problem=problems.get(entry.name, ""),
    )


def _commands(
    request: HttpRequest, group_id: str, entries: Sequence[Entry], changes: Mapping[str, str]
) -> list[as_command.Command]:
    """The form as commands: what was sent, else the overrides that there are, else an example."""
    numbers = {entry.name for entry in entries if entry.minimum is not None}
    body: dict[str, object] = {
        name: (int(text) if name in numbers and text.isascii() and text.isdigit() else text) if text else None
        for name, text in changes.items()
    }
    body = body or {entry.name: entry.value for entry in entries if entry.source is Source.GROUP}
    return as_command.config(service_url(request), group_id, body or {entries[0].name: entries[0].value})
