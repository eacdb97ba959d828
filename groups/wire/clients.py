"""Members that join by Kafka's protocol: their software, and what their clients make of quotas."""

from __future__ import annotations

from groups.clients import Client, ClientSoftware, Software
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.wire.api import Call


async def remember(call: Call) -> None:
    """Keep the name of the client's software, which it gave when it connected, for who looks at the member."""
    software = Software(*call.software)
    if software.name:
        await call.runtime.get(ClientSoftware).remember(Client(call.client_id, call.client_host), software)


def as_clients_know_it(refused: ProtocolError) -> ProtocolError:
    """The error for a join, if a quota refuses it; other errors as they are.

    Differs from Kafka: it has no quota of members. Its clients end when a join is answered THROTTLING_QUOTA_EXCEEDED;
    after COORDINATOR_LOAD_IN_PROGRESS they join again.
    """
    if refused.error is not Error.THROTTLING_QUOTA_EXCEEDED:
        return refused
    return ProtocolError(Error.COORDINATOR_LOAD_IN_PROGRESS, refused.detail, retry_after_ms=refused.retry_after_ms)
