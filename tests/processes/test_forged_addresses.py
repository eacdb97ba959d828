"""X-Forwarded-For counts only from a trusted proxy, and of it only what that proxy added. With real servers."""

from __future__ import annotations

import re
import time

import httpx
import psycopg
import pytest

from frontend.pages.sign_in import view as throttle
from tests.support.processes import Running, start_server

pytestmark = pytest.mark.processes

WAITS = 40
"""Failures after which an address waits for a minute."""


def fail_from(database: str, address: str) -> None:
    """Make an address wait."""
    key = throttle.address_key(address).key
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("truncate frontend_signinattempt")
        connection.execute(
            "insert into frontend_signinattempt (key, failures, last_at) values (%s, %s, %s)",
            (key, WAITS, int(time.time() * 1000)),
        )


def sign_in(server: Running, forwarded: str) -> int:
    """The status of a sign-in with a wrong password, as if it were forwarded."""
    with httpx.Client(base_url=server.url, timeout=60, headers={"X-Forwarded-For": forwarded}) as browser:
        page = browser.get("/sign-in")
        found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
        assert found is not None
        form = {"username": "nobody", "password": "wrong", "csrfmiddlewaretoken": found[1]}
        return browser.post("/sign-in", data=form).status_code


def test_an_address_that_is_not_from_a_trusted_proxy_is_not_believed(database: str) -> None:
    with start_server(database, env={"KCOORD_TRUSTED_PROXIES": "192.0.2.1"}) as server:
        server.wait_ready()
        fail_from(database, "127.0.0.1")
        assert sign_in(server, "198.51.100.1") == 429
        assert sign_in(server, "198.51.100.2, 192.0.2.1") == 429
        fail_from(database, "198.51.100.1")
        assert sign_in(server, "198.51.100.1") == 200


def test_of_a_trusted_proxy_only_what_it_added_is_believed(database: str) -> None:
    with start_server(database, env={"KCOORD_TRUSTED_PROXIES": "127.0.0.1"}) as server:
        server.wait_ready()
        fail_from(database, "203.0.113.9")
        assert sign_in(server, "203.0.113.9") == 429
        assert sign_in(server, "198.51.100.1, 203.0.113.9") == 429
        assert sign_in(server, "203.0.113.9, 203.0.113.10") == 200


def test_cookies_are_for_https_alone_where_the_setting_says_so(database: str) -> None:
    with start_server(database, env={"KCOORD_SECURE_COOKIES": "true"}) as server:
        server.wait_ready()
        cookie = httpx.get(f"{server.url}/sign-in").headers["set-cookie"].lower()
        assert "; secure" in cookie
        assert "; httponly" in cookie
