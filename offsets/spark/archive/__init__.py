"""The archive: rows of the journal as a Delta table of Parquet files, at `<archive>/journal`.

`jobs` are functions from DataFrames to DataFrames, `storage` the folder, `manifest` the description of each
publication's files, `table` the Delta table, `publishing` makes files visible, `archiving` is the run, `compaction` a
part of it. What it says of an instant: `states` for all groups with Spark, `lookup` for one group without it.
Source: docs/archive.md; docs/decisions/archive-format.md.
"""
