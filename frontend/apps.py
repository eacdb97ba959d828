"""Django application."""

from __future__ import annotations

from django.apps import AppConfig


class FrontendConfig(AppConfig):
    """Dashboard."""

    name = "frontend"
    label = "frontend"
    verbose_name = "Dashboard"

    def ready(self) -> None:
        """Replace the admin's own password forms, which would bypass our throttle, and record what the admin does."""
        from django.contrib import admin

        from frontend.views.accounts import admin_change_password, admin_sign_in
        from kcoord.audit.rows import audited_view

        admin.site.login = admin_sign_in  # type: ignore[method-assign]
        admin.site.password_change = admin_change_password  # type: ignore[method-assign,assignment]
        admin.site.admin_view = audited_view(admin.site.admin_view)  # type: ignore[method-assign]
