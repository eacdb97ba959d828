"""A part of a group's page that fails blanks only itself, and the page says which."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from django.test import Client

from frontend.pages.group import look
from kcoord.protocol.errors import Error, ProtocolError
from offsets.runs.findings import FindingReads
from offsets.verdicts import VerdictChecks
from tests.frontend.seed import Seed, working_group


async def _endless(*_: object, **__: object) -> None:
    await asyncio.Event().wait()


async def _refused(*_: object, **__: object) -> None:
    raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout")


async def _unavailable(*_: object, **__: object) -> None:
    raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "no connection")


@pytest.mark.parametrize("fails", [_endless, _refused, _unavailable])
def test_the_rest_of_the_page_is_shown(
    person: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch, fails: object
) -> None:
    working_group(seed)
    monkeypatch.setattr(look, "SECONDS", 0.05)
    monkeypatch.setattr(VerdictChecks, "of_group", fails)
    page = person.get("/groups/billing")
    assert page.status_code == 200
    text = page.content.decode()
    assert "Could not be read" in text
    assert "verdicts. The rest" in text
    assert "orders" in text


def test_all_parts_may_fail(person: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch) -> None:
    working_group(seed)
    assert "Could not be read" not in person.get("/groups/billing").content.decode()
    monkeypatch.setattr(VerdictChecks, "of_group", _refused)
    monkeypatch.setattr(FindingReads, "of_group", _refused)
    monkeypatch.setattr("frontend.pages.group.reads.coordinator", _refused)
    text = person.get("/groups/billing").content.decode()
    assert "Could not be read" in text
    assert "findings of reconcile, the coordinator and verdicts" in text


def test_a_snapshot_is_whole_or_none(person: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch) -> None:
    working_group(seed)
    monkeypatch.setattr(VerdictChecks, "of_group", _refused)
    assert person.get("/groups/billing/snapshot.json").status_code == 503
