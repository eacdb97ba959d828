"""Acts of people and tokens as text. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from frontend.archive.presenters import KINDS as RUN_KINDS
from frontend.audit.reads import Act
from frontend.rows import Event, Millis
from frontend.timeline import line
from frontend.wording import plural
from groups.core.model.events import EventKind

E = EventKind

WHAT: Mapping[str, tuple[str, tuple[str, ...], tuple[EventKind, ...] | None]] = {
    "offsets": ("Offsets", ("event",), (E.OFFSETS_RESET, E.OFFSETS_RESTORED, E.OFFSETS_DELETED, E.OFFSETS_EXPIRED)),
    "plans": ("Plans made", ("plan",), None),
    "members": ("Members and holds", ("event",), (E.MEMBER_REMOVED, E.GROUP_HELD, E.HOLD_RELEASED)),
    "settings": ("Settings and pins", ("event",), (E.CONFIG_CHANGED, E.RETENTION_PINNED, E.RETENTION_UNPINNED)),
    "deletions": ("Deleted groups and topics", ("event", "topic"), (E.GROUP_DELETED,)),
    "runs": ("Spark runs", ("run",), None),
    "admin": ("Admin: accounts, tokens, schedules", ("admin",), None),
}
"""What can be filtered by: label, sources, kinds of events."""

ADMIN = {"admin_1": "Added", "admin_2": "Changed", "admin_3": "Deleted"}

NOT_RECORDED = (
    "Topics that were created or got more partitions or other labels: the topic has its present state only.",
    "Tokens that were created or deleted over the API or by a command: the list of tokens has those that exist.",
    "Who deleted a group without committed offsets: the deletion itself is listed.",
    "The address that a change came from. The access log of the server has it, with the token, by time.",
    "Settings of the service, which are read from the environment or a file when it starts.",
)
"""Acts that leave no record, or not all of one."""


@dataclass(frozen=True, slots=True)
class AuditLine:
    """An act as the page shows it. `subject`: what it is about, with its page; `more`: what shows it in full."""

    act: Act
    at: Millis
    who: str
    tone: str
    text: str
    reason: str
    subject: str
    subject_kind: str
    plan_id: str
    run_id: str

    @property
    def html_id(self) -> str:
        """The id of its line."""
        return f"{self.act.source}-{self.act.key}"


def audit_line(act: Act) -> AuditLine:
    """An act in words."""
    tone, text, kind = _words(act)
    detail = act.detail
    return AuditLine(
        act,
        act.at,
        act.who,
        tone,
        text,
        str(detail.get("reason") or ""),
        act.name,
        kind,
        str(detail.get("plan_id") or ""),
        str(detail.get("run_id") or ""),
    )


def _words(act: Act) -> tuple[str, str, str]:
    """Tone, text, and the kind of thing that it is about."""
    if act.source == "event":
        # The name of who did it has a column of its own.
        detail = {name: value for name, value in act.detail.items() if name != "principal"}
        said = line(Event(0, act.at, act.act, act.generation_id, act.member_id, detail))
        return said.tone, "Hold ended: members can join" if act.act == E.HOLD_RELEASED.value else said.text, "group"
    if act.source == "plan":
        count = plural(int(act.detail.get("partitions") or 0), "partition")
        return "idle", f"Plan made: {act.detail.get('strategy', '')}, {count}; nothing is changed yet", "group"
    if act.source == "run":
        return "busy", f"Run started: {RUN_KINDS.get(act.name, (act.name, ''))[0]}", "run"
    if act.source == "topic":
        return "bad", "Topic deleted with its watermarks and offsets", "topic"
    model = str(act.detail.get("model") or "row")
    text = f"{ADMIN.get(act.act, 'Changed')} {model}{_changed(str(act.detail.get('change') or ''))}"
    return ("bad" if act.act == "admin_3" else "warn"), text, model


def _changed(message: str) -> str:
    """Which fields a change of the admin was about, as far as its log says."""
    try:
        entries = json.loads(message)
        fields = [str(name) for entry in entries for name in entry.get("changed", {}).get("fields", ())]
    except (ValueError, AttributeError, TypeError):
        return f": {message}" if message else ""
    return f": {', '.join(fields)}" if fields else ""
