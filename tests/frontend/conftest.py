"""Fixtures of the pages: an empty database with rows to write, and browsers without a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest
from django.test import Client
from pytest_django.fixtures import SettingsWrapper

from kcoord.config import Config
from kcoord.database.pool import Database
from tests.frontend.alert_seed import told
from tests.frontend.seed import Seed
from tests.frontend.viewers import LOOK, allow

PASSWORD = "correct horse battery staple"


@pytest.fixture
def seed(database: str) -> Iterator[Seed]:
    """Writes rows into an empty database."""
    with psycopg.connect(database, autocommit=True) as connection:
        yield Seed(connection)


@pytest.fixture
async def db(database: str) -> AsyncIterator[Database]:
    """The pool that the read models use."""
    opened = Database(database, Config({}))
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture(autouse=True)
def _fast_passwords(settings: SettingsWrapper) -> None:
    """The real hash takes half a second, which tests of pages need not wait for."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits after failed sign-ins a hundred times as long, which no slow machine outlasts."""
    from frontend.pages.sign_in import view

    for name in ("FIRST_WAIT_MS", "LONGEST_WAIT_MS"):
        monkeypatch.setattr(view, name, 100 * getattr(view, name))


@pytest.fixture
def client(seed: Seed) -> Iterator[Client]:
    """Somebody who has not signed in."""
    from kcoord.process import bridge

    yield Client(raise_request_exception=True)
    bridge.close()


@pytest.fixture
def person(client: Client) -> Client:
    """Somebody who has signed in, and may see everything and do nothing."""
    from django.contrib.auth import get_user_model

    user = get_user_model().objects.create_user("mara", password=PASSWORD)
    allow(user, *LOOK)
    client.force_login(user)
    return client


@pytest.fixture
def operator(client: Client) -> Client:
    """Somebody with an admin account."""
    from django.contrib.auth import get_user_model

    client.force_login(get_user_model().objects.create_superuser("root", password=PASSWORD))
    return client


@pytest.fixture
def receivers(settings: SettingsWrapper, tmp_path: Path) -> None:
    """`oncall` and `chat` can be told of alerts."""
    settings.KCOORD = settings.KCOORD.override(told(tmp_path))


@pytest.fixture
def archived(settings: SettingsWrapper, tmp_path: object) -> None:
    """An archive is configured."""
    settings.KCOORD = settings.KCOORD.override({"archive.path": "/var/archive", "data.dir": str(tmp_path)})
