"""Pages on which nothing can be changed: the setting `dashboard.read.only`. The API is not meant: tokens have rules.

What refuses is in one place for each kind of page: the dashboard's `frontend.ui.page`, the admin's `refusing`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase

SETTING = "dashboard.read.only"
REASON = f"Nothing can be changed on the pages of this server: {SETTING} is set."
READING = frozenset({"GET", "HEAD", "OPTIONS"})


def is_read_only() -> bool:
    """Whether the pages of this server only show."""
    found: bool = settings.KCOORD.bool(SETTING)
    return found


def reason() -> str:
    """Why nothing can be changed on the pages, as a sentence; "" if it can."""
    return REASON if is_read_only() else ""


def refusal(request: HttpRequest) -> str:
    """Why a request to a page is refused, as a sentence; "" if it is not."""
    return "" if request.method in READING else reason()


def refusing(admin_view: Callable[..., Any]) -> Callable[..., Any]:
    """The admin's `admin_view`, whose pages refuse what would change something. They raise PermissionDenied."""

    @functools.wraps(admin_view)
    def wrapped(view: Callable[..., HttpResponseBase], cacheable: bool = False) -> Callable[..., HttpResponseBase]:
        @functools.wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            refused = refusal(request)
            if refused:
                raise PermissionDenied(refused)
            return view(request, *args, **kwargs)

        found: Callable[..., HttpResponseBase] = admin_view(guarded, cacheable)
        return found

    return wrapped
