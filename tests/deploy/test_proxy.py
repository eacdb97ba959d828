"""The example of a proxy fits the settings, and the server believes the proxies it should. No nginx is run here."""

from __future__ import annotations

import re

import httpx
import pytest

from kcoord.config import Config
from kcoord.setting_table import BY_NAME
from kcoord.stack.server import KEEP_ALIVE_SECONDS
from tests.support.processes import ROOT, start_server

TEXT = re.sub(r"#.*", "", (ROOT / "deploy" / "nginx.conf").read_text())
CONFIG = Config({})


def value(directive: str) -> str:
    """The arguments of a directive that occurs once."""
    (found,) = re.findall(rf"^\s*{directive}\s+([^;]+);", TEXT, re.MULTILINE)
    return str(found)


def seconds(directive: str) -> int:
    """A duration in seconds."""
    found = re.fullmatch(r"(\d+)(s|m)", value(directive))
    assert found is not None
    return int(found[1]) * (60 if found[2] == "m" else 1)


def test_a_request_is_held_for_less_time_than_the_proxy_waits() -> None:
    longest = CONFIG.int("http.max.wait.ms") + CONFIG.int("request.max.age.ms")
    assert seconds("proxy_read_timeout") * 1000 > longest


def test_the_proxy_closes_idle_connections_before_the_server_does() -> None:
    assert seconds("keepalive_timeout") < KEEP_ALIVE_SECONDS
    assert value("proxy_http_version") == "1.1"
    assert value("proxy_set_header Connection") == '""'


def test_bodies_may_be_as_large_as_the_server_allows() -> None:
    assert value("client_max_body_size") == f"{CONFIG.int('http.max.body.bytes') // 2**20}m"


def test_names_in_paths_pass_undecoded_and_events_unbuffered() -> None:
    assert value("proxy_pass") == "http://kcoord", "with a path nginx would decode what group ids contain"
    assert value("proxy_buffering") == "off"


def test_the_default_address_is_the_upstream_and_metrics_are_not_published() -> None:
    assert f"server 127.0.0.1:{BY_NAME['port'].default};" in TEXT
    assert re.search(r"location = /metrics \{\s*deny all;\s*\}", TEXT)


def test_braces_and_semicolons() -> None:
    """What `nginx -t` would find first."""
    depth = 0
    for line in filter(None, map(str.strip, TEXT.splitlines())):
        assert line.endswith((";", "{", "}")), line
        depth += line.count("{") - line.count("}")
        assert depth >= 0
    assert depth == 0


@pytest.mark.processes
@pytest.mark.whole("nginx in front of a server")
@pytest.mark.parametrize(
    ("trusted", "scheme"), [("127.0.0.1", "https"), ("127.0.0.0/8,10.0.0.0/8", "https"), ("10.0.0.0/8", "http")]
)
def test_only_trusted_proxies_say_how_a_request_came(database: str, token: str, trusted: str, scheme: str) -> None:
    env = {"KCOORD_HOST": "0.0.0.0", "KCOORD_TRUSTED_PROXIES": trusted, "FORWARDED_ALLOW_IPS": "*"}
    with start_server(database, env=env) as server:
        server.wait_ready()
        headers = {
            "Authorization": f"Bearer {token}",
            "Host": "kcoord.example",
            "X-Forwarded-Proto": "https",
            "X-Forwarded-For": "192.0.2.7",
        }
        answer = httpx.get(f"{server.url}/v1/coordinator?group_id=g", headers=headers)
        assert answer.json()["coordinators"][0]["url"] == f"{scheme}://kcoord.example", answer.text
