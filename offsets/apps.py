"""Django application."""

from django.apps import AppConfig


class OffsetsConfig(AppConfig):
    """Offsets."""

    name = "offsets"
    label = "offsets"
    verbose_name = "Offsets"
