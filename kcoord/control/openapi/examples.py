"""Examples of the data plane's main calls, by operation id, for the OpenAPI document. A test sends each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_EXPIRES = "2026-01-31T12:00:45.000Z"
_TOPIC = "6e1c1f0e-6a3e-4b0e-9a55-2f7a1d5c8b42"
_UUID = "3f0e6a52-6f3b-4c8e-9a53-0d9c1f4b7a11"
_MEMBER = "billing-3f0e6a52-6f3b-4c8e-9a53-0d9c1f4b7a11"

EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "joinGroup": {
        "request": {
            "member_id": _MEMBER,
            "group_instance_id": None,
            "client_id": "billing",
            "session_timeout_ms": 45_000,
            "rebalance_timeout_ms": 300_000,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "subscription": {"topics": ["orders"]}}],
            "max_wait_ms": 30_000,
        },
        "response": {
            "error_code": 0,
            "generation_id": 5,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "leader": _MEMBER,
            "skip_assignment": False,
            "member_id": _MEMBER,
            "session_expires_at": _EXPIRES,
            "members": [
                {
                    "member_id": _MEMBER,
                    "group_instance_id": None,
                    "metadata": "AAMAAAABAAZvcmRlcnP/////AAAAAP//////",
                    "subscription": {
                        "topics": ["orders"],
                        "owned_partitions": {},
                        "generation_id": -1,
                        "rack_id": None,
                        "user_data": None,
                    },
                }
            ],
        },
    },
    "syncGroup": {
        "request": {
            "member_id": _MEMBER,
            "generation_id": 5,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [{"member_id": _MEMBER, "partitions": {"orders": [0, 1]}}],
            "max_wait_ms": 30_000,
        },
        "response": {
            "error_code": 0,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignment": "AAMAAAABAAZvcmRlcnMAAAACAAAAAAAAAAH/////",
            "partitions": {"orders": [0, 1]},
            "session_expires_at": _EXPIRES,
        },
    },
    "heartbeat": {
        "request": {"member_id": _MEMBER, "generation_id": 5},
        "response": {"error_code": 0, "session_expires_at": _EXPIRES},
    },
    "consumerGroupHeartbeat": {
        "request": {
            "member_id": _UUID,
            "member_epoch": 0,
            "instance_id": None,
            "rack_id": None,
            "rebalance_timeout_ms": 300_000,
            "subscribed_topic_names": ["orders"],
            "subscribed_topic_regex": None,
            "server_assignor": None,
            "topic_partitions": [],
            "max_wait_ms": 0,
        },
        "response": {
            "error_code": 0,
            "member_id": _UUID,
            "member_epoch": 5,
            "heartbeat_interval_ms": 5_000,
            "session_expires_at": _EXPIRES,
            "assignment": {"topic_partitions": [{"topic_id": _TOPIC, "topic": "orders", "partitions": [0, 1]}]},
        },
    },
    "shareGroupHeartbeat": {
        "request": {
            "member_id": "worker-7",
            "member_epoch": 0,
            "rack_id": None,
            "subscribed_topic_names": ["orders"],
        },
        "response": {
            "error_code": 0,
            "member_id": "worker-7",
            "member_epoch": 5,
            "heartbeat_interval_ms": 5_000,
            "session_expires_at": _EXPIRES,
            "assignment": {"topic_partitions": [{"topic_id": _TOPIC, "topic": "orders", "partitions": [0, 1]}]},
        },
    },
    "commitOffsets": {
        "request": {
            "member_id": _MEMBER,
            "generation_id_or_member_epoch": 5,
            "topics": [{"name": "orders", "partitions": [{"partition": 0, "committed_offset": 4711}]}],
        },
        "response": {
            "error_code": 0,
            "session_expires_at": _EXPIRES,
            "topics": [
                {
                    "name": "orders",
                    "topic_id": _TOPIC,
                    "partitions": [{"partition": 0, "error_code": 0, "error": "NONE"}],
                }
            ],
        },
    },
    "fetchOffsets": {
        "request": {"topics": [{"name": "orders", "partitions": [0]}]},
        "response": {
            "error_code": 0,
            "topics": [
                {
                    "name": "orders",
                    "topic_id": _TOPIC,
                    "partitions": [
                        {
                            "partition": 0,
                            "committed_offset": 4711,
                            "committed_leader_epoch": -1,
                            "metadata": "",
                            "commit_timestamp": 1769860800000,
                            "error_code": 0,
                            "error": "NONE",
                        }
                    ],
                }
            ],
        },
    },
    "txnCommitOffsets": {
        "request": {
            "transactional_id": "billing-0",
            "producer_id": 17,
            "producer_epoch": 0,
            "member_id": _MEMBER,
            "generation_id": 5,
            "topics": [{"name": "orders", "partitions": [{"partition": 0, "committed_offset": 4711}]}],
        },
        "response": {
            "error_code": 0,
            "topics": [
                {
                    "name": "orders",
                    "topic_id": _TOPIC,
                    "partitions": [{"partition": 0, "error_code": 0, "error": "NONE"}],
                }
            ],
        },
    },
    "endTransaction": {
        "request": {"producer_id": 17, "producer_epoch": 0, "committed": True},
        "response": {"error_code": 0, "pending_offsets": 1, "committed_offsets": 1},
    },
    "leaveGroup": {"request": {"members": [{"member_id": _MEMBER, "reason": "shutting down"}]}},
}
