"""The tables of the pages: failed sign-ins, and the views of the list of groups that accounts saved.

Everything else that pages show belongs to groups and offsets.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower

from kcoord.database.fields import MillisField


class SignInAttempt(models.Model):
    """Consecutive failed sign-ins, by account name or by address. Written only by `frontend.pages.sign_in.view`."""

    key = models.CharField(max_length=300, primary_key=True)
    failures = models.PositiveIntegerField()
    last_at = MillisField()

    class Meta:
        indexes = [models.Index(fields=["last_at"], name="frontend_signin_by_time")]

    def __str__(self) -> str:
        return f"{self.key}: {self.failures}"


class SavedView(models.Model):
    """The list of groups as an account saved it. Written only by `frontend.pages.groups.saved`."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=60)
    query = models.TextField(blank=True)
    """What follows the question mark in the address of the list; "" for all groups."""
    created_at = MillisField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="frontend_savedview_name")]
        ordering = [Lower("name"), "name"]

    def __str__(self) -> str:
        return self.name


class ProviderIdentity(models.Model):
    """Whose account it is, at an identity provider. Written only by `frontend.identity.accounts`."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)
    """The claim `sub`: the provider never gives it to another person."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="frontend_provideridentity_once")]
        verbose_name = "provider identity"
        verbose_name_plural = "provider identities"

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"
