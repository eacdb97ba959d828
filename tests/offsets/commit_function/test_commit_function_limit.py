"""The SQL function has the metadata limit of the settings once the database was migrated."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from pytest_django.fixtures import SettingsWrapper

from kcoord.config import Config


def limit(database: str) -> int:
    with psycopg.connect(database) as connection:
        row = connection.execute("select kcoord.offset_metadata_max_bytes()").fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture
def migrated(database: str, settings: SettingsWrapper) -> Iterator[str]:
    """A database that was migrated with another limit; the usual one is back afterwards."""
    usual = django_settings.KCOORD
    settings.KCOORD = Config({"offset.metadata.max.bytes": 17})
    call_command("migrate", verbosity=0)
    yield database
    settings.KCOORD = usual
    call_command("migrate", verbosity=0)
    assert limit(database) == usual.int("offset.metadata.max.bytes")


def test_a_migration_tells_the_function_the_limit(migrated: str) -> None:
    assert limit(migrated) == 17
    with psycopg.connect(migrated) as connection:
        connection.execute(
            "insert into groups_topic (name, topic_id, partitions, labels, created_at)"
            " values ('orders', gen_random_uuid(), 1, '{}', 0)"
        )
        offsets = '[{"topic": "orders", "partition": 0, "committed_offset": 1, "committed_metadata": "%s"}]'
        connection.execute("select kcoord.commit_offsets('g', '', -1, %s)", [offsets % ("x" * 17)])
        with pytest.raises(psycopg.Error) as refused:
            connection.execute("select kcoord.commit_offsets('g', '', -1, %s)", [offsets % ("x" * 18)])
    assert refused.value.sqlstate == "KC012"
