"""The search: its page, from which the box of every page fetches the same results.

Each part has a time limit of its own and a bound on the rows it looks at.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from psycopg import errors as pg

from frontend.ui.page import group_url, member_url, page, show, text
from frontend.ui.reads import now_ms
from frontend.ui.rows import Millis
from frontend.ui.services import Found, elsewhere
from frontend.ui.states import is_held, state
from frontend.ui.viewer import (
    ALERT_RULE,
    CREATE_GROUP,
    DELETE_GROUP,
    HOLD,
    PLAN,
    SEE_CLUSTER,
    Need,
    Viewer,
    missing,
    tokens_missing,
    viewer_of,
)
from frontend.ui.wording import client_at, elided, plural, short_id
from groups.readmodel import GroupSummary
from kcoord.access import read_only
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.models import ApiToken
from kcoord.process import bridge
from kcoord.process.runtime import Runtime

Q = queries("frontend")

T = TypeVar("T")
Part = Callable[[Connection], Awaitable[Sequence[Any]]]
"""Reads one kind of results."""

MOST_ROWS = 500_000
"""Rows of one table that are looked at for a part of a name."""
SHOWN = 6
"""Results of each kind."""
MEMBERS_READ = 60
"""Members that are read to name client ids and hosts."""
PART_SECONDS, ALL_SECONDS = 1.5, 3.0
"""Time limits of one part of the search and of all."""


@dataclass(frozen=True, slots=True)
class GroupHit:
    """A group."""

    group_id: str
    state: str
    type: str
    held_until: Millis | None = None

    def __str__(self) -> str:
        return self.group_id


@dataclass(frozen=True, slots=True)
class LabelHit:
    """A label of groups. `groups`: how many have it; `group_id`: one of them."""

    name: str
    value: str
    groups: int
    group_id: str


@dataclass(frozen=True, slots=True)
class TopicHit:
    """A topic of the catalogue."""

    name: str
    partitions: int

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class NameHit:
    """What a field can be completed with, and nothing else of it."""

    name: str

    def __str__(self) -> str:
        return self.name


COMPLETED: Mapping[str, tuple[type[Any], Sequence[str]]] = {
    "groups": (GroupHit, (Q.groups_beginning, Q.groups_containing)),
    "topics": (TopicHit, (Q.topics_beginning, Q.topics_containing)),
    **dict.fromkeys(("labels", "label-names"), (NameHit, (Q.labels_completed,))),
    **dict.fromkeys(("members", "member-ids", "clients", "hosts"), (NameHit, (Q.members_completed,))),
    **dict.fromkeys(("people", "principals", "holders"), (NameHit, (Q.principals_completed,))),
}
"""What fields complete: the class, and the statements that find it by its name, the next one if there are few."""


@dataclass(frozen=True, slots=True)
class MemberHit:
    """A member of a group that has the words in one of its ids or its host."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str


@dataclass(frozen=True, slots=True)
class PlanHit:
    """An offset plan."""

    id: uuid.UUID
    group_name: str
    strategy: str
    state: str
    reason: str
    created_at: Millis
    created_by: str


@dataclass(frozen=True, slots=True)
class Hits:
    """Results of each kind. `unfinished`: the kinds whose search took too long."""

    groups: Sequence[GroupHit] = ()
    labels: Sequence[LabelHit] = ()
    topics: Sequence[TopicHit] = ()
    members: Sequence[MemberHit] = ()
    plans: Sequence[PlanHit] = ()
    unfinished: Sequence[str] = ()


async def find(db: Database, viewer: Viewer, q: str) -> Hits:
    """What has `q` in its name, ignoring case, and can be seen; names that begin with it come first.

    Raises ProtocolError COORDINATOR_NOT_AVAILABLE.
    """
    deadline = time.monotonic() + ALL_SECONDS
    seen = {"q": q, **viewer.with_groups()}

    def having(kind: type[Any], statement: str, limit: int = SHOWN) -> Part:
        return lambda connection: db.records(connection, kind, statement, {**seen, "most": MOST_ROWS, "limit": limit})

    parts: Mapping[str, Part] = {
        "groups": partial(_names, db, "groups", seen),
        "labels": having(LabelHit, Q.labels_containing),
        "topics": partial(_names, db, "topics", seen),
        "members": having(MemberHit, Q.members_containing, MEMBERS_READ),
        "plans": having(PlanHit, Q.plans_containing),
    }
    read = {name: await _within(db, deadline, part) for name, part in parts.items()}
    found = {name: hits for name, hits in read.items() if hits is not None}
    return Hits(**found, unfinished=tuple(name for name, hits in read.items() if hits is None))


async def names_like(db: Database, viewer: Viewer, kind: str, q: str, group_id: str = "") -> Sequence[Any]:
    """A few of a kind in `COMPLETED` that have `q` in their names; none if that takes too long.

    `group_id`: whose members they are, "" for those of all groups. Only those who manage tokens are offered accounts,
    tokens and groups of people.
    """
    administers = viewer.principal.administers
    seen = {"q": q, "kind": kind, "group_id": group_id, "administers": administers, **viewer.with_groups()}
    return await _within(db, time.monotonic() + PART_SECONDS, partial(_names, db, kind, seen)) or ()


async def _within(db: Database, deadline: float, read: Callable[[Connection], Awaitable[T]]) -> T | None:
    """What a part finds; None if it takes too long."""
    left = min(deadline - time.monotonic(), PART_SECONDS)
    if left <= 0.01:
        return None
    async with db.snapshot() as connection:
        try:
            async with connection.transaction():
                await db.rows(connection, Q.limit_search, {"limit": f"{int(left * 1_000)}ms"})
                return await read(connection)
        except pg.QueryCanceled:
            return None


async def _names(db: Database, kind: str, seen: Mapping[str, Any], connection: Connection) -> Sequence[Any]:
    """The first whose names begin with `q`, and if these are few, those whose names contain it.

    `seen`: `q`, and the parameters of the viewer.
    """
    made, statements = COMPLETED[kind]
    parameters = {**seen, "end": seen["q"] + "\U0010ffff", "most": MOST_ROWS, "limit": 2 * SHOWN}
    found: dict[str, Any] = {}
    for statement in statements:
        if len(found) < SHOWN:
            found |= {str(hit): hit for hit in await db.records(connection, made, statement, parameters)}
    return [found[name] for name in sorted(found, key=lambda name: (not name.startswith(seen["q"]), name))][:SHOWN]


BOX = "Kcoord-Search"
"""The header with which the box asks for results alone, and a field (`COMPLETED`) for names as JSON."""


@page
def search_page(request: HttpRequest) -> HttpResponse:
    """What has the words of `q` in its name, and what can be done."""
    q, asking = text(request, "q"), request.headers.get(BOX, "")
    if asking in COMPLETED:
        viewer, group_id = viewer_of(request), text(request, "group")
        found = bridge.call(lambda runtime: names_like(runtime.db, viewer, asking, q, group_id))
        return JsonResponse([str(hit) for hit in found], safe=False)
    results = search(viewer_of(request), q) if q else Results([])
    context = {"q": q, "results": results}
    if asking:
        return render(request, "frontend/pages/search/options.html", context)
    return show(request, "pages/search/search", context, section="search", title=f"{q} · Search" if q else "Search")


VERBS_SHOWN, GROUPS_OF_VERB = 5, 3
NAMES = {
    "groups": "groups",
    "labels": "labels of groups",
    "topics": "topics",
    "members": "members, client ids and hosts",
    "plans": "plans",
}


@dataclass(frozen=True, slots=True)
class Result:
    """Something that was found. `note`: what else is known of it; `control`: the id of a control of the header.

    `fill`: what to write into the box instead of going anywhere. `missing`: why the person may not do it, "" if
    allowed.
    """

    text: str
    url: str
    note: str = ""
    control: str = ""
    fill: str = ""
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Results of one kind. `more_url`: where all of them are, "" if these are all or there is no such page."""

    name: str
    title: str
    results: Sequence[Result]
    more_url: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """All that was found. `unfinished`: what could not be searched in time, `unread`: what could not be read at all."""

    sections: Sequence[Section]
    unfinished: str = ""
    unread: str = ""

    @property
    def count(self) -> int:
        """How many results are shown."""
        return sum(len(section.results) for section in self.sections)

    @property
    def is_cut(self) -> bool:
        """Whether a section has as many results as are shown of one kind, so that there may be more."""
        return any(len(section.results) >= SHOWN for section in self.sections)


def search(viewer: Viewer, q: str) -> Results:
    """Everything with `q` in its name that the person may see. Raises ProtocolError if the database cannot be used.

    What the person may not do comes last among the verbs, with the permission that is missing.
    """
    verbs = sorted(asked(q), key=lambda one: bool(lacking(one.verb, viewer)))[:VERBS_SHOWN]

    async def read(runtime: Runtime) -> tuple[Hits, dict[str, Sequence[GroupHit]]]:
        abouts = dict.fromkeys(one.about for one in verbs if one.about)
        about = {name: await names_like(runtime.db, viewer, "groups", name) for name in abouts}
        return await find(runtime.db, viewer, q), about

    hits, about = bridge.call(read)
    there: Sequence[Found] = elsewhere(viewer, {"q": q, "limit": SHOWN}).get("elsewhere", ())
    groups = [_group(hit) for hit in hits.groups] + [_group(hit, one) for one in there for hit in one.groups]
    groups.sort(key=lambda result: (not result.text.startswith(q), result.text))
    sections = [
        Section("verbs", "Actions and pages", [result for one in verbs for result in _verb(one, viewer, about)]),
        Section("groups", "Groups", groups[:SHOWN], _all_of("frontend:groups", q, groups)),
        Section("labels", "Labels of groups", [_label(hit) for hit in hits.labels]),
        *_member_sections(q, hits.members),
        Section("topics", "Topics", [_topic(hit) for hit in hits.topics], _all_of("frontend:topics", q, hits.topics)),
        Section("plans", "Offset plans", [_plan(hit) for hit in hits.plans]),
        Section("tokens", "Tokens", [] if tokens_missing(viewer) else _tokens(q)),
    ]
    unfinished = " and ".join(NAMES[name] for name in hits.unfinished)
    unread = [f"{one.service} could not be read: {one.failed}." for one in there if one.failed]
    return Results([section for section in sections if section.results], unfinished, " ".join(unread))


def _verb(one: Asked, viewer: Viewer, groups: dict[str, Sequence[GroupHit]]) -> list[Result]:
    verb = one.verb
    if verb.control:
        return [Result(verb.label, "#", control=verb.control)]
    if verb.tail is None:
        return [Result(verb.label, reverse(verb.route), "page", missing=lacking(verb, viewer))]
    if not one.about:
        fill, note = f"{verb.label} ", "then the name of a group"
        url = f"{reverse('frontend:search')}?{urlencode({'q': fill})}"
        return [Result(f"{verb.label} …", url, note, fill=fill, missing=lacking(verb, viewer))]
    about = groups[one.about][:GROUPS_OF_VERB]
    shown = [(f"{verb.label} {hit.group_id}", group_url(hit.group_id) + verb.tail, hit) for hit in about]
    return [Result(text, url, _state(hit), missing=lacking(verb, viewer, hit.group_id)) for text, url, hit in shown]


def _state(hit: GroupHit | GroupSummary) -> str:
    return state(hit.state, held=is_held(hit.held_until, now_ms())).label


def _group(hit: GroupHit | GroupSummary, there: Found | None = None) -> Result:
    where = there.group_url(hit.group_id) if there else group_url(hit.group_id)
    return Result(hit.group_id, where, f"{_state(hit)}, {hit.type}{f', in {there.service}' if there else ''}")


def _all_of(route: str, q: str, shown: Sequence[object]) -> str:
    return f"{reverse(route)}?{urlencode({'q': q})}" if len(shown) >= SHOWN else ""


def _label(hit: LabelHit) -> Result:
    """Leads to the groups that have it, or to the only one."""
    text = f"{hit.name}={hit.value}"
    if hit.groups == 1:
        return Result(text, group_url(hit.group_id), f"label of {elided(hit.group_id)}")
    where = f"{reverse('frontend:groups')}?{urlencode({'label': text})}"
    return Result(text, where, f"label of {plural(hit.groups, 'group')}")


def _topic(hit: TopicHit) -> Result:
    where = reverse("frontend:topic", kwargs={"name": hit.name})
    return Result(hit.name, where, plural(hit.partitions, "partition"))


def _member_sections(q: str, members: Sequence[MemberHit]) -> list[Section]:
    """Client ids and hosts, each once, and members. Each leads to the groups or the group that has it."""
    clients: dict[str, set[str]] = {}
    hosts: dict[str, set[str]] = {}
    ids = []
    for hit in members:
        if q.lower() in hit.client_id.lower():
            clients.setdefault(hit.client_id, set()).add(hit.group_id)
        if q.lower() in hit.client_host.lower():
            hosts.setdefault(hit.client_host, set()).add(hit.group_id)
        if q.lower() in hit.member_id.lower() or q.lower() in (hit.instance_id or "").lower():
            ids.append(hit)
    more = "+" if len(members) >= MEMBERS_READ else ""
    return [
        Section("clients", "Client ids", _grouped("client", clients, more)),
        Section("hosts", "Hosts", _grouped("host", hosts, more)),
        Section("members", "Members", [_member(hit) for hit in ids[:SHOWN]]),
    ]


def _grouped(name: str, found: dict[str, set[str]], more: str) -> list[Result]:
    return [
        Result(
            value,
            f"{reverse('frontend:groups')}?{urlencode({name: value})}",
            f"in {next(iter(groups))}" if len(groups) == 1 and not more else f"in {len(groups)}{more} groups",
        )
        for value, groups in sorted(found.items())[:SHOWN]
    ]


def _member(hit: MemberHit) -> Result:
    """Client and host first: people know these, and the ids only tell members of one client apart."""
    short = short_id(hit.member_id)
    ids = short if hit.instance_id is None else f"{hit.instance_id} ({short})"
    name, where = client_at(hit.client_id, hit.client_host), elided(hit.group_id)
    note = f"{ids}, in {where}" if name else f"in {where}"
    return Result(name or ids, member_url(hit.group_id, hit.member_id), note)


def _plan(hit: PlanHit) -> Result:
    where = f"{group_url(hit.group_name)}/plans/{hit.id}"
    reason = f": {hit.reason}" if hit.reason else ""
    return Result(f"{hit.group_name} {hit.strategy}{reason}", where, f"{hit.state}, by {hit.created_by}")


def _tokens(q: str) -> list[Result]:
    found = ApiToken.objects.filter(name__icontains=q).order_by("name")[:SHOWN]
    return [Result(token.name, reverse("frontend:token", args=[token.pk]), f"{token.prefix}…") for token in found]


SMALL_WORDS = frozenset({"of", "for", "the", "a", "an", "to", "in", "on", "group"})


@dataclass(frozen=True, slots=True)
class Verb:
    """Something to do. `words`: what it may be called; `route`: the name of its page.

    `tail` is added to the address of a group: the verb is then about one. `control`: the id of a control of the header
    instead of a page. `tokens`: it is for those who manage tokens. `changes`: it is not only to look, as a `need` says
    of itself.
    """

    label: str
    words: str
    route: str = ""
    need: Need | None = None
    tokens: bool = False
    tail: str | None = None
    control: str = ""
    changes: bool = False


VERBS = (
    Verb("Overview", "overview home attention verdicts stuck health", "frontend:home"),
    Verb("Timeline", "timeline what happened incidents rebalances", "frontend:timeline"),
    Verb("Groups", "groups list", "frontend:groups"),
    Verb("Topics", "topics catalogue watermarks", "frontend:topics"),
    Verb("Archive", "archive runs spark reconcile", "frontend:archive", SEE_CLUSTER),
    Verb("Nodes", "nodes coordinators health partitions", "frontend:nodes", SEE_CLUSTER),
    Verb("Plans", "plans resets", "frontend:plans"),
    Verb("Alerts", "alerts rules receivers notifications muted", "frontend:alerts"),
    Verb("Audit", "audit changes who", "frontend:audit"),
    Verb("Health", "health readiness celery postgres", "frontend:health", SEE_CLUSTER),
    Verb("Compare groups", "compare groups lag", "frontend:compare"),
    Verb("Tokens", "tokens access rules", "frontend:tokens", tokens=True),
    Verb("Grant rights", "grant access rules rights permissions", "frontend:grant", tokens=True, changes=True),
    Verb("Access", "access rights rules roles permissions who may", "frontend:access"),
    Verb("Create a token", "create new add token", "frontend:create-token", tokens=True, changes=True),
    Verb("Create a group", "create new add group", "frontend:create-group", CREATE_GROUP),
    Verb("New alert rule", "new create add alert rule notify", "frontend:create-alert-rule", ALERT_RULE),
    Verb("Change your password", "change password account", "frontend:password", changes=True),
    Verb("API documentation", "api documentation docs openapi", "frontend:docs"),
    Verb("Time zone: UTC or local", "time zone utc local clock", control="zone"),
    Verb("Colours: light, dark or those of the system", "theme colours dark light mode", control="theme"),
    Verb("Reset offsets of", "reset offsets plan rewind", need=PLAN, tail="/reset"),
    Verb("Hold", "hold keep out", need=HOLD, tail="/hold"),
    Verb("End the hold of", "end hold release", need=HOLD, tail="/hold"),
    Verb("Delete group", "delete remove", need=DELETE_GROUP, tail="/delete"),
    Verb("Configuration of", "configuration config settings overrides", tail="/config"),
    Verb("States of", "states state machine diagram transitions", tail="/states"),
    Verb("Pins of", "pins pin retention", tail="/pins"),
    Verb("Simulate the assignment of", "simulate assignment members partitions", tail="/simulate"),
    Verb("Rebalances of", "rebalances history episodes", tail="/rebalances"),
    Verb("Events of", "events", tail="/events"),
    Verb("Commit history of", "commits commit history journal", tail="/commits"),
    Verb("Snapshot of", "snapshot ticket markdown", tail="/snapshot.md"),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A verb that was found. `about`: the words left over, which name a group; "" if nothing is left."""

    verb: Verb
    about: str


def asked(q: str) -> list[Asked]:
    """The verbs that `q` may mean: all its words begin words of the verb, or those before the name of a group."""
    written = q.split()
    found = []
    for verb in VERBS:
        used, rest = _taken(verb, written)
        if verb.tail is None:
            if used and not [word for word in rest if word.lower() not in SMALL_WORDS]:
                found.append(Asked(verb, ""))
        elif used:
            names = [word for word in rest if word.lower() not in SMALL_WORDS]
            if len(names) <= 1:
                found.append(Asked(verb, names[0] if names else ""))
    return found


def _taken(verb: Verb, written: Sequence[str]) -> tuple[int, Sequence[str]]:
    """How many words at the beginning belong to the verb, and the others."""
    words = verb.words.split()
    used = 0
    for place, word in enumerate(written):
        lowered = word.lower()
        if any(known.startswith(lowered) for known in words) and (len(lowered) > 1 or len(written) == 1):
            used += 1
        elif lowered not in SMALL_WORDS or not used:
            return used, written[place:]
    return used, ()


def lacking(verb: Verb, viewer: Viewer, group_id: str | None = None) -> str:
    """Why a person may not do it, to this group or to any, as a sentence; "" if allowed."""
    lacks = tokens_missing(viewer) if verb.tokens else missing(viewer, verb.need, group_id)
    return lacks or (read_only.reason() if verb.changes else "")
