"""The watermarks of a wide topic are looked up one by one, however few partitions most topics have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from kcoord.database.sql import queries
from tests.frontend.viewers import ALL
from tests.support.row_counts import rows_read

PARTITIONS, TOPICS = 2_000, 2_000
FILL = (
    "insert into groups_topic (name, topic_id, partitions, labels, created_at)"
    " select 't' || n, gen_random_uuid(), case n when 0 then %(partitions)s else 3 end, '{}', 0"
    " from generate_series(0, %(topics)s) n",
    "insert into groups_watermark (topic_id, partition, log_start_offset, log_end_offset, sampled_at)"
    " select id, p, 0, 9, 1 from groups_topic, generate_series(0, partitions - 1) p",
    "insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, new_member_added,"
    " version, created_at, updated_at)"
    " select 'g' || n, 'classic', 'Stable', 'Empty', 0, 0, false, 1, 0, 0 from generate_series(0, %(topics)s) n",
    "insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,"
    " commit_timestamp, member_id, generation_id)"
    " select g.id, t.name, p, 5, -1, '', 0, '', -1"
    " from groups_group g join groups_topic t on substr(t.name, 2) = substr(g.group_id, 2),"
    " generate_series(0, t.partitions - 1) p",
    "insert into groups_assignment (group_id, topic_id, topic, partition, member_id, generation_id)"
    " select group_id, topic, topic, partition, 'm', 0 from offsets_committedoffset",
    "insert into groups_member (group_id, member_id, client_id, client_host, session_timeout_ms, rebalance_timeout_ms,"
    " protocol_type, protocol_names, protocol_metadata, assignment, is_new, pending_sync)"
    " select id, 'm', '', '', 1000, 1000, 'consumer', '{}', '{}', '', false, false from groups_group",
)
EVERYTHING = {"limit": 9_999, "after_topic": "", "after_partition": -1, "q": "", "now": 9, "skip": 0, "epoch": 0}
EVERYTHING |= {"topic": None, "subscribed": [], "topics": ["t0"], "widths": [PARTITIONS], "unsettled_first": False}
EVERYTHING |= {"member_id": "m", "member_ids": ["m"], "most": PARTITIONS, "only": "", "sort": "lag"}


@pytest.fixture
def wide(database: str) -> Iterator[psycopg.Connection[Any]]:
    """Groups on topics of three partitions, and one on a wide topic; statistics know all of that."""
    with psycopg.connect(database) as connection:
        for statement in FILL:
            given = {"partitions": PARTITIONS, "topics": TOPICS} if "%(" in statement else None
            connection.execute(statement.encode(), given)
        connection.execute("analyze")
        yield connection
        connection.rollback()


@pytest.mark.parametrize("plans", ["custom", "generic"])
@pytest.mark.parametrize(
    "name",
    [
        *("offsets.lag_partitions", "offsets.lag_topics", "offsets.committed_page", "offsets.plan_committed"),
        *("offsets.sample_lag", "frontend.group_members", "frontend.member_loads", "frontend.drawn_offsets"),
        *("frontend.mark_totals", "frontend.partition_offsets", "frontend.partition_table", "frontend.topic_lags"),
        *("frontend.member_totals", "frontend.member_partitions", "frontend.reset_topics", "frontend.reset_partitions"),
    ],
)
def test_each_watermark_is_read_once(wide: psycopg.Connection[Any], name: str, plans: str) -> None:
    group = wide.execute("select id from groups_group where group_id = 'g0'").fetchone()
    assert group is not None
    parameters = {**EVERYTHING, **ALL.with_groups(), **ALL.topics.parameters()}
    parameters |= {"pk": group[0], "group_id": "g0", "after": group[0] - 1, "upto": group[0]}
    package, statement = name.split(".")
    with wide.transaction(force_rollback=True):
        wide.execute(f"set local plan_cache_mode = force_{plans}_plan".encode())
        before = rows_read(wide, "groups_watermark")
        wide.execute(getattr(queries(package), statement), parameters, prepare=True)
        assert PARTITIONS <= rows_read(wide, "groups_watermark") - before <= 2 * PARTITIONS
