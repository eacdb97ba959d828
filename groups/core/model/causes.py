"""Why members are removed, a rebalance starts, or the group epoch is bumped."""

from __future__ import annotations

from enum import Enum


class Cause(str, Enum):
    """What made a group change, in both protocols.

    Source: classic.md 1 (the rows that lead to PreparingRebalance) and 0.3 (REMOVE); consumer.md 3.5 and 4.1.
    """

    GROUP_CREATED = "group_created"
    MEMBER_JOINED = "member_joined"
    MEMBER_LEFT = "member_left"
    MEMBER_KICKED = "member_kicked"
    SESSION_EXPIRED = "session_expired"
    JOIN_TIMED_OUT = "join_timed_out"
    SYNC_TIMED_OUT = "sync_timed_out"
    REBALANCE_TIMED_OUT = "rebalance_timed_out"
    GROUP_FULL = "group_full"
    LEADER_REJOINED = "leader_rejoined"
    STATIC_MEMBER_REPLACED = "static_member_replaced"
    PROTOCOLS_CHANGED = "protocols_changed"
    SUBSCRIPTION_CHANGED = "subscription_changed"
    TOPICS_CHANGED = "topics_changed"
    REGEXES_RESOLVED = "regexes_resolved"
