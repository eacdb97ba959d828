"""A small OpenID Connect provider in a process of its own: real HTTP, real signatures, and lies on request.

`python -m tests.support.identity_provider` prints its port. POST /control with a JSON object changes its `Orders`:
who signs in, and what is wrong with the next answers. It checks what a provider has to check: the client and its
secret, the redirect address, codes that are used once, PKCE, and at a sign-out the client, its token and the address.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import httpx
from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.support.database import ROOT

CLIENT_ID, CLIENT_SECRET = "kcoord:test", "s3cret & more"


@dataclass
class Orders:
    """Who signs in, and what is wrong. `claims` replace those of the ID token; None removes one."""

    person: dict[str, Any] = field(default_factory=lambda: {"sub": "1", "preferred_username": "ines", "groups": []})
    claims: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    signed: str = "RS256"
    """RS256, none, None, HS256-public-key, HS256-secret, other-key, unknown-kid, no-kid, key-inside, tampered."""
    error: str = ""
    """What the authorization endpoint answers instead of a code."""
    token_status: int = 200
    redirects: str = ""
    """Where the token endpoint redirects to, if anywhere."""
    iss_of_answer: str | None = None
    only_userinfo: list[str] = field(default_factory=list)
    """Claims that the ID token lacks and userinfo has."""
    userinfo_sub: str = ""
    registered: str = "/signed-out"
    """The path of the addresses to which it sends people after a sign-out."""
    drip: bool = False
    """The discovery document comes a byte at a time."""


@functools.cache
def _key(kid: str, of: str = "the provider") -> RSAKey:
    """Made once in a process: that takes a tenth of a second."""
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


class State:
    """What the provider remembers."""

    def __init__(self) -> None:
        self.orders = Orders()
        self.keys = [_key("first")]
        self.codes: dict[str, dict[str, str]] = {}
        self.tokens: dict[str, dict[str, Any]] = {}
        self.ended: list[str] = []
        """The `sub` of those who signed out, "" of those whom no token names."""
        self.asked: list[str] = []
        """Paths that were asked for."""


def sign(state: State, claims: dict[str, Any]) -> str:
    """The ID token, signed as ordered."""
    key, how = state.keys[-1], state.orders.signed
    if how.lower() == "none":
        parts = [json.dumps(part).encode() for part in ({"alg": how, "typ": "JWT"}, claims)]
        return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."
    if how.startswith("HS256"):
        material = key.as_pem(private=False) if how == "HS256-public-key" else CLIENT_SECRET.encode()
        return _hmac({"alg": "HS256", "kid": key.kid}, claims, material)
    if how in ("other-key", "unknown-kid"):
        kid = key.kid if how == "other-key" else "nobody"
        key = _key(kid, of="somebody else")
    header = {"alg": "RS256", "kid": key.kid}
    if how in ("no-kid", "key-inside"):
        key, header = _key("own", of="somebody else"), {"alg": "RS256"}
    if how == "key-inside":
        header["jwk"] = key.as_dict(private=False)
    token = jwt.encode(header, claims, key)
    if how == "tampered":
        head, body, signature = token.split(".")
        changed = json.loads(base64.urlsafe_b64decode(body + "=="))
        changed["groups"] = ["superusers"]
        body = base64.urlsafe_b64encode(json.dumps(changed).encode()).rstrip(b"=").decode()
        token = f"{head}.{body}.{signature}"
    return token


def _hmac(header: dict[str, Any], claims: dict[str, Any], material: bytes) -> str:
    """HS256 by hand: libraries refuse to use a public key for it."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims)]
    signature = hmac.digest(material, b".".join(parts), "sha256")
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()


class Handler(BaseHTTPRequestHandler):
    """The endpoints."""

    protocol_version = "HTTP/1.1"
    state: State

    @property
    def issuer(self) -> str:
        """The address of the provider."""
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Discovery, keys, authorization, userinfo, sign-out."""
        url = urlsplit(self.path)
        self.state.asked.append(url.path)
        if url.path == "/.well-known/openid-configuration":
            self.answer(200, self.metadata())
        elif url.path == "/keys":
            self.answer(200, {"keys": [key.as_dict(private=False) for key in self.state.keys]})
        elif url.path == "/authorize":
            self.authorize({name: values[0] for name, values in parse_qs(url.query).items()})
        elif url.path == "/userinfo":
            bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
            found = self.state.tokens.get(bearer)
            self.answer(200 if found else 401, found or {"error": "invalid_token"})
        elif url.path == "/sign-out":
            self.sign_out({name: values[0] for name, values in parse_qs(url.query).items()})
        elif url.path == "/asked":
            self.answer(200, {"asked": self.state.asked, "ended": self.state.ended})
        elif url.path == "/favicon.ico":  # browsers ask for it beside a page
            self.answer(200, {})
        else:
            self.answer(404, {})

    def do_POST(self) -> None:
        """Tokens, and orders."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.state.asked.append(self.path)
        if self.path == "/token":
            self.token({name: values[0] for name, values in parse_qs(body).items()})
        elif self.path == "/control":
            self.state.orders = Orders(**json.loads(body))
            self.answer(200, {})
        elif self.path == "/rotate":
            self.state.keys = [_key(f"next-{self.state.keys[-1].kid}")]
            self.answer(200, {})
        else:
            self.answer(404, {})

    def metadata(self) -> dict[str, Any]:
        """The discovery document."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "end_session_endpoint": f"{self.issuer}/sign-out",
            "code_challenge_methods_supported": ["S256"],
        } | self.state.orders.metadata

    def authorize(self, query: dict[str, str]) -> None:
        """Sign the person of the orders in at once, as a provider does whose session lasts."""
        orders = self.state.orders
        expected = {"response_type": "code", "client_id": CLIENT_ID, "code_challenge_method": "S256"}
        missing = {"state", "nonce", "code_challenge", "redirect_uri", "scope"} - set(query)
        if missing or any(query.get(name) != value for name, value in expected.items()):
            self.answer(400, {"error": "invalid_request", "missing": sorted(missing)})
            return
        if orders.error:
            back = {"error": orders.error, "error_description": "<b>internal-host-7</b>", "state": query["state"]}
        else:
            code = secrets.token_urlsafe(16)
            self.state.codes[code] = query
            back = {"code": code, "state": query["state"]}
        if orders.iss_of_answer is not None:
            back["iss"] = orders.iss_of_answer
        self.send_response(302)
        self.send_header("Location", f"{query['redirect_uri']}?{urlencode(back)}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def sign_out(self, query: dict[str, str]) -> None:
        """End the session of the person whom the token names, and send the browser back."""
        back, hint, subject = query.get("post_logout_redirect_uri", ""), query.get("id_token_hint", ""), ""
        problem = "" if query.get("client_id") == CLIENT_ID else "unknown client"
        if hint:
            claims = jwt.decode(hint, self.state.keys[-1]).claims  # it may have expired: it only names a session
            subject = str(claims["sub"])
            problem = problem or ("" if (claims["iss"], claims["aud"]) == (self.issuer, CLIENT_ID) else "foreign token")
        if urlsplit(back).path != self.state.orders.registered:
            problem = problem or "address not registered"
        if problem:
            self.answer(400, {"error": problem})
            return
        self.state.ended.append(subject)
        self.send_response(302)
        self.send_header("Location", f"{back}?{urlencode({'state': query['state']})}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def token(self, form: dict[str, str]) -> None:
        """Exchange a code, once."""
        orders = self.state.orders
        if orders.redirects:
            self.send_response(307)
            self.send_header("Location", orders.redirects)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if orders.token_status != 200:
            self.answer(orders.token_status, {"error": "server_error", "error_description": "internal-host-7"})
            return
        asked = self.state.codes.pop(form.get("code", ""), None)
        problem = self.problem(form, asked)
        if problem or asked is None:
            self.answer(400, {"error": problem})
            return
        access_token, now = secrets.token_urlsafe(16), int(time.time())
        half = hashlib.sha256(access_token.encode()).digest()[:16]
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            "at_hash": base64.urlsafe_b64encode(half).rstrip(b"=").decode(),
            **{name: value for name, value in orders.person.items() if name not in orders.only_userinfo},
            **orders.claims,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        self.state.tokens[access_token] = orders.person | ({"sub": orders.userinfo_sub} if orders.userinfo_sub else {})
        self.answer(200, {"access_token": access_token, "token_type": "Bearer", "id_token": sign(self.state, claims)})

    def problem(self, form: dict[str, str], asked: dict[str, str] | None) -> str:
        """What a provider refuses."""
        basic = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
        name, _, secret = basic.partition(":")
        if (unquote(name), unquote(secret)) != (CLIENT_ID, CLIENT_SECRET):
            return "invalid_client"
        if asked is None or form.get("grant_type") != "authorization_code":
            return "invalid_grant"
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
        if challenge != asked["code_challenge"] or form.get("redirect_uri") != asked["redirect_uri"]:
            return "invalid_grant"
        return ""

    def answer(self, status: int, body: dict[str, Any]) -> None:
        """One JSON object."""
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if not (self.state.orders.drip and "well-known" in self.path):
            self.wfile.write(data)
            return
        for byte in data:
            self.wfile.write(bytes([byte]))
            time.sleep(0.02)


@dataclass
class Provider:
    """A running provider, as tests see it."""

    port: int
    process: subprocess.Popen[str]

    @property
    def issuer(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def order(self, **orders: Any) -> None:
        """Replace its orders."""
        httpx.post(f"{self.issuer}/control", json=orders, timeout=30).raise_for_status()

    def rotate(self) -> None:
        """Sign with a new key; the one before is gone."""
        httpx.post(f"{self.issuer}/rotate", timeout=30).raise_for_status()

    def asked(self) -> list[str]:
        """The paths that were asked for."""
        found: list[str] = httpx.get(f"{self.issuer}/asked", timeout=30).json()["asked"]
        return found

    def ended(self) -> list[str]:
        """The `sub` of everybody who signed out there."""
        found: list[str] = httpx.get(f"{self.issuer}/asked", timeout=30).json()["ended"]
        return found

    def settings(self) -> dict[str, str]:
        """What a service needs to use it."""
        return {
            "oidc.issuer": self.issuer,
            "oidc.client.id": CLIENT_ID,
            "oidc.client.secret": CLIENT_SECRET,
            "oidc.allowed.groups": "*",
        }


@contextmanager
def identity_provider() -> Iterator[Provider]:
    """A provider that runs until the block is left."""
    command = [sys.executable, "-m", "tests.support.identity_provider"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Provider(int(process.stdout.readline()), process)
        finally:
            process.kill()


def main() -> None:
    """Serve until killed."""
    Handler.state = State()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
