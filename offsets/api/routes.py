"""All operations of this package."""

from __future__ import annotations

from offsets.api import handlers, share, txn_handlers

OPERATIONS = (
    handlers.commit,
    handlers.fetch,
    handlers.many_fetch,
    txn_handlers.txn_commit,
    txn_handlers.end_txn,
    txn_handlers.init_producer_id,
    share.acquire,
    share.settle,
)
