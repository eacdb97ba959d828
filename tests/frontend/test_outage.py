"""Answers while the database is away, whatever part of Django notices it. How soon they come is in tests/processes."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from django.contrib.sessions.middleware import SessionMiddleware
from django.test import Client
from psycopg import errors

from frontend.pages.group import view as groups
from kcoord.protocol.errors import Error, ProtocolError

AWAY = psycopg.OperationalError("the connection is lost")
Break = Callable[[Exception], None]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch, person: Client) -> Break:
    """Makes the list of groups fail, and its reader."""

    def fail(error: Exception) -> None:
        def raising(*_: object) -> None:
            raise error

        monkeypatch.setattr(groups.bridge, "call", raising)

    person.raise_request_exception = False
    return fail


def test_the_page_tries_again_with_and_without_scripts(person: Client, failing: Break) -> None:
    failing(AWAY)
    answer = person.get("/groups")
    page = answer.content.decode()
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert answer.headers["Cache-Control"] == "no-store"
    assert "script-src 'self';" in answer.headers["Content-Security-Policy"]
    assert "The database is not available." in page
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in page
    assert "frontend/retry.js" in page


def test_nothing_is_sent_twice(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from frontend.pages.sign_in import view as throttle

    def raising(*_: object) -> int:
        raise AWAY

    monkeypatch.setattr(throttle, "count_attempt", raising)
    client.raise_request_exception = False
    answer = client.post("/sign-in", {"username": "mara", "password": "x"})
    page = answer.content.decode()
    assert answer.status_code == 503
    assert "may or may not have taken effect" in page
    assert "refresh" not in page
    assert "retry.js" not in page


def test_an_open_page_gets_a_panel_and_programs_a_problem(person: Client, failing: Break) -> None:
    failing(ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "the disk of the database is full; the same request may …"))
    panel = person.get("/groups", HTTP_HX_REQUEST="true")
    assert panel.status_code == 503
    assert panel.content.decode().startswith("<h1>")
    assert "The disk of the database is full." in panel.content.decode()
    assert "Try again in a moment." in panel.content.decode(), "it has no script that would"
    problem = person.get("/groups", HTTP_ACCEPT="application/json")
    assert problem.headers["Content-Type"] == "application/problem+json"
    assert problem.json()["error"] == "COORDINATOR_NOT_AVAILABLE"
    assert problem.json()["detail"] == "the disk of the database is full; the same request may succeed later"
    assert problem.headers["Retry-After"] == "1"


def test_a_statement_that_was_ended_is_not_called_an_outage(person: Client, failing: Break) -> None:
    failing(errors.QueryCanceled("canceling statement due to statement timeout"))
    assert "The database took too long for this page." in person.get("/groups").content.decode()


@pytest.mark.parametrize(("path", "kind"), [("/groups", "text/html"), ("/v1/groups", "application/problem+json")])
def test_what_fails_in_a_middleware_is_answered_as_well(
    person: Client, failing: Break, monkeypatch: pytest.MonkeyPatch, path: str, kind: str
) -> None:
    def raising(*_: object) -> None:
        raise AWAY

    monkeypatch.setattr(SessionMiddleware, "process_response", raising)
    answer = person.get(path)
    assert answer.status_code == 503
    assert answer.headers["Content-Type"].startswith(kind)
    assert "Content-Security-Policy" in answer.headers


def test_other_errors_stay_errors(person: Client, failing: Break) -> None:
    failing(RuntimeError("a mistake"))
    answer = person.get("/groups")
    assert answer.status_code == 500
    assert "Something went wrong" in answer.content.decode()


def test_the_admin_is_covered(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.contrib import admin

    def raising(*_: object, **__: object) -> None:
        raise AWAY

    monkeypatch.setattr(admin.site, "each_context", raising)
    operator.raise_request_exception = False
    answer = operator.get("/admin/")
    assert answer.status_code == 503
    assert "The database is not available." in answer.content.decode()
