"""Kafka's APIs of offsets, transactions, logs, topics and settings, with the versions that clients may use.

docs/kafka-clients.md shows this table, and what is not in it.
"""

from __future__ import annotations

from groups.api.kafka import configs, partitions, topics
from groups.api.kafka.reads import listing
from kcoord.access.quotas.budgets import Budget
from kcoord.door.kafka.api import Api
from offsets.api import handlers
from offsets.api.kafka import commits, fetches, items, logs, share, transactions
from offsets.group_list import GroupListReads

APIS: tuple[Api, ...] = (
    Api(0, "produce", (3, 9), logs.produce, logs.refused_produce, is_hot=True, budget=Budget.WRITES),
    Api(1, "fetch", (4, 18), logs.fetch, logs.refused_fetch, waits=True, is_hot=True),
    Api(2, "list_offsets", (1, 9), logs.list_offsets, logs.refused_list),
    Api.of(
        handlers.commit,
        8,
        "offset_commit",
        (2, 10),
        commits.offset_commit,
        commits.refused_commit,
        commits.with_own_errors,
        is_later=True,
    ),
    Api.of(handlers.fetch, 9, "offset_fetch", (1, 10), fetches.offset_fetch, fetches.refused),
    listing(GroupListReads),
    Api(
        19,
        "create_topics",
        (2, 7),
        topics.create_topics,
        topics.refused_topics,
        audit="topic.create",
        budget=Budget.WRITES,
    ),
    Api(
        20,
        "delete_topics",
        (1, 6),
        topics.delete_topics,
        topics.refused_deletions,
        audit="topic.delete",
        budget=Budget.WRITES,
    ),
    Api.of(handlers.init_producer_id, 22, "init_producer_id", (0, 5), transactions.init_producer_id),
    Api(25, "add_offsets_to_txn", (0, 4), transactions.add_offsets_to_txn, budget=Budget.COMMITS),
    Api.of(handlers.end_txn, 26, "end_txn", (0, 5), transactions.end_txn),
    Api.of(
        handlers.txn_commit,
        28,
        "txn_offset_commit",
        (0, 6),
        transactions.txn_offset_commit,
        commits.refused,
        commits.with_own_errors,
    ),
    Api(32, "describe_configs", (1, 4), configs.describe_configs, configs.refused_description),
    Api(33, "alter_configs", (0, 2), configs.alter_configs, configs.refused_change),
    Api(
        37,
        "create_partitions",
        (0, 3),
        topics.create_partitions,
        topics.refused_partitions,
        audit="topic.update",
        budget=Budget.WRITES,
    ),
    Api(
        44,
        "incremental_alter_configs",
        (0, 1),
        configs.incremental_alter_configs,
        configs.refused_change,
        audit="group.config",
        budget=Budget.WRITES,
    ),
    Api(47, "offset_delete", (0, 0), commits.offset_delete, audit="offsets.delete", budget=Budget.WRITES),
    Api(65, "describe_transactions", (0, 0), transactions.describe, transactions.refused_descriptions),
    Api(66, "list_transactions", (0, 1), transactions.list_transactions),
    Api(74, "list_config_resources", (0, 1), configs.list_config_resources),
    Api(75, "describe_topic_partitions", (0, 0), partitions.describe_topic_partitions, partitions.refused),
    Api(78, "share_fetch", (1, 2), items.share_fetch, items.refused, waits=True, is_hot=True),
    Api(79, "share_acknowledge", (1, 2), items.share_acknowledge, items.refused),
    Api(90, "describe_share_group_offsets", (0, 1), share.describe_offsets, share.refused_description),
    Api(
        91,
        "alter_share_group_offsets",
        (0, 0),
        share.alter_offsets,
        share.refused_change,
        audit="share-offsets.alter",
        budget=Budget.WRITES,
    ),
    Api(
        92,
        "delete_share_group_offsets",
        (0, 0),
        share.delete_offsets,
        share.refused_change,
        audit="share-offsets.delete",
        budget=Budget.WRITES,
    ),
)
