"""Celery tasks of offsets: retention, journal upkeep, samples, abandoned transactions."""
