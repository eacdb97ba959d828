"""What the admin does about accounts: the same as the pages.

The views are imported when they are asked for: every process sets Django up, and few serve pages.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect


def sign_in(request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
    """The pages' sign-in: one form, one throttle. Raises PermissionDenied for an account that may not use the admin."""
    from frontend.views.accounts import SignIn

    if request.user.is_authenticated:
        raise PermissionDenied("This account may not use the admin. An administrator can change that.")
    return SignIn.as_view()(request)


def change_password(request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
    """The admin's link leads to the page's form: one form, one throttle, one record."""
    return redirect("frontend:password")


def sign_out(request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
    """The admin's form does what that of the pages does."""
    from frontend.views.sign_out import SignOut

    return SignOut.as_view()(request)
