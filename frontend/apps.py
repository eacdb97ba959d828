"""Django application."""

from django.apps import AppConfig


class FrontendConfig(AppConfig):
    """Dashboard."""

    name = "frontend"
    label = "frontend"
    verbose_name = "Dashboard"
