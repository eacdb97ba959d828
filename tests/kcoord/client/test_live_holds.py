"""Operators and the client of a real server process: members that are kept out or kicked come back by themselves."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from kcoord.client import Consumer
from tests.kcoord.client.live import Service, owned, poll_until, running_service, shared_out
from tests.kcoord.client.sources import lettered
from tests.support.database import cloned_database

pytestmark = [
    pytest.mark.processes,
    pytest.mark.whole("holds of a live service; scripted coordinators answer the same"),
]

HOLD_MS = 3_000


@pytest.fixture(scope="module")
def service(postgres: str) -> Iterator[Service]:
    with cloned_database(postgres) as conninfo, running_service(conninfo) as running:
        yield running


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def started(service: Service, stack: ExitStack, protocol: str, static: bool) -> tuple[str, list[Consumer]]:
    """A group of two members that share the four partitions of a topic."""
    group, topic = f"group-{secrets.token_hex(4)}", service.topic(4)
    make = service.settings if protocol == "classic" else service.consumer_settings
    members = []
    for number in range(2):
        identity = {"group_instance_id": f"i{number}"} if static else {}
        settings = make(group, enable_auto_commit=False, **identity)
        members.append(stack.enter_context(Consumer(topic, source=lettered(4, 50, topic), **settings)))
    poll_until(lambda: shared_out(members, 4), *members)
    return group, members


def post(service: Service, path: str, **body: Any) -> httpx.Response:
    """An operator's request."""
    return service.request("POST", path, json=body)


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_come_back_by_themselves_when_a_hold_ends(
    service: Service, stack: ExitStack, protocol: str, static: bool
) -> None:
    group, members = started(service, stack, protocol, static)
    held = post(service, f"groups/{group}/hold", duration_ms=HOLD_MS, reason="reset")
    assert (held.status_code, held.json()["removed_members"]) == (200, 2)
    began = time.monotonic()
    poll_until(lambda: not owned(members[0]) and not owned(members[1]), *members)
    assert service.describe(group)["members"] == []
    poll_until(lambda: shared_out(members, 4), *members)
    assert time.monotonic() - began >= HOLD_MS / 1000 - 0.5, "nobody came back before"
    assert service.describe(group)["hold"] is None


def test_members_come_back_when_a_hold_is_released(service: Service, stack: ExitStack) -> None:
    group, members = started(service, stack, "consumer", static=False)
    post(service, f"groups/{group}/hold", duration_ms=600_000)
    poll_until(lambda: not owned(members[0]) and not owned(members[1]), *members)
    assert service.request("DELETE", f"groups/{group}/hold").status_code == 204
    poll_until(lambda: shared_out(members, 4), *members)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_kicked_member_comes_back(service: Service, stack: ExitStack, protocol: str) -> None:
    group, members = started(service, stack, protocol, static=False)
    member_id = service.describe(group)["members"][0]["member_id"]
    assert post(service, f"groups/{group}/members/{member_id}/kick", reason="hangs").status_code == 204
    events = service.request("GET", f"groups/{group}/events?kind=member_removed").json()["events"]
    assert [event["member_id"] for event in events] == [member_id]
    poll_until(lambda: len(service.describe(group)["members"]) == 2 and shared_out(members, 4), *members)
