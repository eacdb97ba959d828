"""Celery's transport to the queue in Postgres, with connections made from the whole connection string.

The transport of kombu takes host, port, database, user and password out of the string and puts them together again
without quotes: a socket directory or a password with a space breaks, a password file is overruled, and all other
options are lost, also those that demand TLS. Here libpq gets what every other connection of the service gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from kombu.transport import TRANSPORT_ALIASES
from kombu.transport.pgmq import Transport as PgmqTransport
from pgmq import PGMQueue
from psycopg_pool import ConnectionPool

SCHEME = "kcoord"
"""Of the broker's URL in the settings."""


class Transport(PgmqTransport):
    """PGMQ over connections to `conn_string`, an option of the transport, in libpq's key=value form."""

    driver_name = SCHEME
    default_connection_params: Mapping[str, Any] = {}
    """None: kombu would warn that it takes localhost where no host is named."""

    def _create_pgmq_client(self) -> PGMQueue:
        options: Mapping[str, Any] = cast(Any, self.client).transport_options
        pool = ConnectionPool(
            options["conn_string"],
            min_size=1,
            max_size=options["pool_size"],
            open=True,
            kwargs={"application_name": "kcoord-queue"},
        )
        client = PGMQueue(
            conn_string=options["conn_string"], vt=options["visibility_timeout"], init_extension=False, pool=pool
        )
        client._own_pool = True  # it closes the pool when it is closed
        return client


def register() -> None:
    """Make the transport known to kombu."""
    TRANSPORT_ALIASES[SCHEME] = f"{__name__}:Transport"
