"""System checks of the dashboard: settings that only it can validate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from kcoord.checks import TAG
from kcoord.secret_tables import SecretTablesError
from kcoord.setting_table import SERVICES_FILE


@register(TAG)
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
