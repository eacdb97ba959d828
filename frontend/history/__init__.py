"""The past of a group: its rebalances as episodes."""
