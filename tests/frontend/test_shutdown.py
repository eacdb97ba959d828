"""A server that is asked to end while pages are open."""

from __future__ import annotations

import re
import signal

import httpx
import pytest
from django.contrib.auth import get_user_model

from tests.frontend.conftest import PASSWORD
from tests.frontend.seed import Seed
from tests.support.processes import start_server

pytestmark = pytest.mark.processes


def test_open_streams_end_whole_and_hold_nothing_up(database: str, seed: Seed, settings: object) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]  # type: ignore[attr-defined]
    get_user_model().objects.create_user("mara", password=PASSWORD)
    with start_server(database) as server, httpx.Client(base_url=server.url, timeout=30) as client:
        server.wait_ready()
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', client.get("/sign-in").text)
        assert token is not None
        form = {"username": "mara", "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
        assert client.post("/sign-in", data=form).status_code == 302
        with client.stream("GET", "/live") as stream:
            parts = stream.iter_text()
            assert next(parts) == "retry: 2000\n\n"
            server.popen.terminate()
            assert {part.partition("\n")[0] for part in parts} <= {"event: beat", "event: changed"}
        assert server.wait() in (0, -signal.SIGTERM), server.report("ended with an error")
        assert "Traceback" not in server.output
