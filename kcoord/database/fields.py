"""Model fields that several apps use."""

from __future__ import annotations

from django.db import models


class MillisField(models.BigIntegerField):  # type: ignore[type-arg]
    """An instant in milliseconds since the epoch, on the database's clock.

    Kept as a number because the protocol core counts in milliseconds and what is read back must be what was folded.
    """

    description = "Instant in milliseconds since the epoch"
