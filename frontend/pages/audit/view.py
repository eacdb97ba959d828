"""The audit: who changed what, in pages and as a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import NoReverseMatch, reverse

from frontend.ui import zones
from frontend.ui.page import address, choice, cursor, cursor_address, group_url, instant, page, show, text
from frontend.ui.rows import Millis
from frontend.ui.shown import Hidden, Shown, Unknown, cell, shown
from frontend.ui.table import all_rows, csv_of
from frontend.ui.viewer import viewer_of
from frontend.ui.wording import number, plural
from kcoord.access.audit.acts import ACTS
from kcoord.access.audit.encoding import Record
from kcoord.access.audit.reading import AuditFilter, Sight, read_records
from kcoord.database.paging import MAX_LIMIT
from kcoord.database.pool import Database
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.resets.instants import LATEST_MS

PAGE_SIZE = 50


async def audit(
    db: Database, sight: Sight, wanted: AuditFilter, limit: int = PAGE_SIZE
) -> tuple[Millis, Sequence[Record], int | None]:
    """When it is, a page of records, newest first, that their reader may see, and before which the next page begins.

    Raises ProtocolError COORDINATOR_NOT_AVAILABLE.
    """
    async with db.snapshot() as connection:
        records, following = await read_records(db, connection, sight, wanted, limit)
        return await db.now_ms(connection), records, following


RESULTS = {"done": "Done", "refused": "Refused"}
AROUND_MS = 60_000
DELETED = frozenset({"token.delete", "topic.delete"})


@page
def audit_page(request: HttpRequest) -> HttpResponse:
    """A page of the records that match the filters of the URL, newest first."""
    wanted, sight = wanted_records(request), sight_of(request)
    now, found, following = bridge.call(lambda runtime: audit(runtime.db, sight, wanted))
    what, result = request.GET.get("what", ""), request.GET.get("result", "")
    filters = {"who": wanted.who or "", "name": wanted.name or "", "from": wanted.since, "to": wanted.until}
    context = {
        "now": now,
        "everything": sight.everything,
        "lines": [(line, *urls(line)) for line in (audit_line(one, sight) for one in found)],
        "filters": filters,
        "what": what,
        "whats": [("", "Everything"), *((name, label) for name, (label, _) in WHAT.items())],
        "result": result,
        "results": [("", "Done and refused"), *RESULTS.items()],
        "filtered": bool(what or result or any(filters.values())),
        "clear_url": request.path,
        "not_recorded": NOT_RECORDED,
        "newest_url": address(request, before=None) if wanted.before else None,
        "older_url": cursor_address(request, "before", following) if following else None,
    }
    return show(request, "pages/audit/audit", context, section="audit", title="Audit")


def sight_of(request: HttpRequest) -> Sight:
    """What the account may see."""
    return Sight.of(viewer_of(request).principal)


def wanted_records(request: HttpRequest) -> AuditFilter:
    """What the URL asks for. Raises BadAddress."""
    what = choice(request, "what", WHAT)
    key = cursor(request, "before", int)
    return AuditFilter(
        acts=acts_of(what) if what else None,
        result=choice(request, "result", RESULTS) or None,
        who=text(request, "who") or None,
        name=text(request, "name") or None,
        since=instant(request, "from"),
        until=instant(request, "to"),
        before=None if key is None else int(key[0]),
    )


def urls(line: AuditLine) -> tuple[str, str, str]:
    """The page of what a record is about, that of its plan, and the changes of offsets around it; "" without."""
    record = line.record
    if not record.name or record.act in DELETED or record.result == "refused":
        return "", "", ""
    try:
        if record.resource == "group":
            here = group_url(record.name)
            if line.plan_id:
                return here, f"{here}/plans/{line.plan_id}", ""
            return here, "", _commits(here, line.at) if record.act.startswith("offsets.") else ""
        if record.resource == "topic":
            return reverse("frontend:topic", kwargs={"name": record.name}), "", ""
        if record.resource == "run":
            return reverse("frontend:run", kwargs={"run_id": record.name}), "", ""
    except NoReverseMatch:  # a name that no page can have
        return "", "", ""
    return "", "", ""


def _commits(group: str, at: int) -> str:
    """The changes of offsets within a minute of an instant (ms)."""
    around = {"from": zones.wall(at - AROUND_MS), "to": zones.wall(at + AROUND_MS)}
    return f"{group}/commits?{urlencode({'kind': 'changes', **around})}"


@page
def audit_csv(request: HttpRequest) -> HttpResponseBase:
    """What people and tokens changed, with the filters of the page."""
    wanted, sight = replace(wanted_records(request), before=None), sight_of(request)

    async def read(runtime: Runtime, before: int | None) -> tuple[Sequence[Record], int | None]:
        _, found, following = await audit(runtime.db, sight, replace(wanted, before=before), MAX_LIMIT)
        return found, following

    def seen(name: str) -> Callable[[Record], object]:
        return lambda one: cell(shown(getattr(one, name) or None, hidden=hidden_values(one, sight)))

    columns = """
        seq @at kind who=principal door address request_id act resource name before after reason result error count
    """
    shown_if_seen = {name: seen(name) for name in ("before", "after", "reason")}
    return csv_of("audit", columns, all_rows(read), **shown_if_seen)


WHAT: Mapping[str, tuple[str, str]] = {
    "offsets": ("Offsets and plans", "offsets. share-offsets."),
    "items": ("Items and dead letters", "items. dead-letters."),
    "groups": ("Groups, members and holds", "group. member."),
    "topics": ("Topics", "topic."),
    "alerts": ("Alerts, rules and receivers", "alert. receiver."),
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
