"""Proxies of the environment: never for loopback, named in messages, one line where they cannot be used."""

from __future__ import annotations

import asyncio
import http.server
import re
import threading
from collections.abc import Callable, Iterator

import httpx
import pytest

from kcoord.client.core import http as core
from kcoord.client.core import wire
from kcoord.client.http import Disconnected, Http
from kcoord.client.proxies import proxy_for
from kcoord.client.tasks import Tasks
from kcoord.protocol.errors import Action, ProtocolError
from kcoord.tools.demo.service import DemoProblem, Service
from tests.support.processes import free_port

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
LOOPBACK = ("127.0.0.1", "127.8.9.1", "localhost", "[::1]", "kcoord.localhost")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxies but those of the test."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class Gateway(http.server.BaseHTTPRequestHandler):
    """Answers as the service does if it is asked for a path, as a proxy without a way if for a whole address."""

    def do_GET(self) -> None:
        is_proxied = self.path.startswith("http://")
        body = b"no way" if is_proxied else b'{"coordinators": []}'
        self.send_response(502 if is_proxied else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def gateway() -> Iterator[int]:
    """The port of a server that is service and proxy."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def ask_blocking(url: str) -> wire.CoordinatorAnswer:
    http_ = Http("", 5_000)
    try:
        return http_.get(f"{url}/v1/coordinator", wire.CoordinatorAnswer)
    finally:
        http_.close()


def ask_awaiting(url: str) -> wire.CoordinatorAnswer:
    async def main() -> wire.CoordinatorAnswer:
        tasks = Tasks(None)
        try:
            return await tasks.run(core.Http("", 5_000).get, f"{url}/v1/coordinator", wire.CoordinatorAnswer)
        finally:
            await tasks.finish(0)

    return asyncio.run(main())


Ask = Callable[[str], wire.CoordinatorAnswer]
both = pytest.mark.parametrize("ask", [ask_blocking, ask_awaiting])


@both
@pytest.mark.parametrize("proxy", ["http://127.0.0.1:{closed}", "socks5://127.0.0.1:{closed}", "nonsense://x"])
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
def test_loopback_is_reached_directly(
    gateway: int, monkeypatch: pytest.MonkeyPatch, proxy: str, variable: str, ask: Ask
) -> None:
    monkeypatch.setenv(variable, proxy.format(closed=free_port()))
    for host in ("127.0.0.1", "localhost"):
        assert ask(f"http://{host}:{gateway}").coordinators == []
        assert Service(f"http://{host}:{gateway}", "", "").request("GET", "topics").status_code == 200


@pytest.mark.parametrize("host", LOOPBACK)
def test_what_loopback_is(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example:3128")
    assert proxy_for(httpx.URL(f"http://{host}:8000/v1")) == ""
    assert proxy_for(httpx.URL("http://service.example:8000/v1")) == "http://proxy.example:3128"


def test_no_proxy_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "service.example")
    assert proxy_for(httpx.URL("https://other.example/v1")) == "http://proxy.example:3128"
    assert proxy_for(httpx.URL("http://other.example/v1")) == ""
    assert proxy_for(httpx.URL("https://service.example:8443/v1")) == ""


@both
def test_messages_name_the_proxy_without_its_password(gateway: int, monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    for port, what in ((gateway, "answered 502"), (free_port(), "refused|attempts failed")):
        monkeypatch.setenv("HTTP_PROXY", f"http://ann:topsecret@127.0.0.1:{port}")
        with pytest.raises(Disconnected) as told:
            ask("http://service.example:8000")
        assert re.search(what, told.value.detail)
        assert f"through the proxy http://127.0.0.1:{port}; NO_PROXY=service.example" in told.value.detail
        assert "topsecret" not in told.value.detail
    with pytest.raises(DemoProblem, match=r"through the proxy http://127\.0\.0\.1"):
        Service("http://service.example:8000", "", "").request("GET", "topics")


@both
def test_a_proxy_that_cannot_be_used_is_an_error_with_the_remedy(monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    for proxy, remedy in (("socks5://proxy.example:1080", "pip install 'httpx[socks]'"), ("ftp://p", "correct it")):
        monkeypatch.setenv("ALL_PROXY", proxy)
        with pytest.raises(ProtocolError) as told:
            ask("http://service.example:8000")
        assert told.value.action is Action.FIX
        assert not isinstance(told.value, Disconnected), "trying again does not help"
        assert f"the proxy {proxy} of the environment" in told.value.detail
        assert remedy in told.value.detail
        assert "NO_PROXY=service.example" in told.value.detail
