"""Days as the archive writes them (YYYY-MM-DD) and as the journal counts them (UTC, from 1970-01-01)."""

from __future__ import annotations

from datetime import date, timedelta

EPOCH = date(1970, 1, 1)


def day_number(written: str) -> int:
    """YYYY-MM-DD as days since 1970-01-01."""
    return (date.fromisoformat(written) - EPOCH).days


def written_day(day: int) -> str:
    """Days since 1970-01-01 as YYYY-MM-DD."""
    return (EPOCH + timedelta(days=day)).isoformat()
