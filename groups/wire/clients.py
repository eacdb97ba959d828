"""Which software the members are that join by Kafka's protocol."""

from __future__ import annotations

from groups.clients import Client, ClientSoftware, Software
from kcoord.wire.api import Call


async def remember(call: Call) -> None:
    """Keep the name of the client's software, which it gave when it connected, for who looks at the member."""
    software = Software(*call.software)
    if software.name:
        await call.runtime.get(ClientSoftware).remember(Client(call.client_id, call.client_host), software)
