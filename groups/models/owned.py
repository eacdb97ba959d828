"""Rows that only the coordinator writes."""

from __future__ import annotations

from typing import Any, NoReturn

from django.db import models


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
