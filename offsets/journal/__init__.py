"""The journal of committed offsets: reading it, its days, and where the archive continues it."""
