"""What happens to items when members leave, groups and topics go, a share group names a topic, or a topic has an end.

Called in the transactions of these changes, in any process. Source: share.md 7.5 and 7.6.
"""

from __future__ import annotations

from groups.store.locked import Deletion, ShareChange
from groups.topics import TopicDeletion
from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from offsets.core.types import Millis

Q = queries("offsets")


async def follow_members(change: ShareChange) -> None:
    """Partitions that are new to the group begin; what members that are gone have locked is available again.

    Differs from Kafka: there the first fetch decides where a partition begins, and what a member has acquired stays
    locked when it leaves or expires.
    """
    named = {"group": change.pk, "group_id": change.group_id}
    if change.topic_ids:
        await change.connection.execute(Q.begin_share_partitions.encode(), {**named, "topics": list(change.topic_ids)})
    if change.gone:
        await change.connection.execute(
            Q.release_share_members.encode(), {**named, "members": list(change.gone), "now": change.now}
        )


async def forget_group(deletion: Deletion) -> None:
    """The hook of deleted groups: their items go."""
    await deletion.connection.execute(Q.forget_share_partitions.encode(), {"group": deletion.pk, "topics": None})


async def forget_topic(deletion: TopicDeletion) -> None:
    """The hook of deleted topics: their items go, of all groups."""
    parameters = {"group": None, "topics": [deletion.topic_id]}
    await deletion.connection.execute(Q.forget_share_partitions.encode(), parameters)


async def follow_end(connection: Connection, topic: str) -> None:
    """The hook of reported watermarks: partitions whose start was left open begin there, and requests that wait for
    items of the topic look again.
    """
    await connection.execute(Q.begin_open_share_partitions.encode(), {"topic": topic})
    await connection.execute(Q.wake_share_groups.encode(), {"topic": topic})


async def extend_locks(connection: Connection, now: Millis) -> None:
    """The hook of gaps: all locks last for their full time from now, as sessions do.

    Differs from Kafka: there a broker that starts has forgotten what was acquired, and delivers it again.
    """
    await connection.execute(Q.extend_share_locks.encode(), {"now": now})
