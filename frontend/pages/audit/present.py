"""Records of the audit as text. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontend.ui import zones
from frontend.ui.rows import Millis
from frontend.ui.shown import Hidden, Shown, Unknown, shown
from frontend.ui.wording import number, plural
from kcoord.audit.acts import ACTS
from kcoord.audit.encoding import Record
from kcoord.audit.reading import Sight
from kcoord.resets.instants import LATEST_MS

WHAT: Mapping[str, tuple[str, str]] = {
    "offsets": ("Offsets and plans", "offsets. share-offsets."),
    "items": ("Items and dead letters", "items. dead-letters."),
    "groups": ("Groups, members and holds", "group. member."),
    "topics": ("Topics", "topic."),
    "alerts": ("Alerts and their rules", "alert."),
    "tokens": ("Tokens, rules and quotas", "token. rule. quota."),
    "accounts": ("Accounts and sessions", "account. role. session."),
    "runs": ("Spark runs", "run."),
    "admin": ("Rows of the admin", "row."),
    "requests": ("Other requests that were refused", "request"),
    "audit": ("The audit itself", "audit."),
}
"""What can be filtered by: label, and beginnings of acts."""

DOORS = {
    "http": "API",
    "dashboard": "dashboard",
    "admin": "admin",
    "wire": "Kafka client",
    "command": "command",
    "service": "service",
}
KINDS = {"token": "token", "local": "user of the machine", "node": "node", "unknown": "not signed in", "person": ""}

DESTROYS = frozenset({"delete", "remove", "unpin", "trim"})
INSTANTS = frozenset({"at", "until"})
"""Names of values in ms since 1970, besides those that end with `_at`."""
MOST_CHANGES = 6
MOST_CHARACTERS = 90

NOT_RECORDED = (
    "What members do: joining, heartbeats, commits, leaving. The events and commit history of a group have that.",
    "Reading, unless it was refused.",
    "Watermarks that producers and probes report.",
    "Lists of groups that people save for themselves.",
    "Settings of the service, which are read from the environment or a file when it starts.",
)
"""What leaves no record."""

HIDDEN_VALUES = Hidden("It may name topics; to see it, your account needs describe on every topic.")
NO_VALUES = Unknown("It changed no value")


@dataclass(frozen=True, slots=True)
class AuditLine:
    """A record as the page shows it. `changes`: what was and what is, by name; `more`: how many are left out.

    `without`: what stands in the place of changes if there are none to show.
    """

    record: Record
    tone: str
    text: str
    who: str
    whence: str
    changes: Sequence[tuple[str, str, str]]
    more: int
    plan_id: str
    without: Shown[str]
    reason: Shown[str]

    @property
    def at(self) -> Millis:
        """When."""
        return self.record.at


def acts_of(what: str) -> list[str]:
    """The acts that a filter stands for."""
    beginnings = tuple(WHAT[what][1].split())
    return [act for act in ACTS if act.startswith(beginnings)]


def audit_line(record: Record, sight: Sight) -> AuditLine:
    """A record in words, with what its reader may see."""
    hidden = hidden_values(record, sight)
    before, after = _values(record.before), _values(record.after)
    changes = list(_changes(before, after))
    text = ACTS.get(record.act, record.act)
    if record.result == "refused":
        text = f"{'Refused' if record.act == 'request' else f'{text}: refused'}, {record.error}"
    if record.count > 1:
        text = f"{text}, {plural(record.count, 'time')}"
    whence = " · ".join(part for part in (DOORS.get(record.door, record.door), record.address) if part)
    plan_id = str(after.get("plan_id") or before.get("plan_id") or "")
    return AuditLine(
        record,
        _tone(record),
        text,
        record.principal or KINDS.get(record.kind, record.kind),
        whence,
        changes[:MOST_CHANGES],
        max(len(changes) - MOST_CHANGES, 0),
        plan_id,
        hidden or NO_VALUES,
        shown(record.reason or None, why="No reason was given", hidden=hidden),
    )


def hidden_values(record: Record, sight: Sight) -> Hidden | None:
    """Why values and reason of a record are not shown; None: they are."""
    return HIDDEN_VALUES if sight.hides_values(record) else None


def _tone(record: Record) -> str:
    if record.result == "refused":
        return "warn"
    return "bad" if record.act.rpartition(".")[2] in DESTROYS else "idle"


def _values(written: str | None) -> Mapping[str, Any]:
    found = None if written is None else json.loads(written)
    return found if isinstance(found, dict) else {}


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Name, old and new value of what differs; "" for a value that is not there."""
    for name in dict.fromkeys((*before, *after)):
        if name != "plan_id" and (before.get(name) != after.get(name) or name not in before or name not in after):
            was, present = _short(name, before.get(name)), _short(name, after.get(name))
            if was or present:
                yield _spoken(name), was, present


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _short(name: str, value: object) -> str:
    text = "" if value is None else _text(name, value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def _text(name: str, value: object) -> str:
    """A value as people write it: instants and numbers that can be read, parts that are not set left out."""
    if isinstance(value, dict):
        return ", ".join(f"{_spoken(key)} {_text(key, part)}" for key, part in value.items() if part is not None)
    if isinstance(value, list):
        return ", ".join(_text(name, part) for part in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        is_instant = (name in INSTANTS or name.endswith("_at")) and 0 <= value <= LATEST_MS
        return zones.minute(value) if is_instant else number(value)
    return str(value)
