"""The REST API of committed offsets (HTTP contract, section 4)."""
