"""The provider: its discovery document and keys, where people are sent, and what their code is exchanged for.

Source: OpenID Connect Core 1.0, 3.1; OpenID Connect Discovery 1.0; RFC 7636 (PKCE); RFC 9207 (iss of the answer);
OpenID Connect RP-Initiated Logout 1.0, 2.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from frontend.identity import id_token, transport
from frontend.identity.refusals import Reason, SignInRefused
from kcoord import identity_settings as names
from kcoord.config import Config

KEPT_SECONDS = 600.0
"""How long the discovery document and the keys are believed; an unknown key makes them be read again at once."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a browser that was sent to the provider must come back with, and where it goes then."""

    state: str
    nonce: str
    verifier: str
    redirect_uri: str

    @classmethod
    def new(cls, redirect_uri: str) -> Attempt:
        """With fresh secrets of 256 bits."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        return cls(state, nonce, verifier, redirect_uri)


@dataclass(frozen=True, slots=True)
class Vouched:
    """What the provider says of a person, and where and with which token they sign out there.

    `sign_out_url`: "" if the provider has no such place, or none that can be trusted.
    """

    claims: dict[str, Any]
    id_token: str
    sign_out_url: str


class Provider:
    """The provider of the settings; one per process and configuration."""

    def __init__(self, config: Config) -> None:
        self.issuer = config.str(names.ISSUER)
        self._client_id = config.str(names.CLIENT_ID)
        self._secret, self._secret_file = config.str(names.CLIENT_SECRET), config.str(names.CLIENT_SECRET_FILE)
        self._scopes = " ".join(config.str(names.SCOPES).split())
        self._wanted = (config.str("oidc.username.claim"), config.str("oidc.groups.claim"))
        self._timeout = config.int("oidc.timeout.ms") / 1000
        self._skew = -(-config.int("oidc.clock.skew.ms") // 1000)
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[dict[str, object], float]] = {}

    def address(self, attempt: Attempt) -> str:
        """Where to send the browser. Raises SignInRefused."""
        from authlib.oauth2.rfc7636 import create_s256_code_challenge  # not at every start, as in `id_token`

        endpoint = self._endpoint("authorization_endpoint")
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self._client_id,
                "redirect_uri": attempt.redirect_uri,
                "scope": self._scopes,
                "state": attempt.state,
                "nonce": attempt.nonce,
                "code_challenge": create_s256_code_challenge(attempt.verifier),
                "code_challenge_method": "S256",
            }
        )
        return _with_query(endpoint, query)

    def vouched(self, attempt: Attempt, code: str, answered_issuer: str | None) -> Vouched:
        """What the provider says of the person whose browser came back with `code`. Raises SignInRefused.

        `answered_issuer`: the parameter `iss` of the answer, so that providers cannot be confused with each other.
        """
        promised = self._metadata().get("authorization_response_iss_parameter_supported") is True
        if answered_issuer != self.issuer and (promised or answered_issuer is not None):
            raise SignInRefused(Reason.UNEXPECTED, f"the answer is from the issuer {answered_issuer!r}")
        tokens = self._exchange(attempt, code)
        token, access_token = tokens.get("id_token"), tokens.get("access_token")
        if not isinstance(token, str) or not isinstance(access_token, str):
            raise SignInRefused(Reason.UNEXPECTED, "the provider sent no id_token or no access_token")
        claims = self._verified(token, attempt.nonce, access_token)
        if any(name not in claims for name in self._wanted):
            claims = self._with_userinfo(claims, access_token)
        sign_out_url = self._metadata().get("end_session_endpoint")
        is_safe = isinstance(sign_out_url, str) and names.is_safe_url(sign_out_url)
        return Vouched(claims, token, str(sign_out_url) if is_safe else "")

    def sign_out_address(self, url: str, id_token: str, redirect_uri: str, state: str) -> str:
        """Where to send a browser whose person signs out at the provider.

        `url`: `Vouched.sign_out_url`; `id_token`: by which it knows whose session is to end, "" to let it ask;
        `redirect_uri`: where it sends the browser afterwards, with `state`, if this address is registered there.
        """
        query = {"client_id": self._client_id, "post_logout_redirect_uri": redirect_uri, "state": state}
        return _with_query(url, urlencode(query | ({"id_token_hint": id_token} if id_token else {})))

    def _exchange(self, attempt: Attempt, code: str) -> dict[str, object]:
        data = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": attempt.redirect_uri,
            "code_verifier": attempt.verifier,
        }
        secret, auth = self._client_secret(), None
        methods = self._metadata().get("token_endpoint_auth_methods_supported")
        if secret and isinstance(methods, list) and "client_secret_basic" not in methods:
            data |= {"client_id": self._client_id, "client_secret": secret}
        elif secret:
            auth = (quote(self._client_id, safe=""), quote(secret, safe=""))  # RFC 6749, 2.3.1: encoded as in a form
        else:
            data["client_id"] = self._client_id
        status, answer = transport.send("POST", self._endpoint("token_endpoint"), self._timeout, data=data, auth=auth)
        if status != 200:
            said = f"{answer.get('error')!s:.100}: {answer.get('error_description')!s:.300}"
            raise SignInRefused(Reason.UNEXPECTED, f"the provider did not take the code: {status} {said}")
        return answer

    def _client_secret(self) -> str:
        if not self._secret_file:
            return self._secret
        try:
            return Path(self._secret_file).read_text().strip()
        except (OSError, ValueError) as error:
            raise SignInRefused(Reason.UNEXPECTED, f"{names.CLIENT_SECRET_FILE} cannot be read: {error}") from error

    def _verified(self, token: str, nonce: str, access_token: str) -> dict[str, Any]:
        for afresh in (False, True):
            try:
                return id_token.verify(
                    token,
                    self._document(self._endpoint("jwks_uri"), afresh=afresh),
                    issuer=self.issuer,
                    client_id=self._client_id,
                    nonce=nonce,
                    access_token=access_token,
                    skew_seconds=self._skew,
                )
            except id_token.UnknownKey as error:
                if afresh:
                    raise SignInRefused(Reason.UNEXPECTED, f"id_token: {error}") from error
            except id_token.BadToken as error:
                raise SignInRefused(Reason.UNEXPECTED, f"id_token: {error}") from error
        raise AssertionError

    def _with_userinfo(self, claims: dict[str, Any], access_token: str) -> dict[str, Any]:
        """With the claims that only the userinfo endpoint has; those of the signed token are never replaced."""
        if not self._metadata().get("userinfo_endpoint"):
            return claims
        status, found = transport.send("GET", self._endpoint("userinfo_endpoint"), self._timeout, bearer=access_token)
        if status != 200 or found.get("sub") != claims["sub"]:
            raise SignInRefused(Reason.UNEXPECTED, f"userinfo: {status}, or of another person")
        return {**found, **claims}

    def _endpoint(self, name: str) -> str:
        found = self._metadata().get(name)
        if not isinstance(found, str) or not names.is_safe_url(found):
            raise SignInRefused(Reason.UNEXPECTED, f"the discovery document has no https address as {name}")
        return found

    def _metadata(self) -> Mapping[str, object]:
        url = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        found = self._document(url)
        if found.get("issuer") != self.issuer:
            self._kept.pop(url, None)
            raise SignInRefused(Reason.UNEXPECTED, f"the discovery document is of the issuer {found.get('issuer')!r}")
        return found

    def _document(self, url: str, *, afresh: bool = False) -> dict[str, object]:
        """A document of the provider, read again after a while."""
        asked = time.monotonic()
        kept = self._kept.get(url)
        if kept is not None and not afresh and kept[1] > asked - KEPT_SECONDS:
            return kept[0]
        if not self._lock.acquire(timeout=self._timeout):
            raise SignInRefused(Reason.UNREACHABLE, f"GET {url}: others wait for the provider already")
        try:
            kept = self._kept.get(url)
            if kept is not None and kept[1] > (asked if afresh else asked - KEPT_SECONDS):
                return kept[0]  # another request has read it meanwhile
            status, found = transport.send("GET", url, self._timeout)
            if status != 200:
                raise SignInRefused(Reason.UNREACHABLE, f"GET {url}: answered {status}")
            self._kept[url] = found, time.monotonic()
            return found
        finally:
            self._lock.release()


def _with_query(endpoint: str, query: str) -> str:
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"


_providers: dict[int, tuple[Config, Provider]] = {}


def of(config: Config) -> Provider | None:
    """The provider of the settings; None unless sign-in with it is configured."""
    if not config.str(names.ISSUER):
        return None
    found = _providers.get(id(config))
    if found is None or found[0] is not config:
        _providers.clear()  # settings change only in tests
        found = _providers[id(config)] = config, Provider(config)
    return found[1]
