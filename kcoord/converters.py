"""Path converters of the control plane."""

from __future__ import annotations


class Anything:
    """Whatever stands there, nothing and slashes included: the view reads the raw path and says what is wrong."""

    regex = r"[\s\S]*"

    def to_python(self, value: str) -> str:
        """The text."""
        return value

    def to_url(self, value: str) -> str:
        """The text."""
        return value
