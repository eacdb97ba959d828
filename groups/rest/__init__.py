"""The REST API of groups and topics (HTTP contract, sections 3 and 4)."""
