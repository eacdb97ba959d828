"""Path converters of the control plane; importing the module registers them."""

from __future__ import annotations

from django.urls import register_converter


class Anything:
    """Any text, including empty and with slashes: the view reads the raw path and reports what is wrong."""

    regex = r"[\s\S]*"

    def to_python(self, value: str) -> str:
        """The text."""
        return value

    def to_url(self, value: str) -> str:
        """The text."""
        return value


register_converter(Anything, "anything")
