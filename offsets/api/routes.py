"""All operations of this package."""

from __future__ import annotations

from offsets.api import handlers, share

OPERATIONS = (
    handlers.commit,
    handlers.fetch,
    handlers.many_fetch,
    handlers.txn_commit,
    handlers.end_txn,
    handlers.init_producer_id,
    share.acquire,
    share.settle,
)
