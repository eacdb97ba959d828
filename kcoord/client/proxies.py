"""Which proxy a request goes through: the one that the environment names, but never one for loopback.

HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY mean what they mean to other programs. A service on this machine is not
on the proxy's loopback, so addresses of loopback are always reached directly.
"""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

PROXY = "kcoord.proxy"
"""Extension of a request: the proxy that it went through, without a password."""


def is_loopback(host: str) -> bool:
    """Whether a host of a URL is this machine's loopback."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost" or host.lower().endswith(".localhost")


def proxy_for(url: httpx.URL) -> str:
    """The proxy for a URL, "" for none."""
    if is_loopback(url.host) or proxy_bypass(f"{url.host}:{url.port}" if url.port else url.host):
        return ""
    proxies = getproxies()
    found = proxies.get(url.scheme) or proxies.get("all") or ""
    return found if not found or "://" in found else f"http://{found}"


def shown(proxy: str) -> str:
    """A proxy for messages: without user and password."""
    parts = urlsplit(proxy)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def via(request: httpx.Request) -> str:
    """For messages: the proxy that a request went through; "" if there was none."""
    proxy = request.extensions.get(PROXY, "")
    return f" (through the proxy {proxy}; NO_PROXY={request.url.host} goes without)" if proxy else ""


class EnvironmentProxies(httpx.BaseTransport):
    """Sends each request directly or through its proxy, and notes in the request which one that was (`via`).

    Raises httpx.UnsupportedProtocol, with the remedy, for a proxy that cannot be used.
    """

    def __init__(self, limits: httpx.Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._transports: dict[str, httpx.HTTPTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The response."""
        proxy = _noted(request)
        with self._lock:
            transport = self._transports.get(proxy)
            if transport is None:
                with _named(proxy, request.url.host):
                    transport = httpx.HTTPTransport(limits=self._limits, proxy=proxy or None)
                self._transports[proxy] = transport
        return transport.handle_request(request)

    def close(self) -> None:
        """Close the connections."""
        for transport in self._transports.values():
            transport.close()


class AsyncEnvironmentProxies(httpx.AsyncBaseTransport):
    """`EnvironmentProxies` for asyncio."""

    def __init__(self, limits: httpx.Limits) -> None:
        self._limits = limits
        self._transports: dict[str, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The response."""
        proxy = _noted(request)
        transport = self._transports.get(proxy)
        if transport is None:
            with _named(proxy, request.url.host):
                transport = httpx.AsyncHTTPTransport(limits=self._limits, proxy=proxy or None)
            self._transports[proxy] = transport
        return await transport.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections."""
        for transport in self._transports.values():
            await transport.aclose()


def _noted(request: httpx.Request) -> str:
    proxy = proxy_for(request.url)
    if proxy:
        request.extensions[PROXY] = shown(proxy)
    return proxy


@contextmanager
def _named(proxy: str, host: str) -> Iterator[None]:
    """Name the proxy, and what to do, if it cannot be used."""
    try:
        yield
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        problem = "cannot be used; correct it"
        if isinstance(error, ImportError):
            problem = "needs the package socksio; install it with `pip install 'httpx[socks]'`"
        raise httpx.UnsupportedProtocol(
            f"the proxy {shown(proxy)} of the environment {problem}, or leave {host} out with NO_PROXY={host}"
        ) from error
