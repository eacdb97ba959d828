"""A server dies in the middle of the end of a transaction: all of it is done by the next one, and nothing before."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest

from tests.support.http_members import make_token
from tests.support.processes import Running, start_server

pytestmark = pytest.mark.processes

GROUPS = ("a", "b", "c")
PATIENCE_SECONDS = 30.0
LOCKED_BY_END = """
select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like '/* offsets.lock_groups */%'
               and datname = current_database())
"""


@pytest.fixture
def servers(database: str) -> Iterator[list[Running]]:
    """Two servers on one database."""
    with start_server(database) as first, start_server(database) as second:
        for server in (first, second):
            server.wait_ready()
        yield [first, second]


@pytest.fixture
def client(database: str) -> Iterator[httpx.Client]:
    """A client with a token that may do everything."""
    with httpx.Client(headers={"Authorization": f"Bearer {make_token(database)}"}, timeout=30) as client:
        yield client


def test_an_end_that_dies_half_way_is_finished_by_the_next(
    database: str, servers: list[Running], client: httpx.Client
) -> None:
    first, second = (server.url for server in servers)
    topic = {"name": "t", "partitions": 2, "labels": {}}
    assert client.post(f"{first}/v1/topics", json=topic).status_code == 201
    producer = client.post(f"{first}/v1/transactions/tx/init").json()
    producer.pop("error_code")
    for number, group in enumerate(GROUPS):
        pend(client, (first, second)[number % 2], producer, group)

    with psycopg.connect(database) as holder:
        holder.execute("select from groups_group where group_id = 'c' for update")
        ending = threading.Thread(target=end_of_a_dying_server, args=(client, first, producer))
        ending.start()
        until(database, LOCKED_BY_END, "the end has locked two groups and waits for the third")
        servers[0].kill()
        ending.join(PATIENCE_SECONDS)
        assert not ending.is_alive()
    until(database, f"select not ({LOCKED_BY_END})", "what the dead server had begun is over")

    assert [fetch(client, second, group) for group in GROUPS] == ["UNSTABLE_OFFSET_COMMIT"] * 3
    body = {**producer, "committed": True}
    for pending in (3, 0):
        answer = client.post(f"{second}/v1/transactions/tx/end", json=body).json()
        assert answer == {"pending_offsets": pending, "committed_offsets": pending, "error_code": 0}
        assert [fetch(client, second, group) for group in GROUPS] == [42] * 3


def test_a_producer_is_fenced_whatever_server_it_talks_to(servers: list[Running], client: httpx.Client) -> None:
    first, second = (server.url for server in servers)
    assert client.post(f"{first}/v1/topics", json={"name": "t", "partitions": 2, "labels": {}}).status_code == 201
    old = client.post(f"{first}/v1/transactions/tx/init").json()
    old.pop("error_code")
    stop = threading.Event()
    answers: list[tuple[bool, int, str | None]] = []
    fenced = threading.Event()

    def commit_on() -> None:
        """The old producer goes on at both servers; each answer with whether the takeover had been answered before."""
        number = 0
        while not stop.is_set():
            number += 1
            after = fenced.is_set()
            answer = client.post(
                f"{(first, second)[number % 2]}/v1/groups/{GROUPS[number % 3]}/offsets/txn-commit",
                json=commit_body(old),
            )
            answers.append((after, answer.status_code, answer.json().get("error")))

    committing = threading.Thread(target=commit_on)
    committing.start()
    try:
        wait_for(lambda: len(answers) > 20, "the old producer commits")
        new = client.post(f"{second}/v1/transactions/tx/init").json()
        fenced.set()
        seen = len(answers)
        wait_for(lambda: len(answers) > seen + 20, "the old producer goes on")
    finally:
        stop.set()
        committing.join(PATIENCE_SECONDS)
    assert new["producer_epoch"] == old["producer_epoch"] + 1
    late = [answer for answer in answers if answer[0]]
    assert len(late) >= 20
    assert {answer[1:] for answer in late} == {(409, "INVALID_PRODUCER_EPOCH")}
    assert {answer[1:] for answer in answers} == {(200, None), (409, "INVALID_PRODUCER_EPOCH")}
    assert [fetch(client, first, group) for group in GROUPS] == [-1] * 3


def commit_body(producer: dict[str, Any]) -> dict[str, Any]:
    partitions = [{"partition": 0, "committed_offset": 42}]
    return {"transactional_id": "tx", **producer, "topics": [{"name": "t", "partitions": partitions}]}


def pend(client: httpx.Client, url: str, producer: dict[str, Any], group: str) -> None:
    answer = client.post(f"{url}/v1/groups/{group}/offsets/txn-commit", json=commit_body(producer))
    assert answer.status_code == 200, answer.text


def end_of_a_dying_server(client: httpx.Client, url: str, producer: dict[str, Any]) -> None:
    with pytest.raises(httpx.TransportError):
        client.post(f"{url}/v1/transactions/tx/end", json={**producer, "committed": True})


def fetch(client: httpx.Client, url: str, group: str) -> int | str:
    """The offset of partition 0, or the error of a stable fetch."""
    body = {"topics": [{"name": "t", "partitions": [0]}], "require_stable": True}
    answer = client.post(f"{url}/v1/groups/{group}/offsets/fetch", json=body)
    assert answer.status_code == 200, answer.text
    (partition,) = answer.json()["topics"][0]["partitions"]
    found: int | str = partition["error"] if partition["error_code"] else partition["committed_offset"]
    return found


def until(database: str, query: str, what: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:

        def holds() -> bool:
            row = connection.execute(query.encode()).fetchone()
            return row is not None and row[0]

        wait_for(holds, what)


def wait_for(condition: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for: {what}"
        time.sleep(0.01)
