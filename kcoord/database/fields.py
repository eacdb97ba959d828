"""Model fields that several apps use."""

from __future__ import annotations

from django.db import models


class MillisField(models.BigIntegerField):  # type: ignore[type-arg]
    """An instant in milliseconds since the epoch, on the database's clock.

    Stored as a number because the protocol core counts in milliseconds and must read back exactly what it stored.
    """

    description = "Instant in milliseconds since the epoch"
