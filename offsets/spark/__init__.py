"""The Spark jobs: the journal archived as a Delta table, and what is computed from it.

This package runs in the driver and in Spark's Python workers. It imports pyspark, pyarrow, deltalake, psycopg and the
standard library; of kcoord only what does not need Django. A service without an archive never imports it.

`source` reads Postgres, `session` starts Spark, `runs` keeps the records of runs, `archive` is the archive.
Source: architecture.md 7; docs/archive.md.
"""
