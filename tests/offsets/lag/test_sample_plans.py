"""Statements on samples and lag find them by index, however many there are."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from kcoord.database.sql import queries
from tests.conftest import START_MS
from tests.support.database import cloned_database

pytestmark = pytest.mark.whole("plans beside many rows of others; test_statements has those of hot statements")

PAGE = {
    "visible_names": [],
    "visible_prefixes": [""],
    "visible_denied": [],
    "visible_denied_prefixes": [],
    "topic": None,
    "subscribed": [],
}
BATCH = {"after_topic": 0, "after_partition": -1, "limit": 100}


@pytest.fixture(scope="module")
def filled(postgres: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A database with many samples."""
    with cloned_database(postgres) as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
        fill(connection)
        yield connection


@pytest.mark.parametrize(
    ("statement", "parameters", "indexes"),
    [
        ("samples_around", {"topic": "t1", "partitions": None, "at": START_MS}, {"offsets_watermarksample_pkey"}),
        ("sample_watermarks", {**BATCH, "oldest": 0}, {"offsets_watermarksample_pkey", "groups_watermark_once"}),
        (
            "sample_lag",
            {"after": 0, "upto": 3, "now": START_MS},
            {"offsets_watermarksample_pkey", "offsets_sample_by_end"},
        ),
        (
            "lag_topics",
            {**PAGE, "group_id": "g1", "now": START_MS},
            {"offsets_watermarksample_pkey", "offsets_sample_by_end", "groups_group_group_id"},
        ),
        (
            "lag_partitions",
            {**PAGE, "group_id": "g1", "after_topic": "", "after_partition": -1, "limit": 101},
            {"groups_group_group_id"},
        ),
        (
            "samples_of_positions",
            {"topics": ["t1"], "partitions": [3], "positions": [980]},
            {"offsets_watermarksample_pkey", "offsets_sample_by_end"},
        ),
        ("drop_samples_of_deleted_topics", {"limit": 100}, {"offsets_watermarksample_pkey"}),
        ("last_lag_sample", {}, {"offsets_lagsample_time"}),
        ("lag_sample_instants", {}, {"offsets_lagsample_time"}),
        ("drop_lag_samples", {"instants": [START_MS], "limit": 100}, {"offsets_lagsample_time"}),
        (
            "lag_history",
            {**PAGE, "group_id": "g1", "all_topics": True, "since": None, "until": None, "after": -1, "limit": 101},
            {"offsets_lagsample_pkey"},
        ),
    ],
)
def test_statement_uses_its_indexes(
    filled: psycopg.Connection[tuple[object, ...]], statement: str, parameters: dict[str, object], indexes: set[str]
) -> None:
    text = f"explain {getattr(queries('offsets'), statement)}"
    plan = "\n".join(str(row[0]) for row in filled.execute(text.encode(), parameters))
    assert {index for index in indexes if index not in plan} == set(), plan
    for table in ("offsets_watermarksample", "offsets_lagsample", "offsets_committedoffset", "groups_group"):
        assert f"Seq Scan on {table}" not in plan, plan


def fill(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Enough rows that reading all of them is not the cheapest way."""
    for statement in (
        "insert into groups_topic (name, topic_id, partitions, labels, created_at)"
        " select 't' || n, gen_random_uuid(), 20, '{}', 0 from generate_series(1, 50) n",
        "insert into groups_watermark (topic_id, partition, log_start_offset, log_end_offset, sampled_at)"
        f" select t.id, p, 0, 1000, {START_MS} from groups_topic t, generate_series(0, 19) p",
        "insert into offsets_watermarksample (topic_id, partition, at, until, log_start_offset, log_end_offset)"
        f" select t.id, p, {START_MS} - 60000 * k, {START_MS} - 60000 * k, 0, 1000 - k"
        " from groups_topic t, generate_series(0, 19) p, generate_series(0, 39) k",
        "insert into groups_group (group_id, type, state, previous_state, state_since, generation_id,"
        " new_member_added, version, created_at, updated_at)"
        " select 'g' || n, 'classic', 'Empty', 'Empty', 0, 0, false, 1, 0, 0 from generate_series(1, 2000) n",
        "insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,"
        " commit_timestamp, member_id, generation_id)"
        " select g.id, 't1', p, 980, -1, '', 0, '', -1 from groups_group g, generate_series(0, 19) p",
        "insert into offsets_lagsample (group_name, topic, at, lag)"
        f" select 'g' || n, 't1', {START_MS} - 60000 * k, 5 from generate_series(1, 1000) n, generate_series(0, 39) k",
    ):
        connection.execute(statement.encode())
    for table in ("groups_topic", "groups_watermark", "groups_group", "offsets_watermarksample", "offsets_lagsample"):
        connection.execute(f"analyze {table}".encode())
    connection.execute(b"analyze offsets_committedoffset")
