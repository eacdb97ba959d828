"""Access to Postgres for the whole service: pools, liveness, lock waits, notifications, time."""
