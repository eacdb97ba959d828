"""The tabs of a group's page, and what each reads: all of it is in the URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from frontend.allowed import PLAN, missing
from frontend.group.rows import LAST_PAGE, PAGE_ROWS, Pages, Table
from frontend.queries import GroupPage, Limits
from frontend.viewer import viewer_of
from frontend.views.page import BadAddress, address, choice, number, text

TABS: Mapping[str, str] = {
    "overview": "Overview",
    "members": "Members",
    "offsets": "Partitions",
}
"""The tabs of the page of the group itself."""
SHARE_PAGES: Mapping[str, str] = {"items": "Items", "dead-letters": "Dead letters"}
PAST_PAGES: Mapping[str, str] = {
    "history": "History",
    "rebalances": "Rebalances",
    "commits": "Commits",
    "events": "Events",
}
"""They outlive the group, and keep the span of time from one to the next."""
SETTING_PAGES: Mapping[str, str] = {"config": "Configuration", "reset-offsets": "Reset"}
BELOW: Mapping[str, str] = {"offset-plan": "reset-offsets"}
"""Pages that a tab leads to."""
MEMBER_SORTS: Mapping[str, str] = {
    "": "As they joined",
    "client": "Client and host",
    "partitions": "Most partitions",
    "lag": "Furthest behind",
    "heartbeat": "Oldest heartbeat",
    "session": "Session ends first",
}
OFFSET_SORTS: Mapping[str, str] = {
    "": "Topic and partition",
    "lag": "Furthest behind",
    "committed": "Oldest commit",
}
ONLY: Mapping[str, str] = {
    "": "All partitions",
    "unowned": "Without an owner",
    "lagging": "With records to read",
    "never": "Nothing committed",
}


@dataclass(frozen=True, slots=True)
class Tab:
    """A link of the navigation. `count` None: nothing to count, or it is not known on this page."""

    label: str
    url: str
    chosen: bool
    count: int | None = None


def tab_of(request: HttpRequest) -> str:
    """The tab that the URL asks for. Raises BadAddress."""
    return choice(request, "tab", TABS) or "overview"


def tabs(request: HttpRequest, group_id: str, kind: str | None, counts: Mapping[str, int]) -> list[Tab]:
    """The navigation of all pages of a group, on one of them.

    `kind`: the group's type; None: there is no such group now, and only its past is shown. `counts`: what is known, by
    tab. The search for topics is kept among the tabs of the group itself. Actions say why the person may not reset.
    """
    match = request.resolver_match
    page = match.url_name if match else ""
    here = BELOW.get(page or "", page)
    links = []
    if kind is not None:
        chosen = tab_of(request) if here == "group" else ""
        of_group = tab_urls(request, group_id, keep=here == "group")
        links = [Tab(TABS[name], url, name == chosen, counts.get(name)) for name, url in of_group.items()]
    pages = {**(SHARE_PAGES if kind == "share" else {}), **PAST_PAGES, **(SETTING_PAGES if kind is not None else {})}
    if missing(viewer_of(request), PLAN, group_id):
        pages.pop("reset-offsets", None)
    span = {name: request.GET.get(name, "") for name in ("from", "to")} if here in PAST_PAGES else {}
    for name, label in pages.items():
        url = reverse(f"frontend:{name}", args=[group_id])
        links.append(Tab(label, _with(url, span if name in PAST_PAGES else {}), name == here, counts.get(name)))
    return links


def tab_urls(request: HttpRequest, group_id: str, *, keep: bool = True) -> dict[str, str]:
    """Where the tabs of the group itself are; `keep`: with the search for topics."""
    url = reverse("frontend:group", args=[group_id])
    kept = {"topic": request.GET.get("topic", "")} if keep else {}
    return {name: _with(url, {"tab": _in_url(name), **kept}) for name in TABS}


def _in_url(tab: str) -> str:
    return "" if tab == "overview" else tab


def _with(path: str, query: Mapping[str, str]) -> str:
    written = urlencode({name: value for name, value in query.items() if value})
    return f"{path}?{written}" if written else path


def limits_of(request: HttpRequest, tab: str, limits: Limits) -> Limits:
    """What a tab reads: its own table, and of the others only what the head of the page says. Raises BadAddress."""
    if tab == "overview":
        return replace(limits, offsets=1)
    narrow = replace(limits, cells=1, offsets=1)
    if tab == "members":
        return replace(narrow, members=PAGE_ROWS, member_table=_member_table(request))
    if tab == "offsets":
        return replace(narrow, offsets=PAGE_ROWS, offset_table=_offset_table(request))
    return narrow


def _member_table(request: HttpRequest) -> Table:
    return Table(q=text(request, "q"), sort=choice(request, "sort", MEMBER_SORTS), page=_page(request))


def _offset_table(request: HttpRequest) -> Table:
    return Table(
        sort=choice(request, "sort", OFFSET_SORTS),
        page=_page(request),
        only=choice(request, "only", ONLY),
        member_id=text(request, "member"),
    )


def _page(request: HttpRequest) -> int:
    found = number(request, "page")
    if found is None:
        return 1
    if not 1 <= found <= LAST_PAGE:
        raise BadAddress(f"page: from 1 to {LAST_PAGE}; what lies beyond is found with the filter, or in the CSV file.")
    return found


def pages(request: HttpRequest, table: Table, shown: int, matching: int) -> Pages:
    """Where a table is and what leads on."""
    more = matching > table.skip + shown and table.page < LAST_PAGE
    return Pages(
        first=table.skip + 1 if shown else 0,
        last=table.skip + shown,
        matching=matching,
        previous_url=address(request, page=str(table.page - 1) if table.page > 2 else None) if table.page > 1 else "",
        next_url=address(request, page=str(table.page + 1)) if more else "",
    )


def context_of(request: HttpRequest, tab: str, limits: Limits, page: GroupPage, partitions: int) -> dict[str, Any]:
    """What the tabs add to the context of the page. `partitions`: how many the group has, for the tab of that name."""
    context: dict[str, Any] = {
        "tab": tab,
        "tab_urls": tab_urls(request, page.header.group_id),
        "tab_counts": {"members": page.counts.members, "offsets": partitions},
    }
    if tab == "members":
        table, shown = limits.member_table, len(page.members)
        context |= {"table": table, "sorts": MEMBER_SORTS.items()}
        context["pages"] = pages(request, table, shown, page.member_table.matching)
    elif tab == "offsets":
        table, shown, matching = limits.offset_table, len(page.offsets), page.offset_table.matching
        if matching is None:
            matching = shown if limits.q and shown < limits.offsets else page.totals.partitions
        context |= {"table": table, "sorts": OFFSET_SORTS.items(), "onlies": ONLY.items()}
        context["pages"] = pages(request, table, shown, matching)
    return context
