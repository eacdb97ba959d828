"""The ways in which a server reads and writes HTTP: what is promised of connections holds for each."""

from __future__ import annotations

import pytest

from kcoord.stack.server import TRANSPORTS

SETTINGS: dict[str, dict[str, object]] = {
    **{name: {"KCOORD_HTTP_TRANSPORT": name} for name in TRANSPORTS},
    "no short path": {"KCOORD_HTTP_SHORT_PATH": "false"},
}
NAMES = tuple(SETTINGS)
"""Of whole servers: the transports, and without the short path that httptools has otherwise."""

each_transport = pytest.mark.parametrize("transport", tuple(TRANSPORTS))


def setting(transport: str) -> dict[str, object]:
    """The environment of a server with this transport."""
    return SETTINGS[transport]
