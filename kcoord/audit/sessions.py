"""Sign-ins, sign-outs and wrong passwords in the audit, by Django's signals: whatever way a person signs in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.http import HttpRequest

from kcoord.audit import caller as callers
from kcoord.audit.recording import Act, record_here
from kcoord.audit.requests import caller_of, note

SIGN_IN, SIGN_OUT = "session.sign-in", "session.sign-out"


def connect() -> None:
    """Record sessions. For `AppConfig.ready`."""
    user_logged_in.connect(_signed_in, dispatch_uid="kcoord.audit.signed_in")
    user_logged_out.connect(_signed_out, dispatch_uid="kcoord.audit.signed_out")
    user_login_failed.connect(_failed, dispatch_uid="kcoord.audit.login_failed")


def _signed_in(sender: Any, request: HttpRequest | None, user: Any, **kwargs: Any) -> None:
    backend = str(getattr(user, "backend", "")).rpartition(".")[2]
    callers.identify(user.get_username(), account_id=user.pk)
    record_here(Act(SIGN_IN, "account", user.get_username(), after={"backend": backend}))


def _signed_out(sender: Any, request: HttpRequest | None, user: Any, **kwargs: Any) -> None:
    if user is not None:
        callers.identify(user.get_username(), account_id=user.pk)
        record_here(Act(SIGN_OUT, "account", user.get_username()))


def _failed(sender: Any, credentials: Mapping[str, Any], request: HttpRequest | None = None, **kwargs: Any) -> None:
    """A wrong password. The name is recorded if it is that of an account: people type passwords into its field."""
    model = get_user_model()
    given = credentials.get(model.USERNAME_FIELD) or credentials.get("username") or ""
    name = given if model._default_manager.filter(**{model.USERNAME_FIELD: given}).exists() else ""
    caller = callers.of_request() or (caller_of(request) if request is not None else callers.of_process())
    caller.refused = True
    note([Act(SIGN_IN, "account", name, error="WRONG CREDENTIALS")], caller)
