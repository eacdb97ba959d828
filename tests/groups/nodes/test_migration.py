"""Groups that were there before coordinator nodes get their partition."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace

import psycopg
import pytest
from django.apps import apps
from django.db import connections

MIGRATION = import_module("groups.migrations.0013_coordinator_nodes")
BEFORE = """
insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, new_member_added, version,
                          created_at, updated_at)
values (%s, 'classic', 'Empty', 'Dead', 0, 0, false, 1, 0, 0)
"""
VERIFIED = {"foo": 24, "group-1": 49, "my-group": 12, "orders": 31, "polygenelubricants": 0, "другая": 43, "日本": 47}
"""Of fifty partitions (offsets.md 9.1)."""


def test_the_migration_computes_partitions_in_batches(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MIGRATION, "BATCH", 3)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.cursor().executemany(BEFORE, [[name] for name in VERIFIED])
        try:
            MIGRATION.fill_partitions(apps, SimpleNamespace(connection=connections["default"]))
        finally:
            connections.close_all()
        found = dict(connection.execute("select group_id, partition from groups_group").fetchall())
    assert found == VERIFIED
