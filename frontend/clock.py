"""The service's clock, for pages that read their rows through Django."""

from __future__ import annotations

from django.db import connection

from kcoord.sql import queries


def now_ms() -> int:
    """The time in milliseconds since 1970, as Postgres has it."""
    with connection.cursor() as read:
        read.execute(queries("kcoord").read_clock, {"override": None})
        return int(read.fetchone()[0])
