"""System checks: invalid settings prevent the start, with one sentence each; doubtful ones give a warning.

`kcoord.E001` a value is unknown, malformed or out of bounds · `E002` an address is malformed · `E003` the secret key
is too short · `W001` cookies are sent over http · `W002` no host name is allowed · `W003` the secret key is not kept ·
`W004` cookies are also sent over http · `W005` leases are too long for the smallest session. `W003` and `W004` are
found by `check --deploy` only. Django's own warnings that no setting of ours can change, or that one of these replaces,
are silenced in the settings, with the reason.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from kcoord.config import Config
from kcoord.setting_table import LEASE

TAG = "kcoord"
REFERENCE = "See `manage.py settings_reference`."
SHORTEST_KEY = 32
SMALLEST_SESSIONS = ("group.min.session.timeout.ms", "group.consumer.min.session.timeout.ms")


@register(TAG)
def settings_are_valid(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """`kcoord.E001`: one error for each environment variable that is unknown, malformed or out of bounds."""
    return [Error(problem, hint=REFERENCE, id="kcoord.E001") for problem in settings.KCOORD.problems]


@register(TAG)
def addresses_are_readable(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """`kcoord.E002`: one error for each setting that should be an address but is not."""
    return [Error(problem, hint=REFERENCE, id="kcoord.E002") for problem in _address_problems(settings.KCOORD)]


@register(TAG)
def secret_key_is_long(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """`kcoord.E003`: a key that could be guessed."""
    configured = settings.KCOORD.str("secret.key")
    if not configured or len(configured) >= SHORTEST_KEY:
        return []
    problem = f"KCOORD_SECRET_KEY has {len(configured)} characters; use at least {SHORTEST_KEY}"
    return [Error(problem, hint="Unset it to use the generated one.", id="kcoord.E003")]


@register(TAG, deploy=True)
def secret_key_is_kept(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """`kcoord.W003`: a key that is lost when this process ends. With `check --deploy` only: commands need none."""
    if settings.KCOORD.str("secret.key") or (settings.DATA_DIR / "secret_key").is_file():
        return []
    problem = "each process generates its own secret key: sign-ins end with the process and are not valid in others"
    return [Warning(problem, hint="`make up` keeps a key; otherwise set KCOORD_SECRET_KEY.", id="kcoord.W003")]


@register(TAG, deploy=True)
def cookies_are_secure(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """`kcoord.W004`: a proxy with TLS in front of loopback needs it; without one nobody else can connect. Else W001."""
    if settings.KCOORD.bool("secure.cookies") or not _is_loopback(settings.KCOORD.str("host")):
        return []
    problem = "KCOORD_SECURE_COOKIES is not set: cookies of sign-ins are also sent over http"
    return [Warning(problem, hint="Behind a proxy with TLS set KCOORD_SECURE_COOKIES=true.", id="kcoord.W004")]


@register(TAG)
def reachable_from_elsewhere(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """`kcoord.W001`, `kcoord.W002`: the server is reachable from other machines without the settings that needs."""
    config = settings.KCOORD
    if _is_loopback(config.str("host")):
        return []
    found: list[CheckMessage] = []
    if not config.bool("secure.cookies"):
        problem = f"KCOORD_HOST={config.str('host')}: cookies and tokens travel unencrypted over the network"
        hint = "Put a proxy with TLS in front and set KCOORD_SECURE_COOKIES=true."
        found.append(Warning(problem, hint=hint, id="kcoord.W001"))
    if not config.str("allowed.hosts"):
        problem = f"KCOORD_HOST={config.str('host')}: the pages accept no host name other than localhost"
        hint = "Set KCOORD_ALLOWED_HOSTS to the host names in use."
        found.append(Warning(problem, hint=hint, id="kcoord.W002"))
    return found


@register(TAG)
def leases_are_short(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """`kcoord.W005`: while all servers are frozen for less than a lease nobody notices, and sessions may end."""
    config = settings.KCOORD
    session, shortest = min((config.int(name), name) for name in SMALLEST_SESSIONS)
    if 2 * config.int(LEASE) <= session:
        return []
    problem = f"{LEASE} is {config.int(LEASE)} ms, more than half of {shortest} ({session} ms)"
    hint = "Members with such a session may be removed after a freeze of all servers: use a shorter lease."
    return [Warning(problem, hint=hint, id="kcoord.W005")]


def _address_problems(config: Config) -> Iterator[str]:
    advertised = config.str("advertised.url")
    if advertised and not _is_url(advertised, ("http", "https")):
        yield "KCOORD_ADVERTISED_URL: expected http://host:port or https://host"
    collector = config.str("otlp.endpoint")
    if collector and not _is_url(collector, ("http", "https")):
        yield "KCOORD_OTLP_ENDPOINT: expected http://host:port or https://host"
    database = config.str("database.url")
    if database and urlsplit(database).scheme not in ("postgresql", "postgres"):
        yield "KCOORD_DATABASE_URL: expected postgresql://user:password@host:port/database"
    broker = config.str("broker.url")
    if broker and "://" not in broker:
        yield "KCOORD_BROKER_URL: expected redis://host:port/number or another broker that Celery supports"
    for name in filter(None, config.str("allowed.hosts").split(",")):
        if "/" in name or name != name.strip():
            yield f"KCOORD_ALLOWED_HOSTS: {name!r} is not a host name; expected names separated by commas, no spaces"
    for name in config.names("trusted.proxies"):
        if not _is_network(name):
            yield f"KCOORD_TRUSTED_PROXIES: {name!r} is no address or network; expected e.g. 10.0.0.7 or 10.0.0.0/8"


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def _is_url(text: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in schemes and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
