"""The tabs of all pages of a group."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from frontend.ui.page import Link, choice
from frontend.ui.viewer import PLAN, missing, viewer_of

TABS: Mapping[str, str] = {"overview": "Overview", "members": "Members", "offsets": "Partitions"}
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


def tab_of(request: HttpRequest) -> str:
    """The tab that the URL asks for. Raises BadAddress."""
    return choice(request, "tab", TABS) or "overview"


def tabs(request: HttpRequest, group_id: str, kind: str | None, counts: Mapping[str, int]) -> list[Link]:
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
        links = [Link(TABS[name], url, name == chosen, counts.get(name)) for name, url in of_group.items()]
    pages = {**(SHARE_PAGES if kind == "share" else {}), **PAST_PAGES, **(SETTING_PAGES if kind is not None else {})}
    if missing(viewer_of(request), PLAN, group_id):
        pages.pop("reset-offsets", None)
    span = {name: request.GET.get(name, "") for name in ("from", "to")} if here in PAST_PAGES else {}
    for name, label in pages.items():
        url = reverse(f"frontend:{name}", args=[group_id])
        links.append(Link(label, _with(url, span if name in PAST_PAGES else {}), name == here, counts.get(name)))
    return links


def tab_urls(request: HttpRequest, group_id: str, *, keep: bool = True) -> dict[str, str]:
    """Where the tabs of the group itself are; `keep`: with the search for topics."""
    url = reverse("frontend:group", args=[group_id])
    kept = {"topic": request.GET.get("topic", "")} if keep else {}
    return {name: _with(url, {"tab": ("" if name == "overview" else name), **kept}) for name in TABS}


def _with(path: str, query: Mapping[str, str]) -> str:
    written = urlencode({name: value for name, value in query.items() if value})
    return f"{path}?{written}" if written else path
