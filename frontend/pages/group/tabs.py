"""What each tab of a group's page reads and shows: all of it is in the URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.http import HttpRequest

from frontend.pages.group.reads import GroupPage, Limits
from frontend.pages.group.tables import LAST_PAGE, PAGE_ROWS, Pages, Table
from frontend.ui.page import BadAddress, address, choice, number, text
from frontend.ui.tabs import tab_urls

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
