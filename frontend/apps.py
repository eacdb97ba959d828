"""Django application, and what the admin does about accounts: the same as the pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from kcoord.secret_tables import SecretTablesError
from kcoord.setting_table import SERVICES_FILE


class FrontendConfig(AppConfig):
    """Dashboard."""

    name = "frontend"
    label = "frontend"
    verbose_name = "Dashboard"

    def ready(self) -> None:
        """Replace what the admin has of its own for accounts, and record what it does; check the settings of pages.

        Its password forms would bypass our throttle, and its sign-out would leave people signed in at the provider.
        """
        from django.contrib import admin

        from kcoord.access.audit.rows import audited_view
        from kcoord.access.read_only import refusing
        from kcoord.checks import TAG

        register(services_can_be_asked, TAG)

        admin.site.login = _sign_in  # type: ignore[method-assign,assignment]
        admin.site.password_change = _change_password  # type: ignore[method-assign,assignment]
        admin.site.logout = _sign_out  # type: ignore[method-assign,assignment]
        # What is refused is recorded as well, so that the refusal is within what knows the account.
        admin.site.admin_view = refusing(audited_view(admin.site.admin_view))  # type: ignore[method-assign]


# Their views are imported when they are asked for: every process sets Django up, and few serve pages.


def _sign_in(request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
    """The pages' sign-in: one form, one throttle. Raises PermissionDenied for an account that may not use the admin."""
    from frontend.pages.sign_in.view import SignIn

    if request.user.is_authenticated:
        raise PermissionDenied("This account may not use the admin. An administrator can change that.")
    return SignIn.as_view()(request)


def _change_password(request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
    """The admin's link leads to the page's form: one form, one throttle, one record."""
    return redirect("frontend:password")


def _sign_out(request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
    """The admin's form does what that of the pages does."""
    from frontend.pages.sign_in.view import SignOut

    return SignOut.as_view()(request)


def services_can_be_asked(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """`kcoord.E006`: the file of other services cannot be read, or one of them makes no sense."""
    path = settings.KCOORD.str(SERVICES_FILE)
    if not path:
        return []
    from frontend.ui.services import read_services  # pages are imported by servers only

    try:
        read_services(path)
    except SecretTablesError as error:
        return [Error(str(error), hint="docs/dashboard.md says what the file contains.", id="kcoord.E006")]
    return []
