"""Numbers that clients choose, as large as they can be: no page, answer or task of anybody fails."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest
import uvicorn
from django.http import StreamingHttpResponse
from django.test import Client

from frontend.ui import table as csv_files
from frontend.ui import wording
from frontend.ui.table import pieces
from kcoord.access.rights import ALL_ALLOWED, Principal
from kcoord.access.tokens import ALL_RULES, create_token
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from offsets.lag.samples import GroupsFailed, SampleService, Spared
from offsets.metrics.series import GroupMetrics
from offsets.verdicts.checks import VerdictChecks
from tests.frontend.seed import Seed

LEAST, MOST = -(2**63), 2**63 - 1
EXTREMES = (LEAST, -1, 0, 1, MOST)
PAGES = (
    "/",
    "/groups",
    "/groups.csv",
    "/groups?sort=lag",
    "/groups/g",
    "/groups/g?sort=lag",
    "/groups/g?view=members",
    "/groups/g/commits",
    "/groups/g/commits.csv",
    "/groups/g/events",
    "/groups/g/history",
    "/groups/g/lag.csv",
    "/groups/g/members/m1",
    "/groups/g/members.csv",
    "/groups/g/offsets.csv",
    "/groups/g/rebalances",
    "/groups/g/reset",
    "/groups/g/snapshot.json",
    "/groups/g/snapshot.md",
    "/groups/g/states",
    "/topics",
    "/topics?sort=lag",
    "/topics.csv",
    "/topics/orders",
    "/topics/orders/partitions.csv",
    "/topics/orders/groups.csv",
    "/health",
    "/plans",
    "/timeline",
    "/search?q=g",
    "/compare?what=groups&name=g&name=other",
)
V1 = (
    "/v1/groups",
    "/v1/groups?sort=lag",
    "/v1/groups?topic=orders",
    "/v1/groups/g",
    "/v1/groups/g/commits",
    "/v1/groups/g/events",
    "/v1/groups/g/lag",
    "/v1/groups/g/lag/history",
    "/v1/groups/g/offsets",
    "/v1/groups/g/offsets/plans",
    "/v1/groups/g/pins",
    "/v1/topics",
    "/v1/topics/orders",
    "/v1/topics/orders/watermarks",
    "/v1/alerts",
    "/v1/nodes",
)


@pytest.fixture
def extremes(seed: Seed) -> Seed:
    """Two groups; one committed every extreme offset, on logs that end as early and as late as they can."""
    ends = [MOST, MOST, MOST, 1, 0]
    seed.topic("orders", len(EXTREMES), ends)
    seed.connection.execute("update groups_watermark set log_start_offset = 0")
    group = seed.group("g")
    seed.members(group, ["m1"])
    seed.assign(group, {"m1": [("orders", partition) for partition in range(len(EXTREMES))]})
    seed.commit(group, {("orders", partition): offset for partition, offset in enumerate(EXTREMES)})
    for partition, at in enumerate(EXTREMES):
        statement = "update offsets_committedoffset set expire_timestamp = %s where group_id = %s and partition = %s"
        seed.connection.execute(statement, (at, group, partition))
    seed.topic("other", 1, [10])
    other = seed.group("other", "Empty")
    seed.commit(other, {("other", 0): 3})
    return seed


def run_tasks() -> None:
    """What Celery runs: samples and verdicts."""

    async def work(runtime: Runtime) -> None:
        await runtime.get(SampleService).sample()
        await runtime.get(VerdictChecks).check_members()
        await runtime.get(VerdictChecks).check_offsets()

    bridge.call(work)


def test_tasks_and_pages_take_the_largest_numbers(operator: Client, extremes: Seed) -> None:
    run_tasks()
    lag = "select lag from offsets_grouplag l join groups_group g on g.id = l.group_id where g.group_id = %s"
    assert extremes.connection.execute(lag, ("g",)).fetchone() == (MOST,), "the sum is cut to the range"
    assert extremes.connection.execute(lag, ("other",)).fetchone() == (7,)
    failed = []
    for address in PAGES:
        answer = operator.get(address)
        content = b"".join(answer) if isinstance(answer, StreamingHttpResponse) else answer.content
        if answer.status_code != 200 or b"part-failed" in content:
            failed.append((address, answer.status_code))
    assert not failed


def test_the_api_and_metrics_take_the_largest_numbers(client: Client, extremes: Seed) -> None:
    run_tasks()
    bearer: Any = {"headers": {"Authorization": f"Bearer {create_token('reader', ALL_RULES).secret}"}}
    answers = {address: client.get(address, **bearer) for address in V1}
    assert {address: answer.status_code for address, answer in answers.items() if answer.status_code != 200} == {}
    topics = {topic["topic"]: topic["partitions"] for topic in answers["/v1/groups/g/lag"].json()["topics"]}
    assert [one["lag"] for one in topics["orders"]] == [MOST, MOST, MOST, 0, 0]
    caller = Principal(1, "reader", ALL_ALLOWED)
    series = bridge.call(lambda runtime: runtime.get(GroupMetrics).text(caller)).decode()
    assert re.search(rf'^kcoord_group_lag{{group="g"}} {MOST}$', series, re.MULTILINE), series


def test_sums_of_the_least_offsets_do_not_stop_the_sampler(client: Client, seed: Seed) -> None:
    group = seed.group("g", "Empty")
    seed.commit(group, {("orders", 0): LEAST, ("orders", 1): -1})
    run_tasks()
    sums = seed.connection.execute("select committed_offsets from offsets_topiclag").fetchone()
    assert sums == (LEAST,)


async def test_a_group_that_fails_spares_the_others() -> None:
    seen: list[tuple[int, int]] = []

    async def work(after: int, upto: int) -> int:
        if after < 5 <= upto:
            raise psycopg.errors.NumericValueOutOfRange("bigint out of range")
        seen.append((after, upto))
        return upto - after

    spared = Spared("lag cannot be sampled")
    assert sum(await spared.run(work, 0, 1000)) == 999
    assert sorted(key for after, upto in seen for key in range(after + 1, upto + 1)) == [*range(1, 5), *range(6, 1001)]
    with pytest.raises(GroupsFailed, match=r"groups_group\.id 5: bigint out of range"):
        spared.check()


@pytest.mark.parametrize("at", EXTREMES)
def test_every_instant_can_be_shown(at: int) -> None:
    for zone in ("Pacific/Kiritimati", "Etc/GMT+12", "Europe/Berlin"):
        for write in (wording.instant, wording.wall):
            assert write(at, ZoneInfo(zone))
    assert wording.iso(at).endswith("Z")
    assert wording.instant(MOST).startswith("after 9999-12-31")
    assert wording.instant(LEAST).startswith("before 0001-01-01")


@pytest.mark.parametrize("at", [1761437400000, 1761441000000, 1761441000123, 1761444600000])
def test_a_field_reads_what_it_shows_in_the_repeated_hour(at: int) -> None:
    zone = ZoneInfo("Europe/Berlin")
    assert wording.read_instant(wording.wall(at, zone), zone) == at


@pytest.mark.parametrize(
    ("written", "accepted"),
    [
        ("2026-01-31 12:00+05:75", wording.INSTANT_FORM),
        ("2026-01-31 12:00-00:60", wording.INSTANT_FORM),
        ("2026-02-30 12:00", wording.INSTANT_FORM),
        ("9999-12-31 23:59-14:00", "9999-12-31T23:59:59.999Z"),
        ("0001-01-01 00:00+01:00", "0001-01-01T00:00:00Z"),
    ],
)
def test_a_field_says_which_instants_it_takes(person: Client, seed: Seed, written: str, accepted: str) -> None:
    with pytest.raises(ValueError, match=accepted):
        wording.read_instant(written)
    seed.group("g")
    answer = person.get("/groups/g/commits", {"from": written})
    assert answer.status_code == 400
    assert accepted in answer.content.decode()


def test_a_file_that_breaks_off_says_so_and_has_no_last_chunk(
    operator: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a real server: the line arrives, and then the connection is cut."""
    seed.group("broken")

    def cell(value: object) -> object:
        if value == "broken":
            raise OverflowError("date value out of range")
        return value

    monkeypatch.setattr(csv_files, "cell", cell)
    request = (
        "GET /groups.csv HTTP/1.1\r\nHost: testserver\r\n"
        f"Cookie: sessionid={operator.cookies['sessionid'].value}\r\n\r\n"
    )

    async def get() -> bytes:
        from kcoord.asgi import django_application

        server = uvicorn.Server(uvicorn.Config(django_application, lifespan="off", log_config=None))
        with socket.create_server(("127.0.0.1", 0)) as listening:
            serving = asyncio.create_task(server.serve([listening]))
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            writer.write(request.encode())
            async with asyncio.timeout(30):
                received = await reader.read()
            writer.close()
            server.should_exit = True
            await serving
        return received

    head, body = asyncio.run(get()).split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 200"), "it has begun"
    assert b"transfer-encoding: chunked" in head.lower()
    assert csv_files.BROKEN_OFF.encode() in body
    assert not body.endswith(b"0\r\n\r\n"), "no final chunk: the client sees that the file is cut"


def test_a_file_that_breaks_off_says_so_and_does_not_end() -> None:
    def rows() -> Iterator[tuple[int]]:
        yield (1,)
        raise OverflowError("date value out of range")

    received: list[bytes] = []
    with pytest.raises(OverflowError):
        received.extend(pieces(["number"], rows()))
    assert b"".join(received).splitlines()[-1].startswith(b"ERROR"), "and the connection is cut by the error"
