"""Writes that go through Django's own connection instead of the pools: tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from kcoord.database.sql import queries
from kcoord.process import runtime as runtimes
from kcoord.requests import current

Q = queries("kcoord")


@contextmanager
def written_in_time() -> Iterator[None]:
    """Run the block in a transaction of Django's connection, which commits only if the request is not too old.

    It is bounded as those of the pools are: Postgres ends it if this process is frozen before the commit.
    Raises ProtocolError COORDINATOR_NOT_AVAILABLE; nothing was committed then.
    """
    receipt = current.receipt()
    if receipt is None or not runtimes.is_running():
        with transaction.atomic():
            yield
        return
    runtime = runtimes.current()
    with transaction.atomic(), connection.cursor() as cursor:
        limit_ms = runtime.config.int("database.transaction.timeout.ms")
        cursor.execute(Q.limit_idle_transaction, {"timeout": f"{limit_ms}ms"})
        yield
        cursor.execute(Q.read_clock, {"override": None})
        (database_ms,) = cursor.fetchone()
        refusal = runtime.db.request_age.refusal(receipt, database_ms)
        if refusal is not None:
            raise refusal
