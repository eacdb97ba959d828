"""The page of the search; the box of every page fetches the same results from it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from frontend.search.results import Results, search
from frontend.viewer import viewer_of
from frontend.views.page import page, show, text

BOX = "Kcoord-Search"
"""The header with which the box asks for results alone."""


@page
def search_page(request: HttpRequest) -> HttpResponse:
    """What has the words of `q` in its name, and what can be done."""
    q = text(request, "q")
    results = search(viewer_of(request), q) if q else Results([])
    context = {"q": q, "results": results}
    if request.headers.get(BOX):
        return render(request, "frontend/search/options.html", context)
    return show(request, "search/page", context, section="search")
