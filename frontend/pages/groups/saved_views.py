"""The saved views of the list of groups: save the present one, look at all, delete one."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse

from frontend.models import SavedView
from frontend.pages.groups import saved
from frontend.pages.groups.view import filter_words, wanted_columns, wanted_groups
from frontend.ui.form import Refusal, done
from frontend.ui.page import BadAddress, form_page, show
from frontend.ui.reads import now_ms
from frontend.ui.wording import plural
from groups.readmodel import GroupFilter


@form_page()
def saved_views(request: HttpRequest) -> HttpResponse:
    """The views of the account that has signed in; nobody else's can be seen or deleted."""
    refusal, act = Refusal(), request.POST.get("act", "")
    if request.method == "POST" and act == "save":
        try:
            view = _save(request)
            return done(request, f"Saved the view {view.name}.", saved.list_url(view.query))
        except saved.ViewRefused as error:
            refusal = Refusal(str(error), error.status)
    elif request.method == "POST" and act == "delete":
        name = saved.delete_view(request.user, request.POST.get("view", ""))
        if name is not None:
            return done(request, f"Deleted the view {name}.", reverse("frontend:views"))
        refusal = Refusal("You have no such view; it may have been deleted.", 404)
    elif request.method == "POST":
        refusal = Refusal("act: must be save or delete.", 400)
    query = request.POST.get("query", "")
    context = {
        "now": now_ms(),
        "lines": [
            (view, saved.list_url(view.query), _words(view.query)) for view in saved.saved_views_of(request.user)
        ],
        "refusal": refusal,
        "again": act == "save",
        "given": request.POST,
        "given_words": _words(query) if act == "save" else (),
        "longest_name": saved.LONGEST_NAME,
        "most": saved.MOST_VIEWS,
    }
    return show(request, "pages/groups/views", context, section="groups", status=refusal.status, title="Saved views")


def _save(request: HttpRequest) -> SavedView:
    probe = _list_request(request.POST.get("query", ""))
    try:
        wanted_groups(probe), wanted_columns(probe)
    except BadAddress as error:
        raise saved.ViewRefused(str(error), 400) from error
    return saved.save_view(request.user, request.POST.get("name", ""), saved.written_view(probe.GET))


def _list_request(query: str) -> HttpRequest:
    """A request for the list of groups, to be parsed by what parses the list's own."""
    request = HttpRequest()
    request.GET = QueryDict(query)
    return request


def _words(query: str) -> list[str]:
    """What a view shows: its groups, and their order and columns where these are not the usual ones."""
    request = _list_request(query)
    try:
        wanted, columns = wanted_groups(request), wanted_columns(request)
    except BadAddress as error:
        return [f"The list no longer understands this view: {error}"]
    words = ["All groups" if wanted.groups == GroupFilter() else f"Groups with {filter_words(wanted.groups)}"]
    if wanted.sort is not saved.USUAL_SORT:
        words.append(f"sorted by: {dict(saved.SORTS)[wanted.sort].lower()}")
    if columns != saved.USUAL:
        words.append(f"{plural(len(columns) + 1, 'column')} of {len(saved.NAMES) + 1}")
    return words
