"""Django application."""

from __future__ import annotations

from django.apps import AppConfig


class FrontendConfig(AppConfig):
    """Dashboard."""

    name = "frontend"
    label = "frontend"
    verbose_name = "Dashboard"

    def ready(self) -> None:
        """Replace what the admin has of its own for accounts, and record what it does.

        Its password forms would bypass our throttle, and its sign-out would leave people signed in at the provider.
        """
        from django.contrib import admin

        from frontend import admin_accounts
        from kcoord.access.read_only import refusing
        from kcoord.audit.rows import audited_view

        admin.site.login = admin_accounts.sign_in  # type: ignore[method-assign,assignment]
        admin.site.password_change = admin_accounts.change_password  # type: ignore[method-assign,assignment]
        admin.site.logout = admin_accounts.sign_out  # type: ignore[method-assign,assignment]
        # What is refused is recorded as well, so that the refusal is within what knows the account.
        admin.site.admin_view = refusing(audited_view(admin.site.admin_view))  # type: ignore[method-assign]
