"""Rows for groups to be judged by, written straight into the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from tests.conftest import START_MS

LONG_AGO = START_MS - 86_400_000


class Rows:
    """Writes rows; instants are ms, as of `START_MS`."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    def group(self, group_id: str, state: str = "Stable", since: int = LONG_AGO, **columns: Any) -> int:
        """A group; returns its key."""
        values = {
            "group_id": group_id, "type": "classic", "state": state, "previous_state": "Empty", "state_since": since,
            "generation_id": 1, "protocol_type": "consumer", "new_member_added": False, "version": 1, "created_at": 0,
            "updated_at": 0, **columns,
        }  # fmt: skip
        return self._insert("groups_group", values, "id")

    def member(self, group: int, member_id: str, armed_at: int, session_ms: int = 45_000) -> None:
        """A member of a classic group."""
        self._insert(
            "groups_member",
            {
                "group_id": group, "member_id": member_id, "client_id": "c", "client_host": "h",
                "session_timeout_ms": session_ms, "rebalance_timeout_ms": 1, "protocol_type": "consumer",
                "protocol_names": ["range"], "protocol_metadata": [b""], "assignment": b"", "is_new": False,
                "pending_sync": False, "session_deadline": armed_at + session_ms, "last_heartbeat_at": armed_at,
            },
        )  # fmt: skip

    def consumer_member(self, group: int, member_id: str, armed_at: int, deadline: int, **columns: Any) -> None:
        """A member of a consumer group."""
        values = {
            "group_id": group, "member_id": member_id, "client_id": "c", "client_host": "h", "rebalance_timeout_ms": 1,
            "subscribed_topic_names": [], "subscribed_topic_regex": "", "member_epoch": 1, "previous_member_epoch": 0,
            "state": 0, "target": "{}", "session_deadline": deadline, "session_armed_at": armed_at, **columns,
        }  # fmt: skip
        self._insert("groups_consumermember", values)

    def topic(self, name: str, partitions: int) -> int:
        """A topic; returns its key."""
        topic = {"name": name, "topic_id": self._uuid(), "partitions": partitions, "labels": "{}", "created_at": 0}
        return self._insert("groups_topic", topic, "id")

    def share_partition(self, group: int, topic: str, partition: int, following: int | None, end: int) -> int:
        """A partition of a share group; returns its key."""
        row = self.connection.execute("select topic_id from groups_topic where name = %s", [topic]).fetchone()
        assert row is not None
        values = {
            "group_id": group, "topic_id": row[0], "partition": partition, "next_offset": following, "end_offset": end,
        }  # fmt: skip
        return self._insert("offsets_sharepartition", values, "id")

    def share_lock(self, part: int, items: int, acquired_at: int) -> None:
        """The first items, which a member has."""
        values = {
            "share_partition_id": part, "member_id": "m", "held": f"{{[0,{items})}}", "delivery_count": 1,
            "until": START_MS + 1, "lock_ms": 1, "acquired_at": acquired_at,
        }  # fmt: skip
        self._insert("offsets_sharelock", values)

    def share_retry(self, part: int, items: int, not_before: int) -> None:
        """Items that are to be delivered again."""
        values = {
            "share_partition_id": part, "held": f"{{[100,{100 + items})}}", "delivery_count": 1,
            "not_before": not_before, "last_member": "m",
        }  # fmt: skip
        self._insert("offsets_shareretry", values)

    def share_dead(self, part: int, items: int, at: int) -> None:
        """Items that were given up."""
        for offset in range(200, 200 + items):
            values = {
                "share_partition_id": part, '"offset"': offset, "delivery_count": 1, "cause": "limit", "member_id": "m",
                "at": at,
            }  # fmt: skip
            self._insert("offsets_sharedead", values)

    def watermark(
        self, topic: int, partition: int, end: int, *, start: int = 0, at: int = START_MS, lower_at: int | None = None
    ) -> None:
        """Where a log begins and ends. `lower_at`: when an earlier end was reported."""
        self._insert(
            "groups_watermark",
            {
                "topic_id": topic, "partition": partition, "log_start_offset": start, "log_end_offset": end,
                "sampled_at": at, "lower_at": lower_at,
                "lower_end_offset": None if lower_at is None else end - 1, "lower_by": "",
            },
        )  # fmt: skip

    def sample(self, topic: int, partition: int, at: int, end: int) -> None:
        """Where a log ended at an instant."""
        self._insert(
            "offsets_watermarksample",
            {
                "topic_id": topic, "partition": partition, "at": at, "until": at, "log_start_offset": 0,
                "log_end_offset": end,
            },
        )  # fmt: skip

    def owner(self, group: int, topic: str, *partitions: int, member_id: str = "m", pending: bool = False) -> None:
        """Somebody owns these partitions."""
        for partition in partitions:
            self._insert(
                "groups_assignment",
                {
                    "group_id": group, "topic_id": topic, "topic": topic, "partition": partition,
                    "member_id": member_id, "generation_id": 1, "pending": pending,
                },
            )  # fmt: skip

    def commit(self, group: int, topic: str, partition: int, offset: int, at: int, expire: int | None = None) -> None:
        """A committed offset."""
        self._insert(
            "offsets_committedoffset",
            {
                "group_id": group, "topic": topic, "partition": partition, "committed_offset": offset,
                "leader_epoch": -1, "metadata": "", "commit_timestamp": at, "expire_timestamp": expire,
                "member_id": "", "generation_id": -1,
            },
        )  # fmt: skip

    def journal(self, group_id: str, topic: str, partition: int, offset: int, at: int) -> None:
        """A commit in the past."""
        self._insert(
            "offset_commit_log",
            {
                "at": at, "kind": "commit", "group_name": group_id, "topic": topic, "partition": partition,
                "committed_offset": offset,
            },
        )  # fmt: skip

    def generation_topics(self, group: int, topics: Sequence[str]) -> None:
        """What the members of a classic group read."""
        self._insert("groups_generationtopics", {"group_id": group, "topics": list(topics)})

    def pin(self, group_id: str, topic: str = "") -> None:
        """A pin."""
        self._insert(
            "offsets_retentionpin",
            {"group_name": group_id, "topic": topic, "pinned_at": 0, "pinned_by": "ops", "reason": ""},
        )

    def events(self, group_id: str, kind: str, *instants: int) -> None:
        """Something that happened several times."""
        for at in instants:
            self._insert(
                "groups_event",
                {"group_name": group_id, "at": at, "kind": kind, "generation_id": 1, "detail": "{}"},
            )

    def node(
        self, *, flushed_until: int | None, expires_at: int = START_MS + 3_000, ended_at: int | None = None
    ) -> int:
        """A coordinator node; returns its incarnation."""
        name = str(self._uuid())
        values = {
            "node_id": name, "url": "", "version": "1", "started_at": 0, "renewed_at": START_MS,
            "expires_at": expires_at, "flushed_until": flushed_until, "ended_at": ended_at,
        }  # fmt: skip
        return self._insert("groups_coordinatornode", values, "id")

    def coordinator_partition(self, partition: int, owner: int | None, state: str = "ACTIVE", gap: int = 0) -> None:
        """Who runs the timers of some groups."""
        self._insert(
            "groups_coordinatorpartition",
            {"partition": partition, "owner_id": owner, "epoch": 1, "gap": gap, "state": state, "state_since": 0},
        )

    def _uuid(self) -> Any:
        row = self.connection.execute("select gen_random_uuid()").fetchone()
        assert row is not None
        return row[0]

    def _insert(self, table: str, values: dict[str, Any], returning: str = "") -> int:
        names, places = ", ".join(values), ", ".join(["%s"] * len(values))
        text = f"insert into {table} ({names}) values ({places})" + (f" returning {returning}" if returning else "")
        row = self.connection.execute(text.encode(), list(values.values()))
        found = row.fetchone() if returning else None
        return int(found[0]) if found else 0
