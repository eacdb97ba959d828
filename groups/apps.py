"""Django application."""

from django.apps import AppConfig


class GroupsConfig(AppConfig):
    """Groups."""

    name = "groups"
    label = "groups"
    verbose_name = "Groups"
