"""How far behind groups are, in records and in time."""
