"""A database that the user does not own: one line, with the statement that helps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.database import cloned_database
from tests.support.processes import Running, start

pytestmark = [
    pytest.mark.processes,
    pytest.mark.whole("databases of other owners; the default has those of the stack"),
]

USER = f"of the service {os.getpid()}"
"""Roles belong to the whole Postgres, which several test processes share."""


@pytest.fixture
def foreign(postgres: str) -> Iterator[str]:
    """An empty database of the superuser, as another user."""
    with cloned_database(postgres, "template0") as conninfo, psycopg.connect(conninfo, autocommit=True) as owner:
        owner.execute(f'create role "{USER}" login')
        try:
            yield make_conninfo(conninfo, user=USER)
        finally:
            name = conninfo_to_dict(conninfo)["dbname"]
            owner.execute(f'alter database "{name}" owner to postgres')
            owner.execute(f'drop owned by "{USER}" cascade')
            owner.execute(f'drop role "{USER}"')


def setup(conninfo: str, data_dir: Path) -> Running:
    """What prepares the database."""
    return start("setup", ["-m", "kcoord.stack.bootstrap"], conninfo, {"KCOORD_DATA_DIR": data_dir})


def test_the_remedy_is_named_and_helps(foreign: str, postgres: str, tmp_path: Path) -> None:
    name = conninfo_to_dict(foreign)["dbname"]
    remedy = f'alter database "{name}" owner to "{USER}"'
    with setup(foreign, tmp_path) as refused:
        assert refused.wait(60) == 2, refused.output
        line = refused.output.splitlines()[-1]
        assert line.startswith(f"user {USER} may not create schemas in the database {name}, which belongs to postgres")
        assert f"`{remedy}`" in line
        assert "Traceback" not in refused.output
    with psycopg.connect(make_conninfo(postgres, dbname=name), autocommit=True) as owner:
        owner.execute(remedy)
    with setup(foreign, tmp_path) as accepted:
        assert accepted.wait(120) == 0, accepted.output


def test_a_schema_that_belongs_to_somebody_else(foreign: str, postgres: str, tmp_path: Path) -> None:
    name = conninfo_to_dict(foreign)["dbname"]
    with psycopg.connect(make_conninfo(postgres, dbname=name), autocommit=True) as owner:
        owner.execute(f'grant create on database "{name}" to "{USER}"')
    with setup(foreign, tmp_path) as refused:
        assert refused.wait(60) == 2, refused.output
        line = refused.output.splitlines()[-1]
        assert f"""run `grant create on schema "public" to "{USER}"` as postgres""" in line
