"""Requests are freed when they have ended: what they leave in cycles stays until a full search, and makes it long."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from unittest import mock

import pytest

from groups.engine.mailbox import Mailbox
from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from kcoord.protocol.errors import Action, Error, ProtocolError
from tests.kcoord.http.test_disconnect import goes_away, session_counts
from tests.support.api import Members, assert_problem, identity, join_body
from tests.support.members import join

OURS = ("kcoord.", "groups.", "offsets.", "django.", "rest_framework.")


@contextmanager
def searched() -> Iterator[Counter[str]]:
    """What a full search finds of what came in between, by type."""
    found: Counter[str] = Counter()
    flags = gc.get_debug()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found.update(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.garbage)
    finally:
        gc.set_debug(flags)
        gc.garbage.clear()
        gc.enable()


def of_requests(found: Counter[str]) -> dict[str, int]:
    """Of these, what belongs to requests and to groups, with Django's part of it."""
    return {name: count for name, count in found.items() if name.startswith(OURS) or name.endswith("Task")}


async def test_a_search_finds_what_is_in_a_cycle() -> None:
    with searched() as found:
        error = ProtocolError(Error.UNKNOWN_MEMBER_ID)
        error.fields = {"member_id": "m"}
        error.__context__ = ProtocolError(Error.UNKNOWN_MEMBER_ID)
        error.__context__.__cause__ = error
        del error
    # Not `of_requests`: threads of clients of earlier tests may end meanwhile.
    assert found["kcoord.protocol.errors.ProtocolError"] == 2


async def test_a_refused_join_is_freed(members: Members) -> None:
    """The first one of every member: MEMBER_ID_REQUIRED, raised through what watches the connection."""
    await members.pending_id()
    with searched() as found:
        for _ in range(10):
            await members.pending_id()
    assert of_requests(found) == {}


async def test_a_waiting_client_that_goes_away_is_freed(
    members: Members, service: GroupService, clock: VirtualClock
) -> None:
    async def gone() -> None:
        member_id = await members.pending_id()
        waiting = asyncio.create_task(members.api.post("/v1/groups/g/join", json=join_body(member_id)))
        await members.until_parked("g", member_id, "awaiting_join")
        clock.advance(1_000)
        await goes_away(waiting)
        # What follows the end of the request goes on by itself; a search meanwhile stalls its transaction.
        await session_counts(service, member_id, clock)

    await gone()
    with searched() as found:
        await gone()
    assert of_requests(found) == {}


async def test_a_group_that_works_and_ends_is_freed(members: Members, service: GroupService) -> None:
    async def lives(group: str) -> None:
        leader = await members.stable(group)
        beat = await members.api.post(f"/v1/groups/{group}/heartbeat", json=identity(leader))
        assert beat.status_code == 200, beat.text
        stranger = {"member_id": "nobody", "generation_id": 1}
        assert_problem(await members.api.post(f"/v1/groups/{group}/heartbeat", json=stranger), Error.UNKNOWN_MEMBER_ID)
        left = await members.api.post(f"/v1/groups/{group}/leave", json={"members": [identity(leader)]})
        assert left.status_code in (200, 400), left.text

    await lives("g1")
    with searched() as found:
        await lives("g2")
    assert of_requests(found) == {}


async def test_a_request_through_django_is_freed(members: Members) -> None:
    """A hundred objects each: a server in which groups were created and deleted all the time grew by 18 kB for each."""

    async def deleted(group: str) -> None:
        leader = await members.stable(group)
        await members.api.post(f"/v1/groups/{group}/leave", json={"members": [{"member_id": leader["member_id"]}]})
        assert (await members.api.delete(f"/v1/groups/{group}")).status_code == 204

    await deleted("g1")
    with searched() as found:
        await deleted("g2")
    assert of_requests(found) == {}


async def fail_together(service: GroupService) -> None:
    """Five joins whose transaction fails; each gets an error of its own."""

    async def fail(*_: object) -> None:
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "test")

    with mock.patch.object(Mailbox, "_transact", fail):
        asked = [service.join(join(member_id=f"m{number}")) for number in range(5)]
        errors = await asyncio.gather(*asked, return_exceptions=True)
    assert [str(error) for error in errors] == ["test"] * 5
    assert len({id(error) for error in errors}) == 5


async def test_those_who_share_a_failed_transaction_are_freed(service: GroupService) -> None:
    await fail_together(service)
    with searched() as found:
        await fail_together(service)
    assert of_requests(found) == {}


@pytest.mark.parametrize("name", ["error", "detail", "fields", "action", "retry_after_ms"])
def test_a_copied_error_says_the_same(name: str) -> None:
    error = ProtocolError(Error.UNKNOWN_MEMBER_ID, "d", fields={"field": "f"}, action=Action.REJOIN, retry_after_ms=7)
    assert getattr(copy(error), name) == getattr(error, name)
