"""The lanes of commits and fetches: those of many groups in one transaction or statement (architecture.md 4)."""
