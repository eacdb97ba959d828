"""Django application, and the check of settings that only groups can validate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from groups.server_assignors import AssignorLoadError, load_assignors
from kcoord.checks import REFERENCE, TAG


def assignors_can_be_loaded(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """`kcoord.E004`: an entry of `group.consumer.assignors` that is not an assignor."""
    try:
        load_assignors(settings.KCOORD)
    except AssignorLoadError as error:
        return [Error(str(error), hint=REFERENCE, id="kcoord.E004")]
    return []


class GroupsConfig(AppConfig):
    """Groups."""

    name = "groups"
    label = "groups"
    verbose_name = "Groups"

    def ready(self) -> None:
        """Assignors are checked together with the settings."""
        register(assignors_can_be_loaded, TAG)
