"""The journal of committed offsets: reading it, its days, and where it goes on in the archive."""
