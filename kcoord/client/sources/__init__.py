"""Record sources that are ready to use with `kcoord.client`: lines of files, files, lists, rows of a Postgres table.

Each is a module of its own; only `kcoord.client.sources.postgres` needs psycopg (in a clone: `pip install
'.[postgres]'`).
"""
