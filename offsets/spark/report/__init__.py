"""Reports from the archive: daily consumption and rewinds of groups, and how their members came and went.

`jobs` has functions from DataFrames to DataFrames, `reporting` runs them and keeps their tables. docs/archive.md.
"""
