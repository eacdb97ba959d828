"""The page of the search; the box of every page fetches the same results from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from frontend.pages.search import reads
from frontend.pages.search.verbs import Asked, address, asked, lacking
from frontend.ui.allowed import tokens_missing
from frontend.ui.page import group_url, member_url, page, show, text
from frontend.ui.reads import now_ms
from frontend.ui.states import is_held, state
from frontend.ui.viewer import Viewer, viewer_of
from frontend.ui.wording import client_at, elided, plural, short_id
from kcoord.models import ApiToken
from kcoord.process import bridge
from kcoord.process.runtime import Runtime

BOX = "Kcoord-Search"
"""The header with which the box asks for results alone."""


@page
def search_page(request: HttpRequest) -> HttpResponse:
    """What has the words of `q` in its name, and what can be done."""
    q = text(request, "q")
    results = search(viewer_of(request), q) if q else Results([])
    context = {"q": q, "results": results}
    if request.headers.get(BOX):
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
    """All that was found. `unfinished`: what could not be searched in time, in words."""

    sections: Sequence[Section]
    unfinished: str = ""

    @property
    def count(self) -> int:
        """How many results are shown."""
        return sum(len(section.results) for section in self.sections)

    @property
    def is_cut(self) -> bool:
        """Whether a section has as many results as are shown of one kind, so that there may be more."""
        return any(len(section.results) >= reads.SHOWN for section in self.sections)


def search(viewer: Viewer, q: str) -> Results:
    """Everything with `q` in its name that the person may see. Raises ProtocolError if the database cannot be used.

    What the person may not do comes last among the verbs, with the permission that is missing.
    """
    verbs = sorted(asked(q), key=lambda one: bool(lacking(one.verb, viewer)))[:VERBS_SHOWN]

    async def read(runtime: Runtime) -> tuple[reads.Hits, dict[str, Sequence[reads.GroupHit]]]:
        abouts = dict.fromkeys(one.about for one in verbs if one.about)
        about = {name: await reads.groups_like(runtime.db, viewer, name, GROUPS_OF_VERB) for name in abouts}
        return await reads.find(runtime.db, viewer, q), about

    hits, about = bridge.call(read)
    sections = [
        Section("verbs", "Actions and pages", [result for one in verbs for result in _verb(one, viewer, about)]),
        Section("groups", "Groups", [_group(hit) for hit in hits.groups], _list_of(q, hits.groups)),
        Section("labels", "Labels of groups", [_label(hit) for hit in hits.labels]),
        *_member_sections(q, hits.members),
        Section("topics", "Topics", [_topic(hit) for hit in hits.topics], _topics_of(q, hits.topics)),
        Section("plans", "Offset plans", [_plan(hit) for hit in hits.plans]),
        Section("tokens", "Tokens", [] if tokens_missing(viewer) else _tokens(q)),
    ]
    unfinished = " and ".join(NAMES[name] for name in hits.unfinished)
    return Results([section for section in sections if section.results], unfinished)


def _verb(one: Asked, viewer: Viewer, groups: dict[str, Sequence[reads.GroupHit]]) -> list[Result]:
    verb = one.verb
    if verb.control:
        return [Result(verb.label, "#", control=verb.control)]
    if verb.tail is None:
        where = address(verb)
        return [Result(verb.label, where, "page", missing=lacking(verb, viewer))] if where else []
    if not one.about:
        fill = f"{verb.label} "
        note = "then the name of a group"
        return [Result(f"{verb.label} …", _search_url(fill), note, fill=fill, missing=lacking(verb, viewer))]
    return [
        Result(
            f"{verb.label} {hit.group_id}",
            group_url(hit.group_id) + verb.tail,
            _state(hit),
            missing=lacking(verb, viewer, hit.group_id),
        )
        for hit in groups[one.about]
    ]


def _search_url(q: str) -> str:
    return f"{reverse('frontend:search')}?{urlencode({'q': q})}"


def _state(hit: reads.GroupHit) -> str:
    return state(hit.state, held=is_held(hit.held_until, now_ms())).label


def _group(hit: reads.GroupHit) -> Result:
    return Result(hit.group_id, group_url(hit.group_id), f"{_state(hit)}, {hit.type}")


def _list_of(q: str, shown: Sequence[object]) -> str:
    return f"{reverse('frontend:groups')}?{urlencode({'q': q})}" if len(shown) >= reads.SHOWN else ""


def _label(hit: reads.LabelHit) -> Result:
    """Leads to the groups that have it, or to the only one."""
    text = f"{hit.name}={hit.value}"
    if hit.groups == 1:
        return Result(text, group_url(hit.group_id), f"label of {elided(hit.group_id)}")
    where = f"{reverse('frontend:groups')}?{urlencode({'label': text})}"
    return Result(text, where, f"label of {plural(hit.groups, 'group')}")


def _topic(hit: reads.TopicHit) -> Result:
    where = reverse("frontend:topic", kwargs={"name": hit.name})
    return Result(hit.name, where, plural(hit.partitions, "partition"))


def _topics_of(q: str, shown: Sequence[object]) -> str:
    return f"{reverse('frontend:topics')}?{urlencode({'q': q})}" if len(shown) >= reads.SHOWN else ""


def _member_sections(q: str, members: Sequence[reads.MemberHit]) -> list[Section]:
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
    more = "+" if len(members) >= reads.MEMBERS_READ else ""
    return [
        Section("clients", "Client ids", _grouped("client", clients, more)),
        Section("hosts", "Hosts", _grouped("host", hosts, more)),
        Section("members", "Members", [_member(hit) for hit in ids[: reads.SHOWN]]),
    ]


def _grouped(name: str, found: dict[str, set[str]], more: str) -> list[Result]:
    return [
        Result(
            value,
            f"{reverse('frontend:groups')}?{urlencode({name: value})}",
            f"in {next(iter(groups))}" if len(groups) == 1 and not more else f"in {len(groups)}{more} groups",
        )
        for value, groups in sorted(found.items())[: reads.SHOWN]
    ]


def _member(hit: reads.MemberHit) -> Result:
    """Client and host first: people know these, and the ids only tell members of one client apart."""
    short = short_id(hit.member_id)
    ids = short if hit.instance_id is None else f"{hit.instance_id} ({short})"
    name, where = client_at(hit.client_id, hit.client_host), elided(hit.group_id)
    note = f"{ids}, in {where}" if name else f"in {where}"
    return Result(name or ids, member_url(hit.group_id, hit.member_id), note)


def _plan(hit: reads.PlanHit) -> Result:
    where = f"{group_url(hit.group_name)}/plans/{hit.id}"
    reason = f": {hit.reason}" if hit.reason else ""
    return Result(f"{hit.group_name} {hit.strategy}{reason}", where, f"{hit.state}, by {hit.created_by}")


def _tokens(q: str) -> list[Result]:
    found = ApiToken.objects.filter(name__icontains=q).order_by("name")[: reads.SHOWN]
    return [Result(token.name, reverse("frontend:token", args=[token.pk]), f"{token.prefix}…") for token in found]
