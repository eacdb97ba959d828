"""Transformations of journal rows on their way to the archive: functions from DataFrames to DataFrames.

All take and return the columns of `offsets.spark.archive.schema`, unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from offsets.core.days import DAY_MS, day_number
from offsets.spark.archive.manifest import ManifestDay
from offsets.spark.archive.schema import COLUMNS, PARTITION
from offsets.spark.runs import DayTotal

HEX_DIGITS = 15
"""Hex digits kept of a row's SHA-256: 60 bits, which fit into a Postgres bigint."""

HALF_BITS = 32

BYTES_PER_BUCKET = 512 << 20
"""Size of the journal in Postgres per file: some two million rows, about 12 MB of Parquet."""

MAX_BUCKETS = 256


def dated(journal: DataFrame) -> DataFrame:
    """Rows of the journal with the column `date`: the UTC day of `at`."""
    return journal.withColumn(PARTITION, F.expr(f"date_add(date'1970-01-01', cast(at div {DAY_MS} as int))"))


def laid_out(rows: DataFrame, buckets: int) -> DataFrame:
    """In file layout: a group's rows of a day in one of `buckets` files, sorted by partition and time of writing.

    Sorted rows compress well, and a search for a group skips most of a file by the minima and maxima of row groups.
    """
    bucket = F.pmod(F.crc32(F.col("group_name").cast("binary")), F.lit(buckets))
    spread = rows.repartition(max(8, 2 * buckets), F.col(PARTITION), bucket)
    return spread.sortWithinPartitions(PARTITION, "group_name", "topic", "partition", "id")


def buckets_for(journal_bytes: int) -> int:
    """The number of files for a day, given the size of the journal in Postgres."""
    return min(MAX_BUCKETS, max(1, -(-journal_bytes // BYTES_PER_BUCKET)))


def row_hash() -> Column:
    """60 bits of a hash of all columns of the journal; Postgres computes the same (`archived_days.sql`).

    Each value is prefixed with its length, so that no two rows have the same encoding; NULL is `-`.
    """
    values = [
        F.coalesce(F.concat(F.length(text), F.lit(":"), text), F.lit("-"))
        for text in (F.col(name).cast("string") for name in COLUMNS)
    ]
    digits = F.substring(F.sha2(F.concat_ws(",", *values), 256), 1, HEX_DIGITS)
    return F.conv(digits, 16, 10).cast("bigint")


def day_totals(rows: DataFrame) -> DataFrame:
    """Columns `date`, `rows` and `checksum`: for each day the number of rows and the sum of their hashes.

    The halves of hashes are summed as bigint, which is exact for two billion rows a day. With decimals all of it took
    half as much CPU time again.
    """
    hashed = rows.select(PARTITION, row_hash().alias("hash"))
    high, low = F.shiftright("hash", HALF_BITS), F.col("hash").bitwiseAND(F.lit((1 << HALF_BITS) - 1))
    counted = hashed.groupBy(PARTITION).agg(
        F.count(F.lit(1)).alias("rows"), F.sum(high).alias("high"), F.sum(low).alias("low")
    )
    checksum = F.col("high").cast("decimal(20,0)") * F.lit(Decimal(1 << HALF_BITS)) + F.col("low")
    return counted.select(PARTITION, "rows", checksum.alias("checksum"))


def not_in(rows: DataFrame, archived: DataFrame) -> DataFrame:
    """Rows that are not in the archive, compared by all columns; NULL equals NULL."""
    return rows.join(archived, _same_row(rows, archived), "left_anti")


def also_in(archived: DataFrame, rows: DataFrame) -> DataFrame:
    """Archived rows that are among `rows`, compared by all columns; NULL equals NULL."""
    return archived.join(rows, _same_row(archived, rows), "left_semi")


def _same_row(left: DataFrame, right: DataFrame) -> Column:
    return reduce(and_, (left[name].eqNullSafe(right[name]) for name in COLUMNS))


def manifest_days(totals: DataFrame) -> tuple[ManifestDay, ...]:
    """The result of `day_totals`, for a manifest, by date."""
    days = sorted(totals.collect(), key=lambda row: row["date"])
    return tuple(ManifestDay(row["date"].isoformat(), row["rows"], int(row["checksum"])) for row in days)


def counted_days(days: Iterable[ManifestDay]) -> list[DayTotal]:
    """Days of a manifest in the form that the database uses."""
    return [DayTotal(day_number(day.date), day.rows, day.checksum) for day in days]
