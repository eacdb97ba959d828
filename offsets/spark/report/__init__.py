"""Reports from the archive: what groups consumed, went back over, and how their members came and went, by day.

`jobs` has functions from DataFrames to DataFrames, `reporting` runs them and keeps their tables. docs/archive.md.
"""
