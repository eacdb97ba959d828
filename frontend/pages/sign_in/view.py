"""Sign-in and change of password.

Guessing is slowed down: after several failures in a row the next attempt has to wait. Failures are counted in the
database, so that it holds across server processes and restarts, under two keys: the account name (5 failures are free)
and the address (20 are free, since a proxy or office shares one). Names that Django's sign-in treats as equal, and
addresses that belong to one subscriber of a provider, count as one. Each further failure doubles
the wait, from one second up to a minute: guessing stays at about one password per minute, and a user locked out by
someone else's attempts gets in within that minute. After a quarter of an hour without a failure the count is reset.
An attempt counts before its password is checked, so that concurrent attempts cannot all pass.
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.views import LoginView, PasswordChangeView
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse_lazy

from frontend.ui.page import header, message
from kcoord.access import read_only
from kcoord.audit import caller as callers
from kcoord.audit.recording import Act
from kcoord.audit.refusals import network
from kcoord.audit.requests import note
from kcoord.identity_settings import ISSUER, PASSWORDS
from kcoord.sql import queries

Q = queries("frontend")

FORGET_MS = 15 * 60_000
LONGEST_WAIT_MS = 60_000
FREE_FOR_ACCOUNT = 5
FREE_FOR_ADDRESS = 20

LONGEST_NAME = 254
"""Longer names have no account. They are not normalized (neither does Django): it would be wasted time."""


@dataclass(frozen=True, slots=True)
class Key:
    """What is counted, and how many failures are allowed before it has to wait."""

    key: str
    free: int

    def parameters(self) -> dict[str, str | int]:
        """The values as parameters of the statements."""
        return {"key": self.key, "free": self.free, "forget_ms": FORGET_MS, "longest_ms": LONGEST_WAIT_MS}


def account_key(username: str) -> Key:
    """The key of an account, existing or not. Hashed: people type passwords into this field.

    Django's form strips a name and applies NFKC before the account is looked up, so all spellings of one account have
    one key. Accounts that differ only in case share theirs.
    """
    return Key("account:" + hashlib.sha256(_folded(username).encode()).hexdigest(), FREE_FOR_ACCOUNT)


def address_key(address: str) -> Key:
    """The key of a client's address: its /64 for IPv6, unless it is an IPv4-mapped address."""
    return Key(f"address:{network(address)}", FREE_FOR_ADDRESS)


def _folded(username: str) -> str:
    name = username.strip()
    if len(name) > LONGEST_NAME:
        return name
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()


def count_attempt(username: str, address: str) -> int:
    """Count a sign-in attempt; returns how many ms it has to wait, 0 if it may proceed.

    An attempt that has to wait does not count, or an attacker could keep an account locked indefinitely.
    """
    with connection.cursor() as cursor:
        for key in (address_key(address), account_key(username)):
            cursor.execute(Q.count_attempt, key.parameters())
            if cursor.fetchone() is None:
                cursor.execute(Q.wait_ms, key.parameters())
                row = cursor.fetchone()
                return max(int(row[0]) if row else 0, 1)
    return 0


def succeeded(username: str, address: str) -> None:
    """The attempt just counted succeeded: the account's count is reset, the address gets its one attempt back."""
    with connection.cursor() as cursor:
        cursor.execute(Q.forgive_user, account_key(username).parameters())
        cursor.execute(Q.forgive_one, address_key(address).parameters())
        cursor.execute(Q.forget_old_attempts, {"forget_ms": FORGET_MS})


class SignIn(LoginView):
    """Name and password. After too many failures in a row the next attempt has to wait."""

    template_name = "frontend/pages/sign_in/sign_in.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Check the password, unless this account or address has to wait first: then 429 with Retry-After."""
        wait_ms = count_attempt(request.POST.get("username", ""), _address(request))
        if wait_ms:
            name = request.POST.get("username", "")
            return _told_to_wait(self, wait_ms, form=AuthenticationForm(request), username=name)
        return super().post(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """With the label of the identity provider, "" without one, and whether passwords are the exception."""
        config = settings.KCOORD
        label = config.str("oidc.label") if config.str(ISSUER) else ""
        return super().get_context_data(provider=label, emergency=config.str(PASSWORDS) == "emergency", **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """The password was correct."""
        succeeded(self.request.POST.get("username", ""), _address(self.request))
        self.request.session.flush()  # what it was for ends within minutes: a sign-in at the provider, or a sign-out
        return super().form_valid(form)


class ChangePassword(PasswordChangeView):
    """A new password for the signed-in user. Wrong present passwords count as failed attempts to sign in."""

    template_name = "frontend/pages/sign_in/password.html"
    success_url = reverse_lazy("frontend:password-changed")

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """403 for an account without a password: there is none to change."""
        if request.user.is_authenticated and not request.user.has_usable_password():
            raise PermissionDenied("This account has no password: it signs in at the identity provider.")
        if request.user.is_authenticated:
            callers.identify(request.user.get_username(), account_id=request.user.pk)
            if refused := read_only.refusal(request):
                return message(request, 403, "Not allowed", refused)
        with transaction.atomic():  # the password with its record
            return super().dispatch(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Check the present password, unless this account or address has to wait first: then 429 with Retry-After."""
        wait_ms = count_attempt(request.user.get_username(), _address(request))
        if wait_ms:
            return _told_to_wait(self, wait_ms, form=PasswordChangeForm(request.user))
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: Any) -> HttpResponse:
        """The present password was correct, and the new one is acceptable."""
        succeeded(self.request.user.get_username(), _address(self.request))
        return super().form_valid(form)

    def form_invalid(self, form: Any) -> HttpResponse:
        """A wrong present password is recorded, as at the sign-in."""
        name = self.request.user.get_username()
        if "old_password" not in form.errors:
            succeeded(name, _address(self.request))
        else:
            note([Act("account.password", "account", name, error="WRONG CREDENTIALS")])
        return super().form_invalid(form)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """With the current user, for the header."""
        return super().get_context_data(**header(self.request, ""), **kwargs)


def _told_to_wait(view: SignIn | ChangePassword, wait_ms: int, **shown: Any) -> HttpResponse:
    """The page of a form again, with how long to wait: 429 with Retry-After."""
    seconds = -(-wait_ms // 1000)
    response = view.render_to_response(view.get_context_data(wait=seconds, **shown), status=429)
    response.headers["Retry-After"] = str(seconds)
    return response


def _address(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))
