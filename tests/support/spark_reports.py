"""Reports as a run of Spark leaves them: its row, and Parquet files in the folder of an archive. Without Spark."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.spark_runs import now_ms, put_run

BIGINT, TEXT, DATE = pa.int64(), pa.string(), pa.date32()
COUNTS = pa.map_(TEXT, pa.field("value", BIGINT, nullable=False))
SCHEMAS = {
    "groups": pa.schema(
        {"group_name": TEXT}
        | dict.fromkeys(("commits", "consumed", "rewinds", "members", "first_commit_at", "last_commit_at"), BIGINT)
        | dict.fromkeys(("rebalances", "rebalances_since"), BIGINT)
    ),
    "consumption": pa.schema(
        {"group_name": TEXT, "date": DATE}
        | dict.fromkeys(("commits", "consumed", "rewinds", "partitions"), BIGINT)
        | {"records_per_second": pa.float64()}
    ),
    "busiest_partitions": pa.schema(
        {"topic": TEXT, "partition": pa.int32()} | dict.fromkeys(("consumed", "commits", "groups"), BIGINT)
    ),
    "rebalances": pa.schema(
        {"group_name": TEXT, "date": DATE, "rebalances": BIGINT, "causes": COUNTS, "since": BIGINT}
    ),
    "generations": pa.schema({"group_name": TEXT, "date": DATE, "generations": BIGINT}),
    "members": pa.schema(
        {"group_name": TEXT, "member_id": TEXT}
        | dict.fromkeys(("first_commit_at", "last_commit_at", "generations", "commits"), BIGINT)
    ),
    "turnover": pa.schema({"group_name": TEXT, "date": DATE, "came": BIGINT, "went": BIGINT}),
}
"""The tables that pages read, as `offsets.spark.report` writes them; a test of the report compares them."""


def put_report(
    connection: psycopg.Connection,
    folder: Path,
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    days: Sequence[Mapping[str, Any]] = (),
    **given: Any,
) -> str:
    """A run of report with these rows; tables that are not given are empty. Returns its id."""
    run_id, written = str(uuid.uuid4()), []
    for name, schema in SCHEMAS.items():
        path = f"reports/run={run_id}/{name}/00000.parquet"
        (folder / path).parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(list(tables.get(name, ())), schema), folder / path)
        written.append(path)
    result = {"rows": 1, "tables": {}, "days": list(days), "written": written} | given
    result.setdefault("rebalances_since", now_ms() - 10 * 86_400_000)
    return put_run(connection, "report", id=run_id, rows=1, files=len(written), result=result)


def days_before(count: int) -> list[date]:
    """So many days up to today, the oldest first."""
    today = datetime.now(UTC).date()
    return [today - timedelta(days=back) for back in reversed(range(count))]


def group_row(name: str, **given: Any) -> dict[str, Any]:
    """A row of the table `groups`."""
    now = now_ms()
    row = {
        "group_name": name, "commits": 100, "consumed": 5_000, "rewinds": 2, "members": 3,
        "first_commit_at": now - 40 * 86_400_000, "last_commit_at": now - 3_600_000, "rebalances": 4,
        "rebalances_since": now - 10 * 86_400_000,
    }  # fmt: skip
    return row | given


def busy_report(connection: psycopg.Connection, folder: Path, name: str, days: int = 40, groups: int = 3) -> str:
    """A report of a group that was at work for some days, among others."""
    dates = days_before(days)
    since = now_ms() - min(days // 2, 30) * 86_400_000
    others = [
        group_row(f"team-{number % 97:02}.service-{number:05}", consumed=number * 977, last_commit_at=since - number)
        for number in range(groups - 1)
    ]
    causes = [("member_joined", 2), ("session_expired", 1)]
    members = [f"{name}-{uuid.uuid5(uuid.NAMESPACE_DNS, str(number))}" for number in range(60)]
    rebalanced = dates[days // 2 :: 3]
    own = {"rebalances": 3 * len(rebalanced), "rebalances_since": since, "members": len(members)}
    tables: dict[str, list[dict[str, Any]]] = {
        "groups": [group_row(name, consumed=9_876_543_210, **own), *others],
        "consumption": [
            {
                "group_name": name, "date": day, "commits": 400 + 37 * (n % 11), "consumed": 90_000 * (1 + n % 9),
                "rewinds": n % 5 // 4, "partitions": 12, "records_per_second": 1.0,
            }
            for n, day in enumerate(dates)
        ],
        "busiest_partitions": [
            {"topic": f"orders-{n % 40}", "partition": n, "consumed": 10**9 - n * 1_000, "commits": 70, "groups": 2}
            for n in range(min(groups * 40, 1_000))
        ],
        "rebalances": [
            {"group_name": name, "date": day, "rebalances": 3, "causes": causes, "since": since}
            for day in rebalanced
        ],
        "generations": [{"group_name": name, "date": day, "generations": 1 + n % 2} for n, day in enumerate(dates)],
        "members": [
            {
                "group_name": name, "member_id": member, "first_commit_at": since, "last_commit_at": since + n * 60_000,
                "generations": 4, "commits": 90,
            }
            for n, member in enumerate(members)
        ],
        "turnover": [{"group_name": name, "date": day, "came": n % 4, "went": n % 3} for n, day in enumerate(dates)],
    }  # fmt: skip
    begins = datetime.fromtimestamp(since / 1000, UTC).date()
    totals = [
        {
            "date": day.isoformat(), "groups": groups, "commits": 4_000 + n * 30, "consumed": 1_234_567 * (1 + n % 7),
            "rewinds": n % 4, "rebalances": n % 6 if day >= begins else None,
        }
        for n, day in enumerate(dates)
    ]  # fmt: skip
    return put_report(connection, folder, tables, totals, rebalances_since=since)
