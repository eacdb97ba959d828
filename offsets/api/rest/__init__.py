"""The REST API of committed offsets (http-api.md 4)."""
