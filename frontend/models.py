"""The only table of the pages: failed sign-ins. Everything else that pages show belongs to groups and offsets."""

from __future__ import annotations

from django.db import models

from kcoord.database.fields import MillisField


class SignInAttempt(models.Model):
    """Consecutive failed sign-ins, by account name or by address. Written only by `frontend.throttle`."""

    key = models.CharField(max_length=300, primary_key=True)
    failures = models.PositiveIntegerField()
    last_at = MillisField()

    class Meta:
        indexes = [models.Index(fields=["last_at"], name="frontend_signin_by_time")]

    def __str__(self) -> str:
        return f"{self.key}: {self.failures}"
