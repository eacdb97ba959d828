"""The addresses of this server: where it listens, where this machine reaches it, and what clients are told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from kcoord.config import ANY_ADDRESS, Config
from kcoord.requests import current

_AUTHORITY = re.compile(rb"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")


def http_url(host: str, port: int) -> str:
    """`http://host:port` without a slash at the end; the colons of IPv6 are put in brackets."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def local_url(config: Config) -> str:
    """Where a program on this machine reaches the server, without a slash at the end."""
    host = config.str("host")
    return http_url(ANY_ADDRESS.get(host, host), config.int("port"))


def advertised_url(config: Config, came_by: str = "") -> str:
    """What clients are told, without a slash at the end.

    The setting `advertised.url`, else where the server listens. If that is every address of the machine, it is the one
    that the request came by (`came_by`, see `requested_url`), which works from where it came.
    """
    if config.str("advertised.url"):
        return config.str("advertised.url").rstrip("/")
    if config.str("host") in ANY_ADDRESS:
        return came_by or local_url(config)
    return http_url(config.str("host"), config.int("port"))


def requested_url(scope: Mapping[str, Any]) -> str:
    """The address by which a request came: its Host, or without a proper one that of the socket; "" if unknown."""
    scheme = scope.get("scheme", "http")
    for name, value in scope["headers"]:
        if name == b"host" and _is_authority(value):
            return f"{scheme}://{value.decode('ascii')}"
    server = scope.get("server")
    return http_url(server[0], server[1]) if server and server[1] else ""


def _is_authority(host: bytes) -> bool:
    """Whether a Host is a name or address with, at most, a port: clients copy it into URLs."""
    if not _AUTHORITY.fullmatch(host):
        return False
    try:
        parts = urlsplit(f"//{host.decode('ascii')}")
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # no IPv6 address in the brackets, or no port
        return False


def came_by() -> str:
    """The address by which the current request came; "" outside of one, and for a command of this machine."""
    request = current.request()
    return "" if request is None or request.scope is None else requested_url(request.scope)
