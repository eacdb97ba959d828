"""Reconcile: does the table of committed offsets say what the commits said? `reconciling` is the run.

`order` looks at the history of each partition, `fencing` at generations and members, `state` compares the last line of
each partition with the view and with the logs, `items` says where the items of share groups are. All are functions from
DataFrames to DataFrames of findings.
"""
