"""A transaction in a database with a topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def connection(database: str) -> Iterator[Connection]:
    """A transaction in a database with the topic `orders` of four partitions."""
    with psycopg.connect(database, autocommit=True) as setting_up:
        setting_up.execute(
            "insert into groups_topic (name, topic_id, partitions, labels, created_at)"
            " values ('orders', gen_random_uuid(), 4, '{}', 0)"
        )
    connection = psycopg.connect(database)
    yield connection
    connection.close()
