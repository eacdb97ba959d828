"""A partition of a group is found by the group, however many other groups read the same topic."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from kcoord.database.sql import queries
from tests.frontend.viewers import ALL
from tests.support.row_counts import rows_read

TOPICS, GROUPS, PARTITIONS = 3_000, 500, 10
FILL = (
    "insert into groups_topic (name, topic_id, partitions, labels, created_at)"
    " select 't' || n, gen_random_uuid(), %(partitions)s, '{}', 0 from generate_series(0, %(topics)s) n",
    "insert into groups_watermark (topic_id, partition, log_start_offset, log_end_offset, sampled_at)"
    " select id, p, 0, 9, 1 from groups_topic, generate_series(0, partitions - 1) p",
    "insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, new_member_added,"
    " version, created_at, updated_at)"
    " select 'g' || n, 'classic', 'Stable', 'Empty', 0, 0, false, 1, 0, 0"
    " from generate_series(1, %(topics)s + %(groups)s) n",
    "insert into groups_assignment (group_id, topic_id, topic, partition, member_id, generation_id)"
    " select id, t, t, p, 'm', 0"
    " from (select id, case when id - min(id) over () < %(topics)s then 't' || id - min(id) over () + 1 else 't0' end t"
    "       from groups_group) g, generate_series(0, %(partitions)s - 1) p",
    "insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,"
    " commit_timestamp, member_id, generation_id)"
    " select group_id, topic, partition, 5, -1, '', 0, '', -1 from groups_assignment",
    "analyze",
)
PAGE = {"topic": None, "subscribed": [], "after_topic": "", "after_partition": -1, "limit": 999}
JUDGED = {"stalled_before": 0, "stalled_lag": 1, "stale_before": 0, "named": 5}


@pytest.mark.parametrize("plans", ["custom", "generic"])
@pytest.mark.parametrize("name", ["committed_page", "lag_partitions", "judge_owned"])
def test_offsets_of_other_groups_are_not_read(database: str, name: str, plans: str) -> None:
    with psycopg.connect(database) as connection:
        given = {"topics": TOPICS, "groups": GROUPS, "partitions": PARTITIONS}
        for statement in FILL:
            connection.execute(statement.encode(), given if "%(" in statement else None)
        group = connection.execute("select max(id) from groups_group").fetchone()
        assert group is not None
        parameters: dict[str, Any] = {**PAGE, **JUDGED, "after": group[0] - 1, "upto": group[0]}
        parameters |= {"group_id": f"g{TOPICS + GROUPS}", **ALL.topics.parameters()}
        connection.execute(f"set local plan_cache_mode = force_{plans}_plan".encode())
        before = rows_read(connection, "offsets_committedoffset", "groups_assignment")
        connection.execute(getattr(queries("offsets"), name), parameters, prepare=True)
        assert (
            PARTITIONS
            <= rows_read(connection, "offsets_committedoffset", "groups_assignment") - before
            <= 5 * PARTITIONS
        )
        connection.rollback()
