"""What is known of the clients of Kafka's protocol."""

from __future__ import annotations

from django.db import models

from groups.models.owned import ProtocolOwned
from kcoord.database.fields import MillisField


class ClientSoftware(ProtocolOwned):
    """The software that a client said it is (KIP-511), by the client id and the address of members.

    Not every connection says it, so it is kept apart from members.
    """

    pk = models.CompositePrimaryKey("client_id", "client_host")
    client_id = models.CharField(max_length=255)
    client_host = models.CharField(max_length=255)
    name = models.CharField(max_length=128)
    version = models.CharField(max_length=128)
    seen_at = MillisField()

    def __str__(self) -> str:
        return f"{self.client_id}@{self.client_host}: {self.name} {self.version}"
