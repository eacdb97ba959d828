"""What Django refuses outside of our views: a page, or a problem body for a program."""

from __future__ import annotations

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from frontend.outage import wants_json
from frontend.views.page import message
from kcoord.http import problem
from kcoord.protocol.errors import Error

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
