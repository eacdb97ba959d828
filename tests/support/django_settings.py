"""Django's settings of a whole run."""

from __future__ import annotations

from typing import Any

from django.conf import UserSettingsHolder, settings


def set_for_run(name: str, value: Any) -> None:
    """Set a setting until the run ends, also if a test has replaced others for its own duration.

    For the fixtures of a session that a test asks for. pytest does not set them up before those of the test if that is
    parametrized (`FuncFixtureInfo.prune_dependency_tree` does not sort by scope), and what is set while a test has
    settings of its own ends with them: the next test would use the database of the settings.
    """
    setattr(settings, name, value)
    layer = settings._wrapped
    while isinstance(layer, UserSettingsHolder):
        layer = layer.default_settings
        setattr(layer, name, value)
