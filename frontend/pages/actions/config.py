"""The settings of a group: what is in force and why, and the form that changes its overrides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.http import HttpRequest, HttpResponse

from frontend.ui import commands as as_command
from frontend.ui.allowed import CHANGE_CONFIG, missing, require
from frontend.ui.commands import service_url
from frontend.ui.form import Refusal, actor, attempt, done, header
from frontend.ui.labels import shown as shown_labels
from frontend.ui.page import form_page, group_url, show
from frontend.ui.page import missing as no_group
from frontend.ui.reads import now
from frontend.ui.states import state
from frontend.ui.viewer import viewer_of
from frontend.ui.wording import duration, joined, number
from groups.configs import SETTINGS, Entry, GroupConfigs, Source
from groups.labels import GroupLabels
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.setting import Value

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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a form came to: the names of the settings that changed, or why none did, by setting."""

    changed: tuple[str, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)


@form_page
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
        if outcome is not None and not outcome.problems:
            text = f"Changed {joined(outcome.changed, MANY)}." if outcome.changed else "No setting was changed."
            return done(request, text, f"{group_url(group_id)}/config")
        if outcome is not None:
            problems = outcome.problems
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
        "now": brief.now if brief else bridge.call(lambda runtime: now(runtime.db)),
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
        return Outcome(problems=problems)
    try:
        await configs.alter(group_id, given, updated_by=principal)
    except ProtocolError as error:
        name = str(error.fields.get("field", ""))
        if error.error is not Error.INVALID_CONFIG or name not in entries:
            raise
        return Outcome(problems={name: told(entries[name], error.detail)})
    return Outcome(changed=tuple(given))


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
