"""Coordinator nodes: leases, the partitions they own, fail-over and hand-over.

Source: architecture.md 6; offsets.md 9; docs/decisions/coordinator-nodes.md.
"""
