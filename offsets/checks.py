"""System checks of offsets: settings that only they can validate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from kcoord.checks import TAG
from kcoord.secret_tables import SecretTablesError
from kcoord.setting_table import RECEIVERS_FILE
from offsets.alerts.receivers import read_receivers


@register(TAG)
def receivers_can_be_told(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """`kcoord.E005`: the file of receivers cannot be read, or one of them makes no sense."""
    try:
        read_receivers(settings.KCOORD.str(RECEIVERS_FILE))
    except SecretTablesError as error:
        return [Error(str(error), hint="docs/alerts.md says what the file contains.", id="kcoord.E005")]
    return []
