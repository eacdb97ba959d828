"""FindCoordinator where there is no coordinator: the service is stopped, or the tables of offsets are not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psycopg

from groups.engine.availability import CoordinatorAvailability
from groups.engine.service import GroupService
from kcoord.process.runtime import Runtime
from tests.support.fixtures import ClientWith

NOWHERE = {"partition": -1, "node_id": "", "host": "", "port": -1, "url": ""}
NOT_AVAILABLE = {**NOWHERE, "error_code": 15, "error": "COORDINATOR_NOT_AVAILABLE"}


@contextmanager
def without_offsets(database: str) -> Iterator[None]:
    """The schema as it is before it is migrated: no table of offsets."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("alter table offsets_committedoffset rename to elsewhere")
        try:
            yield
        finally:
            connection.execute("alter table elsewhere rename to offsets_committedoffset")


async def found(client: httpx.AsyncClient, *keys: str) -> list[dict[str, object]]:
    """The coordinators of some keys."""
    response = await client.get("/v1/coordinator", params={"group_id": keys})
    assert response.status_code == 200, response.text
    coordinators: list[dict[str, object]] = response.json()["coordinators"]
    return coordinators


async def test_without_the_tables_no_group_has_a_coordinator(api: httpx.AsyncClient, database: str) -> None:
    with without_offsets(database):
        assert await found(api, "a", "b") == [{"key": key, **NOT_AVAILABLE} for key in ("a", "b")]
    assert [entry["error"] for entry in await found(api, "a", "b")] == ["NONE", "NONE"], "it is asked again at once"


async def test_tables_that_were_seen_are_not_asked_for_again(
    api: httpx.AsyncClient, runtime: Runtime, database: str
) -> None:
    assert await runtime.get(CoordinatorAvailability).offsets_are_stored()
    with without_offsets(database):
        (entry,) = await found(api, "a")
    assert entry["error"] == "NONE"


async def test_permission_comes_first(client_with: ClientWith, database: str) -> None:
    client = await client_with("describe:group:mine")
    with without_offsets(database):
        errors = [entry["error"] for entry in await found(client, "mine", "yours", "bad/id")]
    assert errors == ["COORDINATOR_NOT_AVAILABLE", "GROUP_AUTHORIZATION_FAILED", "INVALID_GROUP_ID"]


async def test_a_stopped_service_coordinates_nothing(client_with: ClientWith, runtime: Runtime) -> None:
    client = await client_with("describe:group:mine")
    runtime.get(GroupService).active = False
    assert await found(client, "mine", "yours") == [{"key": key, **NOT_AVAILABLE} for key in ("mine", "yours")]
    (entry,) = await found(client, "yours")
    assert entry["error"] == "GROUP_AUTHORIZATION_FAILED"
