"""The commit lane: steady commits of many groups in one transaction, without their mailboxes (architecture.md 4)."""
