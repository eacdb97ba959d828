"""What a browser does on the way to the provider and back, and settings that name the provider."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import httpx
from django.contrib.auth import SESSION_KEY
from django.test import Client
from pytest_django.fixtures import SettingsWrapper

from kcoord.config import Config
from tests.support.identity_provider import Provider

BACKENDS = ["frontend.identity.backends.PasswordBackend", "frontend.identity.backends.ProviderBackend"]


def use(settings: SettingsWrapper, provider: Provider, **more: Any) -> None:
    """Configure it; names have `_` for `.`."""
    settings.AUTHENTICATION_BACKENDS = BACKENDS
    settings.KCOORD = Config(provider.settings()).override({name.replace("_", "."): more[name] for name in more})


def leave(client: Client, next_url: str = "") -> str:
    """Begin; the address at the provider."""
    answer = client.get("/sign-in/provider", {"next": next_url} if next_url else {})
    assert answer.status_code == 302, answer.content.decode()
    return str(answer.headers["Location"])


def approve(address: str) -> str:
    """What a browser does at the provider: the path with which it comes back."""
    back = httpx.get(address, timeout=30)
    assert back.status_code == 302, back.text
    parts = urlsplit(back.headers["Location"])
    assert (parts.scheme, parts.netloc) == ("http", "localhost")
    return f"{parts.path}?{parts.query}"


def another() -> Client:
    """Another browser on the machine of the server."""
    return Client(SERVER_NAME="localhost")


def sign_in(client: Client, next_url: str = "") -> Any:
    """Go to the provider and come back; the answer to that."""
    return client.get(approve(leave(client, next_url)))


def is_in(client: Client) -> bool:
    """Whether somebody is signed in."""
    return client.get("/groups").status_code == 200


def broken(client: Client, path: str, status: int) -> str:
    """Come back with `path`; nobody is signed in, and the page says nothing that the provider said."""
    answer = client.get(path)
    text = answer.content.decode()
    assert answer.status_code == status, text
    assert SESSION_KEY not in client.session
    assert not is_in(client)
    assert "internal-host-7" not in text
    assert "Sign-in failed" in text
    return text
