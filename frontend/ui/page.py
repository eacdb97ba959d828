"""What all pages share: access, navigation, parsing and building of URLs, and rendering the page or its panel."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Concatenate, ParamSpec, cast
from urllib.parse import quote, urlencode

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import DisallowedHost
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_http_methods, require_safe

from frontend.ui import zones
from frontend.ui.events import lines
from frontend.ui.outage import unavailable, wants_json
from frontend.ui.reads import Wanted, events_of, names_of
from frontend.ui.rows import Names
from frontend.ui.states import State
from frontend.ui.viewer import Forbidden, Viewer, tokens_missing, viewer_of
from frontend.ui.wording import iso
from kcoord.access import read_only
from kcoord.access.rights import Resource
from kcoord.database.paging import MAX_CURSOR_LENGTH, Key, decode_cursor, encode_cursor
from kcoord.door.http import problem
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current


@dataclass(frozen=True, slots=True)
class Entry:
    """A page of the navigation: its name, the name of its route, and who may see it; None: everybody."""

    label: str
    route: str
    shown: Callable[[Viewer], bool] | None = None

    @property
    def section(self) -> str:
        """What pages call themselves that belong to this one, so that it is marked while they are shown."""
        return self.label.lower()


NAVIGATION = {
    "Work": (
        Entry("Overview", "frontend:home"),
        Entry("Timeline", "frontend:timeline"),
        Entry("Groups", "frontend:groups"),
        Entry("Topics", "frontend:topics"),
        Entry("Compare", "frontend:compare"),
        Entry("Alerts", "frontend:alerts"),
    ),
    "Change": (Entry("Plans", "frontend:plans"), Entry("Audit", "frontend:audit")),
    "Service": (
        Entry("Health", "frontend:health", lambda viewer: viewer.sees_cluster),
        Entry("Nodes", "frontend:nodes", lambda viewer: viewer.sees_cluster),
        Entry("Archive", "frontend:archive", lambda viewer: viewer.sees_cluster),
    ),
    "Access": (
        Entry("Tokens", "frontend:tokens", lambda viewer: not tokens_missing(viewer)),
        Entry("Access", "frontend:access"),
    ),
}
"""By the name of each group. Whoever may use the admin gets a link to it at the end of the last one."""


def navigation_of(viewer: Viewer) -> dict[str, list[Entry]]:
    """The groups of `NAVIGATION` with the pages that a person may see; those without any are left out."""
    shown = {
        name: [link for link in links if link.shown is None or link.shown(viewer)] for name, links in NAVIGATION.items()
    }
    return {name: links for name, links in shown.items() if links}


@dataclass(frozen=True, slots=True)
class Link:
    """One of several to choose from. `chosen`: it is shown; `count` None: nothing to count, or not known here."""

    label: str
    url: str
    chosen: bool = False
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a live page refreshes on its own, and the minimum time between two refreshes."""

    every_ms: int
    gap_ms: int


def group_url(group_id: str) -> str:
    """The URL of a group's page."""
    return f"{reverse('frontend:groups')}/{quote(group_id, safe='')}"


def member_url(group_id: str, member_id: str) -> str:
    """The URL of a member's page. An id may contain anything, also a slash."""
    return f"{group_url(group_id)}/members/{quote(member_id, safe='')}"


@dataclass(frozen=True, slots=True)
class Choice:
    """A state or a verdict to filter by. `least`: not all were counted."""

    state: State
    count: int
    chosen: bool
    least: bool = False


P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]

LONGEST_TEXT = 255
FIELDS = {"from": "From", "to": "Before"}
"""What pages call the parameters that are instants."""


class BadAddress(Exception):
    """The URL of a page asks for something impossible; the message says what, and the remedy."""


class Absent(Exception):
    """There is nothing to show, as a sentence. `back`: the list to go on with."""

    def __init__(self, title: str, text: str, back: str = "groups", status: int = 404) -> None:
        super().__init__(text)
        self.title, self.back, self.status = title, back, status


def is_panel(request: HttpRequest) -> bool:
    """The page is already open and only refreshes its panel."""
    return request.headers.get("HX-Request") == "true"


def page(view: View[P]) -> View[P]:
    """A page for signed-in users that shows something; its forms, if it has any, are sent to others.

    It shows what `/v1` would show to the same person (`frontend.ui.viewer`). Every page of a group, whose URL has a
    `group_id`, answers here for a group that the person may not describe, as for one that does not exist. A panel that
    is fetched after the session ended sends the whole page to the sign-in. While pages are read-only, what would change
    something is refused here.
    """
    return require_safe(_page(view))


def form_page(act: str = "request", **forms: str) -> Callable[[View[P]], View[P]]:
    """As `page`, for a page that also takes what its own forms send (POST).

    `act`: what its form does, by `kcoord.access.audit.acts`; `forms`: what those do whose field `act` has this value.
    """

    def taking_forms(view: View[P]) -> View[P]:
        shown = require_http_methods(["GET", "POST"])(_page(view))
        shown.audit, shown.audit_by_form = act, forms  # type: ignore[attr-defined]
        return shown

    return taking_forms


def _page(view: View[P]) -> View[P]:
    @functools.wraps(view)
    def wrapped(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        response: HttpResponseBase
        timezone.activate(zones.zone_of(request))
        try:
            if not request.user.is_authenticated:
                return _to_sign_in(request)
            current.identify(request.user.get_username(), account_id=request.user.pk)
            if refused := read_only.refusal(request):
                raise Forbidden(refused)
            _refuse_nul(request)
            group_id = kwargs.get("group_id")
            if (elsewhere := _fixed(request)) is not None:
                response = elsewhere
            elif isinstance(group_id, str) and ("\0" in group_id or not viewer_of(request).sees_group(group_id)):
                response = missing(request, group_id)
            else:
                response = view(request, *args, **kwargs)
        except BadAddress as error:
            response = message(request, 400, "Bad request", str(error))
        except Absent as error:
            response = message(request, error.status, error.title, str(error), error.back)
        except Forbidden as error:
            response = message(request, 403, "Not allowed", str(error))
        except ProtocolError as error:
            status = error.error.value.status
            response = (
                unavailable(request, error)
                if status == 503
                else message(request, status, "Temporarily unavailable", error.detail)
            )
        except (OperationalError, InterfaceError) as error:
            response = unavailable(request, error)
        finally:
            timezone.deactivate()
        # The same URL answers with the page or its panel, and neither may outlive the session in a cache.
        response.headers["Cache-Control"] = "no-store"
        response.headers["Vary"] = "HX-Request, Cookie"
        return response

    return cast(View[P], wrapped)


def _refuse_nul(request: HttpRequest) -> None:
    """Raise BadAddress for a parameter or field with the one character that Postgres cannot store in a text."""
    for name, values in (*request.GET.lists(), *request.POST.lists()):
        if any("\0" in value for value in (name, *values)):
            raise BadAddress(f"{name}: contains the NUL character, which cannot be stored.")


def _to_sign_in(request: HttpRequest) -> HttpResponse:
    if not is_panel(request):
        return redirect_to_login(request.get_full_path())
    response = HttpResponse(status=401)
    response.headers["HX-Redirect"] = f"{reverse('frontend:login')}?{urlencode({'next': request.get_full_path()})}"
    return response


def show(
    request: HttpRequest,
    name: str,
    context: Mapping[str, Any],
    *,
    section: str,
    status: int = 200,
    title: str = "",
    script: str = "",
) -> HttpResponse:
    """Render `name`: only the panel for a page that is already open, else the whole page.

    `title`: of a page that is nothing but its panel, and the name of a `script` besides those of all pages; others have
    a template of their own. Pages of a group need not say which it is: its id is in their URL.
    """
    panel = f"frontend/{name}_panel.html"
    template = panel if is_panel(request) else "frontend/ui/page.html" if title else f"frontend/{name}.html"
    group_id = request.resolver_match.kwargs.get("group_id") if request.resolver_match else None
    of_group = {"group_id": group_id, "group_url": group_url(group_id)} if group_id else {}
    page_of = {"panel": panel, "page_title": title, "script": f"frontend/{script}.js" if script else ""}
    framed = {**of_group, **context, **header(request, section), **page_of}
    return render(request, template, framed, status=status)


def header(request: HttpRequest, section: str) -> dict[str, Any]:
    """What the header shows to somebody who has signed in. `section`: the page of the navigation that is marked."""
    return {"section": section, "account": request.user, "menu": menu_of(viewer_of(request))}


def menu_of(viewer: Viewer) -> Mapping[str, object]:
    """Which pages the person may see that not everybody may, and why nobody may change anything, "" if they may.

    `all_groups`, `all_topics`: the person may see all of them, so an empty list means that none exist. `sees_groups`:
    also describe all groups, and not only their names in lists. `pages`: the navigation.
    """
    return {
        "all_groups": viewer.listed.unlimited,
        "all_topics": viewer.topics.unlimited,
        "sees_groups": viewer.groups.unlimited,
        "cluster": viewer.sees_cluster,
        "read_only": read_only.reason(),
        "pages": navigation_of(viewer),
    }


def missing(request: HttpRequest, group_id: str) -> HttpResponse:
    """The page of a group that does not exist, or not for this person; with its last events, if any can be seen."""
    viewer, found = viewer_of(request), None
    if "\0" not in group_id:
        found = bridge.call(lambda runtime: events_of(runtime.db, viewer, group_id, Wanted(), limit=10))
    context = {
        "now": found.now if found else 0,
        "events": lines(found.events) if found else (),
        "stream": f"{reverse('frontend:live')}?group={quote(group_id, safe='')}",
        "pace": {"every_ms": 15_000, "gap_ms": 1_000},
    }
    # A page that is already open gets its panel with status 200: htmx would not show one with an error status.
    return show(
        request,
        "ui/missing",
        context,
        section="groups",
        status=200 if is_panel(request) else 404,
        title="No such group",
    )


def member_names(viewer: Viewer, group_id: str, member_ids: Collection[str | None]) -> Names:
    """What members of a group are called, as far as it is known and the person may see it."""
    wanted = [member_id for member_id in member_ids if member_id]

    async def read(runtime: Runtime) -> Names:
        async with runtime.db.snapshot() as connection:
            return await names_of(runtime.db, connection, viewer, group_id, wanted)

    return bridge.call(read) if wanted else {}


def attached(response: HttpResponseBase, name: str, kind: str, *, at: str = "") -> HttpResponseBase:
    """A response that is saved as a file: its name is `name` as far as file systems take it, `at` and `kind`."""
    safe = "".join(mark if mark.isalnum() or mark in "-_." else "_" for mark in name)[:100]
    filename = f"{safe}-{at}.{kind}" if at else f"{safe}.{kind}"
    response.headers["Content-Disposition"] = content_disposition_header(as_attachment=True, filename=filename) or ""
    return response


def message(request: HttpRequest, status: int, title: str, text: str, back: str = "groups") -> HttpResponse:
    """A page with a single message, and a link to the list `back`.

    Somebody who has signed in keeps the navigation, except during an outage of the database, which it has to be read
    from.
    """
    shown = {"title": title, "text": text, "back": f"frontend:{back}", "back_text": back.capitalize()}
    if is_panel(request):
        return render(request, "frontend/ui/message_panel.html", shown, status=status)
    try:
        signed_in = status != 503 and hasattr(request, "user") and request.user.is_authenticated
        framed = {**header(request, back), "frame": "frontend/ui/app.html"} if signed_in else {}
    except (OperationalError, InterfaceError, ProtocolError):
        framed = {}
    return render(
        request, "frontend/ui/message.html", {"frame": "frontend/ui/plain.html", **framed, **shown}, status=status
    )


def text(request: HttpRequest, name: str, longest: int = LONGEST_TEXT) -> str:
    """A text parameter of the URL. Raises BadAddress for one that no name can contain."""
    value = request.GET.get(name, "").strip()
    if len(value) > longest:
        raise BadAddress(f"{name}: at most {longest} characters.")
    return value


def choice(request: HttpRequest, name: str, allowed: Mapping[str, object] | tuple[str, ...]) -> str:
    """One of several allowed values from the URL, "" if absent. Raises BadAddress."""
    value = request.GET.get(name, "")
    if value and value not in allowed:
        raise BadAddress(f"{name}: {value!r} is not one of {', '.join(allowed)}.")
    return value


def choices_of(request: HttpRequest, name: str, allowed: Collection[str]) -> tuple[str, ...]:
    """Several of the allowed values from the URL, each once. Raises BadAddress."""
    values = tuple(dict.fromkeys(request.GET.getlist(name)))
    for value in values:
        if value not in allowed:
            raise BadAddress(f"{name}: {value!r} is not one of {', '.join(allowed)}.")
    return values


def instant(request: HttpRequest, name: str) -> int | None:
    """An instant in the URL, in the zone of the page: `2025-11-21 03:30`. Raises BadAddress."""
    written = text(request, name)
    if not written:
        return None
    try:
        return zones.read(written)
    except ValueError as error:
        raise BadAddress(f"{FIELDS.get(name, name)}: {error}.") from None


def _fixed(request: HttpRequest) -> HttpResponse | None:
    """A redirect to the same page with its span in UTC, if the URL has it in the zone of the page.

    A form sends what its reader's clock shows; a link that is passed on must mean the same to everybody. None: nothing
    to do; the view says what is wrong with an instant that cannot be read.
    """
    if zones.current() is UTC or request.method != "GET":
        return None
    clocks = [name for name in FIELDS if not request.GET.get(name, "").strip().endswith("Z")]
    try:
        found = {name: at for name in clocks if (at := instant(request, name)) is not None}
    except BadAddress:
        return None
    return redirect(address(request, **{name: iso(at) for name, at in found.items()})) if found else None


def number(request: HttpRequest, name: str) -> int | None:
    """A whole number from the URL, None if absent. Raises BadAddress."""
    written = text(request, name).replace(",", "")
    if not written:
        return None
    if not written.isascii() or not written.isdigit() or len(written) > 18:
        raise BadAddress(f"{name}: {written!r} is not a number.")
    return int(written)


def edges(request: HttpRequest) -> tuple[str | None, str | None]:
    """The cursors that a page of a list begins after, or ends before; at most one. Raises BadAddress."""
    after, before = text(request, "after", MAX_CURSOR_LENGTH), text(request, "before", MAX_CURSOR_LENGTH)
    if after and before:
        raise BadAddress("after, before: use only one of them.")
    return after or None, before or None


def cursor(request: HttpRequest, name: str, *kinds: type[Key]) -> tuple[Key, ...] | None:
    """A key at the edge of a page. Raises BadAddress for text that is not a key of this list."""
    value = request.GET.get(name, "")
    if not value:
        return None
    with cursor_given(name):
        return decode_cursor(value, *kinds)


@contextmanager
def cursor_given(name: str | None = "after") -> Iterator[None]:
    """A cursor that is refused is a BadAddress."""
    try:
        yield
    except ProtocolError as error:
        if error.error is not Error.INVALID_REQUEST:
            raise
        raise BadAddress(f"{name}: no such page of the list; start again from the first.") from error


def around(request: HttpRequest, previous: str | None, following: str | None) -> dict[str, str | None]:
    """The URLs of the pages before and after one, by their cursors; None without."""
    return {
        "previous_url": address(request, before=previous, after=None) if previous else None,
        "next_url": address(request, after=following, before=None) if following else None,
    }


def access_link(viewer: Viewer, resource: Resource, name: str) -> tuple[str, str]:
    """Text and URL of the page about who may do what with something, which shows most people their own rights alone."""
    label = "Who may do what" if viewer.principal.administers else "What you may do"
    return label, f"{reverse('frontend:access')}?{urlencode({'resource': resource.value, 'name': name})}"


def address(request: HttpRequest, **changes: str | tuple[str, ...] | None) -> str:
    """The URL of this page with other parameter values; None removes one."""
    query = {key: request.GET.getlist(key) for key in request.GET}
    for key, value in changes.items():
        query[key] = list(value) if isinstance(value, tuple) else [value] if value else []
    written = urlencode([(key, value) for key, values in query.items() for value in values if value])
    return f"{request.path}?{written}" if written else request.path


def cursor_address(request: HttpRequest, name: str, *key: Key) -> str:
    """The URL of the next (`after`) or previous (`before`) page."""
    other = "before" if name == "after" else "after"
    return address(request, **{name: encode_cursor(*key), other: None})


WRONG_HOST = (
    "the host name of the request is not one that this server answers to; "
    "add it to KCOORD_ALLOWED_HOSTS, names separated by commas, and start the server again"
)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400, and how to change that for a host name that is not allowed."""
    reason = WRONG_HOST if isinstance(exception, DisallowedHost) else ""
    if wants_json(request):
        content = problem.body(Error.INVALID_REQUEST, reason or "the request is not well formed", status=400)
        return HttpResponse(problem.encoded(content), content_type=problem.MEDIA_TYPE, status=400)
    shown = f"{reason[:1].upper()}{reason[1:]}." if reason else ""
    return HttpResponse(render_to_string("400.html", {"reason": shown}), status=400)


def not_allowed(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403, with the reason if there is one."""
    reason = str(exception) or "This account may not see this page. An administrator can change that."
    return message(request, 403, "Not allowed", reason)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404 of an address that no page has."""
    return message(request, 404, "No such page", "There is nothing at this address.")
