"""System checks: settings that cannot be used stop the start with a sentence each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register


@register
def settings_are_valid(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """`kcoord.E001`: one error for each environment variable that is unknown, malformed or out of bounds."""
    return [
        Error(problem, hint="See `manage.py settings_reference`.", id="kcoord.E001")
        for problem in settings.KCOORD.problems
    ]
