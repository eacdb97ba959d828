"""Postgres as every part of the service uses it: pools, liveness, waits for locks, notifications, time."""
