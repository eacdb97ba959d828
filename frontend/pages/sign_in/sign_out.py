"""Sign-out at the provider, after the session here has ended: what is kept for it, and where the browser is sent.

What it takes is kept in the session at sign-in: a sign-out asks the provider nothing, so it works while that is down.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import asdict, dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.views import LogoutView
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from frontend.identity import provider
from frontend.identity.provider import Vouched
from kcoord.identity_settings import SIGN_OUT

KEPT = "oidc_sign_out"
"""Key of the session of somebody who signed in at the provider: its address for sign-outs, and the ID token."""
LEAVING = "oidc_leaving"
"""Key of the session of a browser that has signed out here, and not yet at the provider."""
LEAVING_SECONDS = 600
LONGEST_HINT = 4_096
"""Characters of an ID token in an address: many servers and proxies take none of more than 8 kB."""


@dataclass(slots=True)
class Leaving:
    """A sign-out at the provider that is possible. `sent`: the browser has been sent there once."""

    address: str
    state: str
    until: float
    sent: bool = False


def remember(session: SessionBase, vouched: Vouched) -> None:
    """Keep what a sign-out of this session takes, unless people never sign out at the provider from here."""
    if vouched.sign_out_url and settings.KCOORD.str(SIGN_OUT) != "never":
        hint = vouched.id_token if len(vouched.id_token) <= LONGEST_HINT else ""
        session[KEPT] = {"url": vouched.sign_out_url, "id_token": hint}


def possible(session: SessionBase, redirect_uri: str) -> Leaving | None:
    """How a session that is about to end can be signed out at the provider, without a request to it; None: it cannot.

    `redirect_uri`: where the provider sends the browser afterwards.
    """
    kept, configured = session.get(KEPT), provider.of(settings.KCOORD)
    if kept is None or configured is None or settings.KCOORD.str(SIGN_OUT) == "never":
        return None
    state = secrets.token_urlsafe(32)
    address = configured.sign_out_address(kept["url"], kept["id_token"], redirect_uri, state)
    return Leaving(address, state, time.time() + LEAVING_SECONDS)


def keep(session: SessionBase, leaving: Leaving) -> None:
    """Keep it in the session of a browser that has signed out."""
    session[LEAVING] = asdict(leaving)
    session.set_expiry(LEAVING_SECONDS)


def kept(session: SessionBase) -> Leaving | None:
    """The sign-out at the provider that this browser has yet to complete; None: nothing is pending, or it expired."""
    found: dict[str, Any] | None = session.get(LEAVING)
    leaving = None if found is None else Leaving(**found)
    return leaving if leaving is not None and leaving.until > time.time() else None


def is_answer(leaving: Leaving, state: str) -> bool:
    """Whether the provider sent the browser back from this sign-out."""
    return constant_time_compare(leaving.state, state)


class SignOut(LogoutView):
    """POST only: a link must not be able to sign users out."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """End the session, whatever the provider does; then its people see the page that leads there."""
        leaving = possible(request.session, request.build_absolute_uri(reverse("frontend:signed-out")))
        response: HttpResponse = super().post(request, *args, **kwargs)
        if leaving is None:
            return response
        keep(request.session, leaving)
        return redirect("frontend:signed-out")


@require_GET
@never_cache
def signed_out(request: HttpRequest) -> HttpResponse:
    """The session here has ended. The provider sends the browser here, too, once its own has."""
    leaving = kept(request.session)
    if request.user.is_authenticated or leaving is None:
        return redirect("frontend:home" if request.user.is_authenticated else "frontend:login")
    done = is_answer(leaving, request.GET.get("state", ""))
    if done:
        request.session.flush()
    at_once = not done and not leaving.sent and settings.KCOORD.str(SIGN_OUT) == "always"
    shown = {"provider": settings.KCOORD.str("oidc.label"), "done": done, "at_once": at_once}
    return render(request, "frontend/pages/sign_in/signed_out.html", shown)


@require_GET
@never_cache
def leave(request: HttpRequest) -> HttpResponse:
    """Send a browser that has signed out here to the provider."""
    leaving = kept(request.session)
    if leaving is None:
        return redirect("frontend:login")
    leaving.sent = True
    keep(request.session, leaving)
    return HttpResponseRedirect(leaving.address)
