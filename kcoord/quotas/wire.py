"""What quotas count of requests of Kafka's protocol: they are carried out, and their sender is silent for a while.

Source: KIP-124, KIP-219.
"""

from __future__ import annotations

from collections.abc import Mapping

from kcoord.quotas.budgets import Budget

BUDGETS: Mapping[str, Budget | None] = {
    "heartbeat": Budget.HEARTBEATS,
    "consumer_group_heartbeat": Budget.HEARTBEATS,
    "offset_commit": Budget.COMMITS,
    "offset_fetch": Budget.COMMITS,
    "txn_offset_commit": Budget.COMMITS,
    "init_producer_id": Budget.COMMITS,
    "add_offsets_to_txn": Budget.COMMITS,
    "end_txn": Budget.COMMITS,
    "produce": Budget.WRITES,
    "create_topics": Budget.WRITES,
    "delete_topics": Budget.WRITES,
    "create_partitions": Budget.WRITES,
    "incremental_alter_configs": Budget.WRITES,
    "offset_delete": Budget.WRITES,
    "delete_groups": Budget.WRITES,
    "join_group": None,
    "sync_group": None,
    "leave_group": None,
}
"""The budget of an API; None: only its bytes count. All others are reads."""


def budget_of(api: str) -> Budget | None:
    """The budget of an API, by the name of kio's module."""
    return BUDGETS.get(api, Budget.READS)
