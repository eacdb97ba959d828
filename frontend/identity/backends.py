"""Whose sessions count: of accounts with a password, and of people whom the provider knows."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.backends import BaseBackend, ModelBackend

from frontend.models import ProviderIdentity
from kcoord.identity_settings import PASSWORDS


def may_use_password(user: Any) -> bool:
    """Whether an active account may sign in with its password (`password.sign.in`)."""
    if settings.KCOORD.str(PASSWORDS) == "all":
        return True
    return user.is_superuser and not ProviderIdentity.objects.filter(user=user).exists()


class PasswordBackend(ModelBackend):
    """Django's own, restricted by `password.sign.in`; that ends sessions of accounts which may no longer sign in."""

    def user_can_authenticate(self, user: Any) -> bool:
        """Whether the account is active and may use a password."""
        return super().user_can_authenticate(user) and may_use_password(user)


class ProviderBackend(BaseBackend):
    """The sessions of people who signed in at the provider. They have the permissions of their account."""

    def get_user(self, user_id: int) -> Any:
        """The account of a session; None once it is deactivated or deleted."""
        user = get_user_model()._default_manager.filter(pk=user_id).first()
        return user if user is not None and user.is_active else None
