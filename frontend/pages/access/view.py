"""Who may what: everybody's rights for those who administer everything, and one's own for the others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend.pages.access.words import KIND_WORDS, AccessLine, Wanted, access_line, all_rules, csv_row, every, held
from frontend.ui import commands as as_command
from frontend.ui.page import BadAddress, address, choice, cursor, cursor_address, page, show, text
from frontend.ui.reads import now_ms
from frontend.ui.table import MOST_ROWS, csv_file
from frontend.ui.viewer import Action, viewer_of
from kcoord.access import read_only
from kcoord.access.rights import CLUSTER_NAME
from kcoord.access.store import RuleFilter

RESOURCES = {
    "group": "Consumer group",
    "topic": "Topic",
    "transactional-id": "Transactional id",
    "cluster": "The service",
}
FILE_HEAD = (
    "kind", "name", "state", "through_group", "effect", "operation", "resource", "pattern", "resource_name", "in_words",
)  # fmt: skip


@page
def access_page(request: HttpRequest) -> HttpResponse:
    """A page of people, groups of people and tokens with what they may do."""
    wanted, now = wanted_access(request), now_ms()
    found, more = held(wanted, now)
    about, everybody = wanted.rules, wanted.own is None
    filters = {"resource": about.resource or "", "name": text(request, "name")}
    context = {
        "now": now,
        "lines": [(line, _url(request, line)) for line in (access_line(one, wanted) for one in found)],
        "everybody": everybody,
        "q": wanted.q,
        "kind": wanted.kind,
        "kinds": [("", "Everybody"), ("User", "People"), ("Group", "Groups of people"), ("Token", "Tokens")],
        **filters,
        "resources": [("", "Anything"), *RESOURCES.items()],
        "about": _about(about),
        "one": wanted.about_one,
        "filtered": bool(wanted.q or wanted.kind or any(filters.values())),
        "clear_url": request.path,
        "first_url": address(request, after=None) if wanted.after else None,
        "next_url": cursor_address(request, "after", *found[-1].key) if more else None,
        "create": Action("Grant", reverse("frontend:grant"), read_only.reason()),
        "commands": [as_command.list_rules(as_command.service_url(request), about)] if everybody else [],
    }
    return show(request, "pages/access/access", context, section="access", title="Access")


@page
def access_csv(request: HttpRequest) -> HttpResponseBase:
    """Every rule with who has it, with the filters of the page; those without rules have a line without one."""
    wanted, now = wanted_access(request), now_ms()

    def lines() -> Iterator[Sequence[object]]:
        for one in every(wanted, now):
            empty = True
            for source in one.sources:
                for rule in all_rules(source, one.holder, wanted.rules):
                    yield csv_row(one, source, rule)
                    empty = False
            if empty:
                yield csv_row(one, one.sources[0], None)

    return csv_file("access", FILE_HEAD, itertools.islice(lines(), MOST_ROWS))


def wanted_access(request: HttpRequest) -> Wanted:
    """What the URL asks for, as far as its reader may see it. Raises BadAddress."""
    resource, name = choice(request, "resource", RESOURCES), text(request, "name")
    if resource == "cluster":
        name = CLUSTER_NAME
    about = RuleFilter(resource=resource or ("group" if name else None), name=name or None, pattern="match")
    key = cursor(request, "after", str, str)
    if key is not None and key[0] not in KIND_WORDS:
        raise BadAddress("after: no such page of the list; start again from the first.")
    principal = viewer_of(request).principal
    return Wanted(
        about,
        choice(request, "kind", tuple(KIND_WORDS)),
        text(request, "q"),
        None if principal.administers else principal.user_id,
        None if key is None else (str(key[0]), str(key[1])),
    )


def _about(about: RuleFilter) -> str:
    if about.resource is None:
        return ""
    if about.resource == "cluster":
        return "the service"
    noun = about.resource.replace("-", " ")
    return f"{noun} {about.name}" if about.name else f"{noun}s"


def _url(request: HttpRequest, line: AccessLine) -> str:
    """Where the rights of a holder are changed, "" if its reader has no such page."""
    if not viewer_of(request).principal.administers:
        return ""
    if line.held.holder.kind == "Token":
        return reverse("frontend:token", args=[line.held.pk])
    user = request.user
    name = {"User": "user", "Group": "group"}[line.held.holder.kind]
    if not (user.is_active and getattr(user, "is_staff", False) and user.has_perm(f"auth.change_{name}")):
        return ""
    return reverse(f"admin:auth_{name}_change", args=[line.held.pk])
