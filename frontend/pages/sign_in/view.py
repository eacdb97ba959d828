"""Sign-in, here and at the identity provider, sign-out, and change of password.

Guessing is slowed down: after several failures in a row the next attempt has to wait. Failures are counted in the
database, so that it holds across server processes and restarts, under two keys: the account name (5 failures are free)
and the address (20 are free, since a proxy or office shares one). Names that Django's sign-in treats as equal, and
addresses that belong to one subscriber of a provider, count as one. Each further failure doubles
the wait, from one second up to a minute: guessing stays at about one password per minute, and a user locked out by
someone else's attempts gets in within that minute. After a quarter of an hour without a failure the count is reset.
An attempt counts before its password is checked, so that concurrent attempts cannot all pass.

What a sign-out at the provider takes is kept in the session at sign-in: it asks the provider nothing, so it works while
that is down.
"""

from __future__ import annotations

import hashlib
import secrets
import time
import unicodedata
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.contrib.auth import login, user_login_failed
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.views import LoginView, LogoutView, PasswordChangeView
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import redirect, render, resolve_url
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from frontend.identity import accounts, provider
from frontend.identity.provider import Attempt, Provider, Vouched
from frontend.identity.refusals import Reason, SignInRefused
from frontend.ui.page import header, message
from kcoord.access import read_only
from kcoord.access.audit.recording import Act
from kcoord.access.audit.refusals import network
from kcoord.access.audit.requests import note
from kcoord.database.sql import queries
from kcoord.identity_settings import ISSUER, PASSWORDS, SIGN_OUT, is_safe_url
from kcoord.requests import current

Q = queries("frontend")

FORGET_MS = 15 * 60_000
FIRST_WAIT_MS = 1_000
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
        waits = {"first_ms": FIRST_WAIT_MS, "longest_ms": LONGEST_WAIT_MS, "forget_ms": FORGET_MS}
        return {"key": self.key, "free": self.free, **waits}


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

    audit = "session.sign-in"
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

    audit = "account.password"
    template_name = "frontend/pages/sign_in/password.html"
    success_url = reverse_lazy("frontend:password-changed")

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """403 for an account without a password: there is none to change."""
        if request.user.is_authenticated and not request.user.has_usable_password():
            raise PermissionDenied("This account has no password: it signs in at the identity provider.")
        if request.user.is_authenticated:
            current.identify(request.user.get_username(), account_id=request.user.pk)
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

    audit = "session.sign-out"

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
    remember(request.session, vouched)
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
    reference = current.request_id()
    log.warning("identity_refused", reason=refused.reason.name, detail=refused.detail, user=refused.username)
    credentials = {"username": refused.username, "provider": configured.issuer, "reason": refused.reason.name}
    user_login_failed.send(sender=__name__, credentials=credentials, request=request)
    shown = {"explanation": refused.reason.value, "reference": reference}
    return render(request, "frontend/pages/sign_in/sign_in_failed.html", shown, status=refused.reason.value.status)
