"""The days of the journal, with a real worker: a new database has them as soon as the worker is there."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.processes.test_celery import rows, wait_for_row
from tests.support.journal import DAYS, drop_days
from tests.support.processes import start_worker

pytestmark = [pytest.mark.processes, pytest.mark.whole("more of a worker; the default has one worker and beat at work")]


@pytest.fixture(autouse=True)
def no_days(database: str) -> Iterator[None]:
    """None from before, none is left."""
    drop_days(database)
    yield
    drop_days(database)


async def test_a_worker_that_starts_makes_the_days_without_waiting_for_beat(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "insert into offset_commit_log (at, kind, group_name, topic, partition, committed_offset)"
            " values ((extract(epoch from clock_timestamp()) * 1000)::bigint, 'commit', 'g', 't', 0, 1)"
        )
    with start_worker(database) as worker:
        await wait_for_row(database, f"select 1 from ({DAYS}) days having count(*) >= 4")
        worker.terminate()
    assert rows(database, "select * from offset_commit_log_default") == [], "the line is in a day of its own"
    assert len(rows(database, "select * from offset_commit_log")) == 1
