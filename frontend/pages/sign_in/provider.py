"""Sign-in at the identity provider: the way there, and the way back."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.contrib.auth import login, user_login_failed
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render, resolve_url
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from frontend.identity import accounts, provider
from frontend.identity.provider import Attempt, Provider
from frontend.identity.refusals import Reason, SignInRefused
from frontend.pages.sign_in import sign_out
from kcoord.http import context
from kcoord.identity_settings import is_safe_url

log = structlog.get_logger(__name__)

PENDING = "oidc_pending"
"""Key of the session: the attempts that this browser has begun."""
PENDING_SECONDS = 600
MOST_PENDING = 5
BACKEND = "frontend.identity.backends.ProviderBackend"
LONGEST_NEXT = 2_000
LONGEST_PARAMETER = 4_096


@require_GET
@never_cache
def begin(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider, with an attempt in its session that only its answer can complete."""
    configured, next_url = _configured(), request.GET.get("next", "")
    if request.user.is_authenticated:
        return redirect(_target(request, next_url))
    attempt = Attempt.new(request.build_absolute_uri(reverse("frontend:identity-answer")))
    try:
        if not is_safe_url(attempt.redirect_uri):
            host = urlsplit(attempt.redirect_uri).netloc
            raise SignInRefused(Reason.INSECURE, f"people would be sent back to http://{host}")
        address = configured.address(attempt)
    except SignInRefused as refused:
        return _refuse(request, configured, refused)
    known = _fresh(request)
    known[attempt.state] = asdict(attempt) | {"next": next_url[:LONGEST_NEXT], "until": time.time() + PENDING_SECONDS}
    request.session[PENDING] = dict(list(known.items())[-MOST_PENDING:])
    request.session.set_expiry(PENDING_SECONDS)
    return HttpResponseRedirect(address)


@require_GET
@never_cache
def answer(request: HttpRequest) -> HttpResponse:
    """The browser comes back from the provider: sign in whom it vouches for, under a new session id."""
    configured = _configured()
    try:
        pending = _take(request)
        if "error" in request.GET:
            said = f"{request.GET['error']:.100}: {request.GET.get('error_description', ''):.300}"
            raise SignInRefused(Reason.DENIED, said)
        code = request.GET.get("code", "")
        if not 0 < len(code) <= LONGEST_PARAMETER:
            raise SignInRefused(Reason.UNEXPECTED, "the answer has no code, or one that is too long")
        attempt = Attempt(*(str(pending[name]) for name in ("state", "nonce", "verifier", "redirect_uri")))
        vouched = configured.vouched(attempt, code, request.GET.get("iss"))
        user = accounts.account(settings.KCOORD, accounts.person(settings.KCOORD, vouched.claims))
    except SignInRefused as refused:
        return _refuse(request, configured, refused)
    request.session.flush()  # a new session: one that was planted before is worth nothing
    login(request, user, backend=BACKEND)
    sign_out.remember(request.session, vouched)
    age = timedelta(milliseconds=settings.KCOORD.int("oidc.session.max.age.ms"))
    request.session.set_expiry(timezone.now() + age)
    log.info("identity_signed_in", user=user.get_username())
    return redirect(_target(request, str(pending["next"])))


def _configured() -> Provider:
    found = provider.of(settings.KCOORD)
    if found is None:
        raise Http404
    return found


def _fresh(request: HttpRequest) -> dict[str, dict[str, Any]]:
    """The attempts of this browser that are not too old."""
    known: dict[str, dict[str, Any]] = request.session.get(PENDING, {})
    return {state: pending for state, pending in known.items() if pending["until"] > time.time()}


def _take(request: HttpRequest) -> dict[str, Any]:
    """The attempt that this answers, which nothing can answer again. Raises SignInRefused NOT_STARTED_HERE."""
    given, known = request.GET.get("state", ""), _fresh(request)
    for state in list(known):
        if constant_time_compare(state, given):
            taken = known.pop(state)
            request.session[PENDING] = known
            request.session.save()  # before the provider is asked: a second answer must find it gone
            return taken
    raise SignInRefused(Reason.NOT_STARTED_HERE, "the state is not one of this browser's")


def _target(request: HttpRequest, next_url: str) -> str:
    """Where to go after sign-in: a page of this host, or the first one."""
    hosts = {request.get_host()}
    if next_url and url_has_allowed_host_and_scheme(next_url, hosts, require_https=request.is_secure()):
        return next_url
    return resolve_url(settings.LOGIN_REDIRECT_URL)


def _refuse(request: HttpRequest, configured: Provider, refused: SignInRefused) -> HttpResponse:
    """The page of a failed sign-in. Details are in the log, under the reference that the page shows."""
    reference = context.request_id()
    log.warning("identity_refused", reason=refused.reason.name, detail=refused.detail, user=refused.username)
    credentials = {"username": refused.username, "provider": configured.issuer, "reason": refused.reason.name}
    user_login_failed.send(sender=__name__, credentials=credentials, request=request)
    shown = {"explanation": refused.reason.value, "reference": reference}
    return render(request, "frontend/pages/sign_in/sign_in_failed.html", shown, status=refused.reason.value.status)
