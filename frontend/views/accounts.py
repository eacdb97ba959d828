"""Sign-in with a password, password change. There is no registration: accounts are created in the admin.

Sign-in at an identity provider is in `frontend.views.identity`, sign-out in `frontend.views.sign_out`.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.views import LoginView, PasswordChangeView
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse_lazy

from frontend import throttle
from frontend.views.page import header, message
from kcoord.access import read_only
from kcoord.audit import caller as callers
from kcoord.audit.recording import Act
from kcoord.audit.requests import note
from kcoord.identity_settings import ISSUER, PASSWORDS


class SignIn(LoginView):
    """Name and password. After too many failures in a row the next attempt has to wait (`frontend.throttle`)."""

    template_name = "frontend/sign_in.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Check the password, unless this account or address has to wait first: then 429 with Retry-After."""
        wait_ms = throttle.count_attempt(request.POST.get("username", ""), _address(request))
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
        throttle.succeeded(self.request.POST.get("username", ""), _address(self.request))
        self.request.session.flush()  # what it was for ends within minutes: a sign-in at the provider, or a sign-out
        return super().form_valid(form)


class ChangePassword(PasswordChangeView):
    """A new password for the signed-in user. Wrong present passwords count as failed attempts to sign in."""

    template_name = "frontend/password.html"
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
        wait_ms = throttle.count_attempt(request.user.get_username(), _address(request))
        if wait_ms:
            return _told_to_wait(self, wait_ms, form=PasswordChangeForm(request.user))
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: Any) -> HttpResponse:
        """The present password was correct, and the new one is acceptable."""
        throttle.succeeded(self.request.user.get_username(), _address(self.request))
        return super().form_valid(form)

    def form_invalid(self, form: Any) -> HttpResponse:
        """A wrong present password is recorded, as at the sign-in."""
        name = self.request.user.get_username()
        if "old_password" not in form.errors:
            throttle.succeeded(name, _address(self.request))
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
