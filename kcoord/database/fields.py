"""What models of several apps share."""

from __future__ import annotations

from typing import Any, NoReturn

from django.db import models


class MillisField(models.BigIntegerField):  # type: ignore[type-arg]
    """An instant in milliseconds since the epoch, on the database's clock.

    Stored as a number because the protocol core counts in milliseconds and must read back exactly what it stored.
    """

    description = "Instant in milliseconds since the epoch"


class ProtocolOwned(models.Model):
    """Rows that only the store writes."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: the store writes these rows under the group's lock."""
        raise TypeError(f"{type(self).__name__} is written by the coordinator, never through the model")

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse, as `save` does."""
        raise TypeError(f"{type(self).__name__} is deleted by the coordinator, never through the model")
