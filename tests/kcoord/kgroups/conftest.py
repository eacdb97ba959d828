"""Runs of the tool in this process, against the service of the test, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from django.db import connections

from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from groups.topics import TopicService, Watermark
from kcoord.door.http import logs
from kcoord.process.runtime import Runtime
from offsets.management.commands.kgroups import Command
from tests.support.api_consumers import Consumers
from tests.support.rest_groups import group

REQUEST_ID = re.compile(r" \(request [^)]*\)")


@dataclass(frozen=True)
class Run:
    """What one run of the tool left. Request ids are taken out, for they are never the same."""

    status: int
    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        """The words of each line of the result that is not empty."""
        return [line.split() for line in self.out.splitlines() if line.strip()]


Kgroups = Callable[..., Awaitable[Run]]


@contextlib.contextmanager
def closed_connections() -> Iterator[None]:
    """Django's connections of this thread end with it."""
    try:
        yield
    finally:
        connections.close_all()


def run_tool(*arguments: str) -> Run:
    """One run, as `manage.py kgroups ARGUMENTS`."""
    out, err = io.StringIO(), io.StringIO()
    command = Command(stdout=out, stderr=err, no_color=True)
    with contextlib.redirect_stderr(err), closed_connections(), pytest.raises(SystemExit) as end:
        command.run_from_argv(["manage.py", "kgroups", *arguments])
    assert isinstance(end.value.code, int), end.value.code
    return Run(end.value.code, REQUEST_ID.sub("", out.getvalue()), REQUEST_ID.sub("", err.getvalue()))


@pytest.fixture(autouse=True)
def _log_level_stays() -> Iterator[None]:
    """The command makes the log of its process quiet."""
    yield
    logs.configure("info")


@pytest.fixture
def kgroups(runtime: Runtime) -> Kgroups:
    """Run the tool against this service, without a URL."""

    async def run(*arguments: str) -> Run:
        return await asyncio.to_thread(run_tool, *arguments)

    return run


@pytest.fixture
def service(runtime: Runtime) -> GroupService:
    """The group service of this process."""
    return runtime.get(GroupService)


@pytest.fixture
def topics(runtime: Runtime) -> TopicService:
    """The topic service of this process."""
    return runtime.get(TopicService)


@pytest.fixture
async def orders(topics: TopicService) -> str:
    """A topic with four partitions; the logs of the first three are known."""
    await topics.create("orders", 4)
    await topics.set_watermarks("orders", [Watermark(0, 10, 100), Watermark(1, 0, 50), Watermark(2, 0, 7)])
    return "orders"


@dataclass(frozen=True)
class Committer:
    """Commits of groups without members."""

    api: httpx.AsyncClient

    async def __call__(
        self, group: str, offsets: dict[int, int], topic: str = "orders", epoch: int = -1, **who: Any
    ) -> None:
        """Commit offsets by partition; `epoch` is that of their leader, `who` the member."""
        partitions = [
            {"partition": p, "committed_offset": o, "committed_leader_epoch": epoch} for p, o in offsets.items()
        ]
        path = f"/v1/groups/{quote(group, safe='')}/offsets/commit"
        response = await self.api.post(path, json={"topics": [{"name": topic, "partitions": partitions}], **who})
        assert response.status_code == 200, response.text
        assert {p["error_code"] for t in response.json()["topics"] for p in t["partitions"]} == {0}


@pytest.fixture
def commit(api: httpx.AsyncClient) -> Committer:
    """Commit offsets of a group without members."""
    return Committer(api)


@pytest.fixture
def consumers(api: httpx.AsyncClient, runtime: Runtime) -> Consumers:
    """Members of the consumer group g."""
    return Consumers(api, runtime)


@pytest.fixture
async def many(service: GroupService, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """More groups than one page of the tool has."""
    monkeypatch.setattr("kcoord.client.kgroups.api.PAGE", 10)
    ids = [f"group-{number:02}" for number in range(25)]
    for group_id in ids:
        await service.put(group(group_id, GroupState.EMPTY))
    return ids
