"""Columns and saved views of the list of groups: what is stored of a view, and which URL it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth import get_user_model
from django.db import transaction
from django.http import QueryDict
from django.urls import reverse

from frontend.models import SavedView
from frontend.ui.reads import now_ms
from frontend.ui.table import Column, orders
from groups.readmodel import GroupSort

S = GroupSort


USUAL_SORT = S.SEVERITY
"""Of a list whose address names no order."""
GROUP = Column("group", "Group", S.GROUP_ID, S.GROUP_ID_DESCENDING, orders="Name|Name, from Z to A")
"""Always there: it names the line."""
COLUMNS = (
    Column("state", "State", S.STATE, S.STATE_DESCENDING, orders="State|State, from Z to A"),
    Column(
        "since", "In state since", S.STATE_SINCE, S.STATE_SINCE_DESCENDING,
        orders="Longest in its state|Shortest in its state",
    ),
    Column("type", "Type", title="The protocol, and what assigns partitions"),
    Column(
        "members", "Members", S.MEMBERS_DESCENDING, S.MEMBERS, number=True, orders="Most members|Fewest members"
    ),
    Column(
        "partitions", "Partitions", S.PARTITIONS_DESCENDING, S.PARTITIONS, number=True, usual=False,
        orders="Most partitions|Fewest partitions", title="Owned, or with a committed offset, as of the last sample",
    ),
    Column(
        "generation", "Generation", S.GENERATION_DESCENDING, S.GENERATION, number=True, usual=False,
        orders="Highest generation|Lowest generation", title="Of a consumer group: the group epoch",
    ),
    Column(
        "lag", "Lag", S.LAG_DESCENDING, S.LAG, number=True, orders="Largest lag|Smallest lag",
        title="Records behind the ends of the logs, as of the last sample",
    ),
    Column(
        "time_lag", "Time lag", S.TIME_LAG_DESCENDING, S.TIME_LAG, number=True,
        orders="Largest time lag|Smallest time lag",
        title="The next record to read was written so long before the last sample",
    ),
    Column("topics", "Topics"),
    Column(
        "owner", "Owner", S.OWNER, S.OWNER_DESCENDING, orders="Owner|Owner, from Z to A", usual=False,
        title="The label owner of the group, else its team",
    ),
    Column("labels", "Labels", title="Of the group, not of its topics", usual=False),
    Column(
        "coordinator", "Coordinator", S.COORDINATOR, S.COORDINATOR_DESCENDING, usual=False,
        orders="Coordinator|Coordinator, from Z to A", title="The node that runs the group's timers",
    ),
    Column(
        "changed", "Last change", S.UPDATED, S.UPDATED_ASCENDING, number=True, orders="Latest change|Earliest change"
    ),
)  # fmt: skip
NAMES = tuple(column.name for column in COLUMNS)
USUAL = tuple(column.name for column in COLUMNS if column.usual)

SORTS: Sequence[tuple[GroupSort, str]] = [(S.SEVERITY, "Worst first"), *orders((GROUP, *COLUMNS))]
"""Every order, and what it is called."""
ALIASES = {"changed": S.UPDATED}
"""Values that older links have."""


def shown_columns(written: str) -> tuple[str, ...] | None:
    """The columns that an address names, `state.lag`, in the order of the table; None if one of them does not exist.

    Nothing: the usual ones. `none`: only the group.
    """
    if not written:
        return USUAL
    names = [] if written == "none" else written.split(".")
    return tuple(name for name in NAMES if name in names) if set(names) <= set(NAMES) else None


def written_columns(names: Sequence[str]) -> str | None:
    """The same for an address; None for the usual columns."""
    return None if tuple(names) == USUAL else ".".join(names) or "none"


MOST_VIEWS = 50
LONGEST_NAME = 60
LONGEST_QUERY = 4_000
SEVERAL = ("state", "verdict")
"""Parameters that may be given more than once."""
PARAMETERS = (
    "q", "regex", "type", *SEVERAL, "topic", "member", "client", "host", "assignor", "coordinator", "min_lag",
    "min_time_lag", "label", "sort", "columns",
)  # fmt: skip
"""What a view consists of: every parameter of the list except its page."""


class ViewRefused(Exception):
    """A view was not saved; the message says why. `status`: of the HTTP response."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


def written_view(given: QueryDict) -> str:
    """The query string of a view, always the same for the same list; "" for all groups as they are shown at first."""
    pairs = []
    for key in PARAMETERS:
        values = sorted(set(given.getlist(key))) if key in SEVERAL else [given.get(key, "").strip()]
        pairs += [(key, _plain(key, value)) for value in values]
    return urlencode([(key, value) for key, value in pairs if value])


def _plain(key: str, value: str) -> str:
    """A value as the links of the list write it; "" if it is the default."""
    if key == "sort":
        sort = ALIASES[value].value if value in ALIASES else value
        return "" if sort == USUAL_SORT.value else sort
    if key == "columns":
        names = shown_columns(value)
        return value if names is None else written_columns(names) or ""
    return value


def list_url(query: str) -> str:
    """The address of the list with a view."""
    return f"{reverse('frontend:groups')}?{query}" if query else reverse("frontend:groups")


def saved_views_of(owner: Any) -> list[SavedView]:
    """All views of an account, by name."""
    return list(SavedView.objects.filter(owner=owner))


def save_view(owner: Any, name: str, query: str) -> SavedView:
    """Save a view. `query`: as `written_view` writes it. Raises ViewRefused."""
    name = " ".join(name.split())
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        raise ViewRefused(f"Name: 1 to {LONGEST_NAME} characters that can be read.", 400)
    if len(query) > LONGEST_QUERY:
        raise ViewRefused(f"The filters are too long to be saved: at most {LONGEST_QUERY:,} characters.", 400)
    with transaction.atomic():
        # Two requests at once would otherwise both find room for one more, or the name free.
        get_user_model().objects.select_for_update().get(pk=owner.pk)
        names = {view.name for view in saved_views_of(owner)}
        if name in names:
            raise ViewRefused(f"Name: you have a view {name} already; choose another name, or delete that view.", 409)
        if len(names) >= MOST_VIEWS:
            raise ViewRefused(f"You have {MOST_VIEWS} saved views, which is the most; delete one first.", 409)
        return SavedView.objects.create(owner=owner, name=name, query=query, created_at=now_ms())


def delete_view(owner: Any, written: str) -> str | None:
    """Delete a view of an account by its number; returns its name, None if the account has no such view."""
    if not (written.isascii() and written.isdigit() and len(written) <= 18):
        return None
    view = SavedView.objects.filter(owner=owner, pk=int(written)).first()
    if view is None:
        return None
    view.delete()
    return view.name
