"""The ways in which a server answers HTTP.

Everything is tested in the default way; in the other only what it could get wrong.
"""

from __future__ import annotations

import pytest

SETTINGS: dict[str, dict[str, object]] = {
    "short path": {},
    "no short path": {"KCOORD_HTTP_SHORT_PATH": "false"},
}
"""Of whole servers."""

DEFAULT = "short path"
OTHER = pytest.mark.whole("the same promise with another way to answer HTTP")

each_way = pytest.mark.parametrize(
    "server",
    [name if name == DEFAULT else pytest.param(name, marks=OTHER) for name in SETTINGS],
    indirect=True,
    scope="module",
)
"""Of a test whose fixture `server` takes its way from `requested`."""


def requested(request: pytest.FixtureRequest) -> dict[str, object]:
    """The environment of a server with the way that is the fixture's parameter, or with the default."""
    return SETTINGS[getattr(request, "param", DEFAULT)]
