"""The two ways in which a server reads and writes HTTP: what is promised of connections holds for each."""

from __future__ import annotations

import pytest

from kcoord.stack.server import TRANSPORTS

NAMES = tuple(TRANSPORTS)
each_transport = pytest.mark.parametrize("transport", NAMES)


def setting(transport: str) -> dict[str, object]:
    """The environment of a server with this transport."""
    return {"KCOORD_HTTP_TRANSPORT": transport}
