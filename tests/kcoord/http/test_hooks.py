"""Hooks of Django's middleware run on the loop, and in a thread only where they store something."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from asgiref.sync import SyncToAsync, sync_to_async
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session

PASSWORD = "correct horse battery staple"
HOOKS = {"process_request", "process_response", "process_view"}
CHECKED = ("SecurityMiddleware.", "CsrfViewMiddleware.", "XFrameOptionsMiddleware.")
"""Django's own: `check --deploy` knows them only by their names."""


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what is called in a thread for asynchronous code."""
    called: list[str] = []
    call = SyncToAsync.__call__

    def counting(self: Any, *arguments: Any, **named: Any) -> Any:
        called.append(getattr(self.func, "__qualname__", repr(self.func)))
        return call(self, *arguments, **named)

    monkeypatch.setattr(SyncToAsync, "__call__", counting)
    return called


def hooks(called: list[str]) -> list[str]:
    return [name for name in called if name.rpartition(".")[2] in HOOKS and not name.startswith(CHECKED)]


async def test_an_answer_of_the_api_needs_no_thread_for_them(api: httpx.AsyncClient, in_threads: list[str]) -> None:
    assert (await api.get("/v1/groups")).status_code == 200
    assert in_threads, "views still run in threads"
    assert hooks(in_threads) == []


async def test_a_session_that_is_begun_is_stored_in_a_thread(api: httpx.AsyncClient, in_threads: list[str]) -> None:
    del api.headers["Authorization"]  # with a token it would be a program, which gets no page
    await sync_to_async(User.objects.create_superuser)("root", password=PASSWORD)
    form = await api.get("/sign-in")
    assert form.status_code == 200
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form.text)
    assert token is not None
    in_threads.clear()
    sent = {"username": "root", "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
    answer = await api.post("/sign-in", data=sent, headers={"Referer": "http://testserver/sign-in"})
    assert answer.status_code == 302, answer.text
    assert hooks(in_threads) == ["SessionMiddleware.process_response"]
    stored = await sync_to_async(lambda: Session.objects.get(session_key=answer.cookies["sessionid"]).get_decoded())()
    assert "_auth_user_id" in stored
    overview = await api.get("/")
    assert overview.status_code == 200
    assert "root" in overview.text
