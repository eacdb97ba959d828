"""The ways in which a server reads and writes HTTP.

Everything is tested in the default way; in the others only what a parser of its own could get wrong.
"""

from __future__ import annotations

import pytest

from kcoord.stack.server import TRANSPORTS

SETTINGS: dict[str, dict[str, object]] = {
    **{name: {"KCOORD_HTTP_TRANSPORT": name} for name in TRANSPORTS},
    "no short path": {"KCOORD_HTTP_SHORT_PATH": "false"},
}
"""Of whole servers: the transports, and without the short path that httptools has otherwise."""

DEFAULT = "httptools"
OTHER = pytest.mark.whole("the same promise with another way to read HTTP")

each_transport = pytest.mark.parametrize("transport", tuple(TRANSPORTS))
each_way = pytest.mark.parametrize(
    "server",
    [name if name == DEFAULT else pytest.param(name, marks=OTHER) for name in SETTINGS],
    indirect=True,
    scope="module",
)
"""Of a test whose fixture `server` takes its way from `requested`."""


def requested(request: pytest.FixtureRequest) -> dict[str, object]:
    """The environment of a server with the transport that is the fixture's parameter, or with the default."""
    return SETTINGS[getattr(request, "param", DEFAULT)]


def setting(transport: str) -> dict[str, object]:
    """The environment of a server with this transport."""
    return SETTINGS[transport]
