"""Django application."""

from __future__ import annotations

from django.apps import AppConfig


class FrontendConfig(AppConfig):
    """Dashboard."""

    name = "frontend"
    label = "frontend"
    verbose_name = "Dashboard"

    def ready(self) -> None:
        """Replace the admin's own sign-in, which would bypass our throttle."""
        from django.contrib import admin

        from frontend.views.accounts import admin_sign_in

        admin.site.login = admin_sign_in  # type: ignore[method-assign]
