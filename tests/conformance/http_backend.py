"""`--through http`: the real application in process, the real store on a real Postgres, virtual time.

One database serves all cases; each run gets a runtime of its own (settings, clock, pool, services) on emptied tables.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from kcoord.access.tokens import ALL_RULES
from tests.conformance.cases import Case, Suite
from tests.conformance.core_driver import AT_DEADLINE
from tests.conformance.driver import NoDriver
from tests.conformance.http_consumer import ConsumerHttpDriver, settings
from tests.conformance.http_driver import HttpDriver, make_token
from tests.conformance.http_membership import HOLD_MS
from tests.conformance.leadership import settings_of

START_MS = 1_700_000_000_000
"""Where virtual time begins; the offsets convention has timestamps, counted from 0."""


EMPTIED = sql.SQL("""
do $$
declare
    used text;
begin
    -- Most were never written to. Not truncate, which costs as much as ten steps of a case. Django's foreign keys are
    -- checked at the commit.
    for used in
        select id::text from unnest(array[{}]::regclass[]) as named (id)
        where pg_relation_size(id) > 0
           or exists (select from pg_partition_tree(id) where isleaf and pg_relation_size(relid) > 0)
    loop
        execute 'delete from ' || used;
    end loop;
end
$$
""")


def database_url(conninfo: str) -> str:
    """`KCOORD_DATABASE_URL` of a connection string."""
    parts = {key: str(value) for key, value in conninfo_to_dict(conninfo).items()}
    user, database = quote(parts.pop("user", "")), quote(parts.pop("dbname", ""))
    return f"postgresql://{user}@/{database}?{urlencode(parts)}"


class HttpBackend:
    """Starts the application once, and a coordinator for each run.

    `conninfo`: a migrated, empty database for one case, which Django is already set up for; `secret`: that of a token
    there which may do everything. None: an embedded server is started, and Django is set up for a database on it, in
    which all cases are run (for a program outside pytest).
    """

    name = "http"
    modes: tuple[str, ...] = (AT_DEADLINE,)
    """How late timers may fire is the core's matter: its driver has all modes."""

    def __init__(self, conninfo: str | None = None, secret: str = "") -> None:
        self._conninfo = conninfo
        self._resources = ExitStack()
        self._secret = secret
        self._has_many = conninfo is None

    async def __aenter__(self) -> HttpBackend:
        with ExitStack() as starting:
            if self._conninfo is None:
                self._conninfo = await asyncio.to_thread(self._start_postgres, starting)
                self._secret = await asyncio.to_thread(make_token, ALL_RULES)
            self._resources = starting.pop_all()
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self._resources.close)

    @staticmethod
    def _start_postgres(resources: ExitStack) -> str:
        from tests.support.database import ephemeral_database

        conninfo = resources.enter_context(ephemeral_database())
        os.environ["KCOORD_DATABASE_URL"] = database_url(conninfo)
        os.environ.setdefault("KCOORD_LOG_LEVEL", "error")
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kcoord.settings")
        import django

        django.setup()
        return conninfo

    async def open(self, case: Case, mode: str) -> HttpDriver:
        """A coordinator on empty tables. Raises NoDriver for a setting the service does not have."""
        from kcoord.database.clock import VirtualClock
        from kcoord.process.runtime import Runtime
        from tests.support.steady import wait_out_stalls

        assert self._conninfo is not None
        if self._has_many:
            await self._empty_tables(self._conninfo)
        clock = VirtualClock(0 if case.suite is Suite.OFFSETS else START_MS)
        runtime = Runtime(_config({**settings_of(case), **settings(case.config)}), self._conninfo, clock)
        wait_out_stalls(runtime)
        driver = self._driver_type(case)(case, runtime, clock, self._secret)
        try:
            await driver.start()
        except BaseException:
            await driver.close()
            raise
        return driver

    @staticmethod
    def _driver_type(case: Case) -> type[HttpDriver]:
        return ConsumerHttpDriver if case.suite is Suite.CONSUMER else HttpDriver

    @staticmethod
    async def _empty_tables(conninfo: str) -> None:
        from django.apps import apps

        models = [model for label in ("groups", "offsets") for model in apps.get_app_config(label).get_models()]
        tables = sql.SQL(", ").join(sql.Literal(model._meta.db_table) for model in models)
        async with await psycopg.AsyncConnection.connect(conninfo) as connection:
            await connection.execute(EMPTIED.format(tables))


def _config(overrides: Mapping[str, Any]) -> Any:
    from django.conf import settings as django_settings

    try:
        return django_settings.KCOORD.override({"http.max.wait.ms": HOLD_MS, "token.cache.ms": 0, **overrides})
    except KeyError as error:
        raise NoDriver(f"the service has {error.args[0]}") from error
