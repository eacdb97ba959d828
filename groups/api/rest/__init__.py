"""The REST API of groups and topics (http-api.md 3 and 4)."""
