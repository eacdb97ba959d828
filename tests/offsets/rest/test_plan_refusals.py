"""What offset plans refuse: bad input, what moved, what is not allowed. Each refusal leaves everything as it was."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import psycopg
import pytest

from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.protocol.errors import Error
from tests.conftest import START_MS
from tests.support.api import Members, assert_problem
from tests.support.api_transactions import ended, pend
from tests.support.fixtures import ClientWith
from tests.support.rest_plans import GROUP, Plans, news, orders

WHOLE = [{"name": "orders"}]
ONLY_0 = [{"name": "orders", "partitions": [0]}]


@pytest.fixture
async def plans(api: httpx.AsyncClient, topics: TopicService) -> Plans:
    """Plans of the group g, with a topic of three partitions that have offsets 10 to 100."""
    await orders(topics)
    return Plans(api)


def stored(database: str) -> tuple[int, int]:
    """How many plans and lines of plans there are."""
    with psycopg.connect(database) as connection:
        (plans,) = connection.execute("select count(*) from offsets_offsetplan").fetchone() or (0,)
        (lines,) = connection.execute("select count(*) from offsets_plannedoffset").fetchone() or (0,)
    return plans, lines


BAD_REQUESTS: list[tuple[dict[str, Any], str]] = [
    ({"strategy": "to-infinity"}, "strategy"),
    ({"strategy": None}, "strategy"),
    ({}, "strategy"),
    ({"strategy": "to-earliest", "ofset": 5}, "ofset"),
    ({"strategy": "to-offset", "topics": WHOLE}, "offset"),
    ({"strategy": "to-offset", "topics": WHOLE, "offset": None}, "offset"),
    ({"strategy": "to-offset", "topics": WHOLE, "offset": -1}, "offset"),
    ({"strategy": "to-offset", "topics": WHOLE, "offset": 2**63}, "offset"),
    ({"strategy": "to-offset", "topics": WHOLE, "offset": "9223372036854775808"}, "offset"),
    ({"strategy": "to-offset", "topics": WHOLE, "offset": "5.0"}, "offset"),
    ({"strategy": "to-offset", "topics": WHOLE, "offset": "five"}, "offset"),
    ({"strategy": "to-offset", "topics": WHOLE, "offset": True}, "offset"),
    ({"strategy": "to-offset", "topics": WHOLE, "offset": 1.5}, "offset"),
    ({"strategy": "to-offset", "topics": WHOLE, "offset": 5, "by": 1}, "by"),
    ({"strategy": "to-earliest", "topics": WHOLE, "offset": 5}, "offset"),
    ({"strategy": "shift-by", "topics": WHOLE}, "by"),
    ({"strategy": "shift-by", "topics": WHOLE, "by": 2**63}, "by"),
    ({"strategy": "shift-by", "topics": WHOLE, "by": -(2**63)}, "by"),
    ({"strategy": "to-datetime", "topics": WHOLE}, "at"),
    ({"strategy": "to-datetime", "topics": WHOLE, "at": "yesterday"}, "at"),
    ({"strategy": "to-datetime", "topics": WHOLE, "at": "2026-01-31T12:00:00.000"}, "at"),
    ({"strategy": "to-datetime", "topics": WHOLE, "at": "2026-02-30T12:00:00Z"}, "at"),
    ({"strategy": "to-datetime", "topics": WHOLE, "at": 1_700_000_000_000}, "at"),
    ({"strategy": "by-duration", "topics": WHOLE}, "duration"),
    ({"strategy": "by-duration", "topics": WHOLE, "duration": "1 day"}, "duration"),
    ({"strategy": "by-duration", "topics": WHOLE, "duration": "P1Y"}, "duration"),
    ({"strategy": "by-duration", "topics": WHOLE, "duration": "-P1D"}, "duration"),
    ({"strategy": "copy-from-group", "topics": WHOLE}, "from_group"),
    ({"strategy": "from-file"}, "csv"),
    ({"strategy": "from-file", "csv": ""}, "csv"),
    ({"strategy": "from-file", "csv": "orders,0,5", "topics": WHOLE}, "topics"),
    ({"strategy": "to-latest", "csv": "not, read", "topics": WHOLE}, "csv"),
    ({"strategy": "to-committed-at"}, "at"),
    ({"strategy": "to-committed-at", "at": rfc3339(START_MS + 1)}, "at"),
    ({"strategy": "to-committed-at", "at": rfc3339(START_MS - 31 * 86_400_000)}, "at"),
    ({"strategy": "to-latest", "topics": []}, "topics"),
    ({"strategy": "to-latest", "topics": {}}, "topics"),
    ({"strategy": "to-latest", "topics": [{"name": "orders", "partitions": []}]}, "topics[0].partitions"),
    ({"strategy": "to-latest", "topics": [{"name": "orders", "partitions": [-1]}]}, "topics[0].partitions"),
    ({"strategy": "to-latest", "topics": [{"name": "orders", "partitions": ["0"]}]}, "topics[0].partitions"),
    ({"strategy": "to-latest", "topics": [{"name": "orders", "partitions": [2**31]}]}, "topics[0].partitions"),
    ({"strategy": "to-latest", "topics": [{"name": "orders", "partitions": [1, 1]}]}, "topics[0].partitions"),
    ({"strategy": "to-latest", "topics": [*WHOLE, *WHOLE]}, "topics[1].name"),
    ({"strategy": "to-latest", "topics": [{"partitions": [0]}]}, "topics[0].name"),
    ({"strategy": "to-latest", "topics": [{"name": "or\0ders"}]}, "topics[0].name"),
    ({"strategy": "to-latest", "topics": WHOLE, "reason": 5}, "reason"),
    ({"strategy": "to-latest"}, "topics"),
]


async def test_bad_requests_name_the_field(plans: Plans, database: str, subtests: pytest.Subtests) -> None:
    for body, field in BAD_REQUESTS:
        with subtests.test(f"{body} {field}"):
            response = await plans.api.post(f"{GROUP}/offsets/plan", json=body)
            problem = assert_problem(response, Error.INVALID_REQUEST)
            assert problem["field"].startswith(field)
            assert field in problem["detail"]
    assert stored(database) == (0, 0)


NOT_THERE: list[tuple[dict[str, Any], str]] = [
    ({"strategy": "to-latest", "topics": [{"name": "nothing"}]}, "nothing"),
    ({"strategy": "to-latest", "topics": [{"name": "orders", "partitions": [0, 3, 7]}]}, "orders-3"),
    ({"strategy": "from-file", "csv": "orders,0,5\norders,3,5"}, "orders-3"),
    ({"strategy": "from-file", "csv": "orders,0,5\nnothing,0,5"}, "nothing-0"),
]


async def test_what_does_not_exist_is_named(plans: Plans, database: str, subtests: pytest.Subtests) -> None:
    for body, named in NOT_THERE:
        with subtests.test(f"{body} {named}"):
            response = await plans.api.post(f"{GROUP}/offsets/plan", json=body)
            assert named in assert_problem(response, Error.UNKNOWN_TOPIC_OR_PARTITION)["detail"]
    assert stored(database) == (0, 0)


async def test_one_partition_that_cannot_be_planned_refuses_all(
    plans: Plans, topics: TopicService, database: str
) -> None:
    await topics.create("silent", 12)
    await plans.commit((0, 40))
    scope = [*WHOLE, {"name": "silent"}]
    unknown = assert_problem(await plans.ask("to-latest", topics=scope), Error.INVALID_REQUEST)
    assert unknown["problem_count"] == 12
    assert {(p["topic"], p["partition"]) for p in unknown["problems"]} == {("silent", p) for p in range(12)}
    assert "/v1/topics/silent/watermarks" in unknown["detail"]
    assert "and 2 more" in unknown["detail"]
    shifted = assert_problem(await plans.ask("shift-by", by=1, topics=WHOLE), Error.INVALID_REQUEST)
    assert [p["partition"] for p in shifted["problems"]] == [1, 2]
    assert stored(database) == (0, 0)


async def test_every_bad_line_of_a_file_is_named_and_nothing_is_planned(plans: Plans, database: str) -> None:
    body = assert_problem(
        await plans.ask("from-file", csv="orders,0,5\norders,x,5\norders,1,-1\norders,0,7"), Error.INVALID_REQUEST
    )
    assert [line["line"] for line in body["lines"]] == [2, 3, 4]
    assert "line 4: orders-0 is already listed in line 1" in body["detail"]
    assert stored(database) == (0, 0)


async def test_a_file_larger_than_a_body_may_be_is_refused(plans: Plans) -> None:
    response = await plans.ask("from-file", csv="orders,0,5\n" * 100_000)
    assert_problem(response, Error.INVALID_REQUEST, status=413)


async def test_applying_twice_and_undoing_twice(plans: Plans) -> None:
    await plans.commit((0, 40))
    made = await plans.made("to-latest")
    early = assert_problem(await plans.undo(made), Error.INVALID_REQUEST, status=409)
    assert (early["state"], "has not been applied" in early["detail"]) == ("planned", True)
    assert (await plans.apply(made)).status_code == 200
    twice = assert_problem(await plans.apply(made), Error.INVALID_REQUEST, status=409)
    assert (twice["state"], "already been applied" in twice["detail"]) == ("applied", True)
    assert (await plans.undo(made)).status_code == 200
    again = assert_problem(await plans.undo(made), Error.INVALID_REQUEST, status=409)
    assert (again["state"], "was undone" in again["detail"]) == ("undone", True)
    assert_problem(await plans.apply(made), Error.INVALID_REQUEST, status=409)
    assert await plans.committed() == {("orders", 0): 40}


@pytest.mark.parametrize("verb", ["", "/apply", "/undo"])
async def test_a_plan_of_another_group_or_of_none(plans: Plans, verb: str) -> None:
    await plans.commit((0, 40))
    made = await plans.made("to-latest")
    method = plans.api.post if verb else plans.api.get
    for path in (
        f"/v1/groups/other/offsets/plans/{made['id']}{verb}",
        f"{GROUP}/offsets/plans/{uuid.uuid4()}{verb}",
        f"{GROUP}/offsets/plans/service/1{verb}",
        f"{GROUP}/offsets/plans/%00{verb}",
    ):
        body = assert_problem(await method(path), Error.INVALID_REQUEST, status=404)
        assert "has no plan" in body["detail"], path
    assert await plans.committed() == {("orders", 0): 40}


@pytest.mark.parametrize("strategy", ["to-latest", "to-current"])
async def test_a_commit_since_the_plan_was_made_refuses_it(plans: Plans, strategy: str) -> None:
    await plans.commit((0, 40), (1, 41))
    made = await plans.made(strategy, topics=WHOLE)
    await plans.commit((1, 41))  # the same offset: somebody is at work all the same
    await plans.commit((2, 42))  # and one where nothing was
    body = assert_problem(await plans.apply(made), Error.INVALID_REQUEST, status=409)
    assert body["partitions"] == [{"topic": "orders", "partition": 1}, {"topic": "orders", "partition": 2}]
    assert "orders-1, orders-2 was committed or removed since the plan was made" in body["detail"]
    assert await plans.committed() == {("orders", 0): 40, ("orders", 1): 41, ("orders", 2): 42}
    assert (await plans.api.get(f"{GROUP}/offsets/plans/{made['id']}")).json()["state"] == "planned"


async def test_a_removal_since_the_plan_was_made_refuses_it(plans: Plans, api: httpx.AsyncClient) -> None:
    await plans.commit((0, 40), (1, 41))
    made = await plans.made("to-latest")
    assert (await api.delete(GROUP)).status_code == 204
    body = assert_problem(await plans.apply(made), Error.INVALID_REQUEST, status=409)
    assert len(body["partitions"]) == 2
    assert_problem(await api.get(GROUP), Error.GROUP_ID_NOT_FOUND)  # the refusal made no group


async def test_a_commit_elsewhere_does_not_matter(plans: Plans) -> None:
    await plans.commit((0, 40))
    made = await plans.made("to-latest", topics=ONLY_0)
    await plans.commit((1, 41))
    assert (await plans.apply(made)).status_code == 200
    await plans.commit((2, 42))
    assert (await plans.undo(made)).status_code == 200
    assert await plans.committed() == {("orders", 0): 40, ("orders", 1): 41, ("orders", 2): 42}


async def test_undoing_after_a_new_commit_is_refused(plans: Plans) -> None:
    await plans.commit((0, 40), (1, 41))
    made = await plans.applied("to-latest")
    await plans.commit((1, 100))
    body = assert_problem(await plans.undo(made), Error.INVALID_REQUEST, status=409)
    assert body["partitions"] == [{"topic": "orders", "partition": 1}]
    assert "since the plan was applied" in body["detail"]
    assert await plans.committed() == {("orders", 0): 100, ("orders", 1): 100}


async def test_undoing_a_removal_after_a_new_commit_is_refused(plans: Plans, clock: VirtualClock) -> None:
    at = rfc3339(clock.now_ms())
    clock.advance(1)
    await plans.commit((0, 40))
    made = await plans.applied("to-committed-at", at=at)
    assert news(made) == {("orders", 0): None}
    assert await plans.committed() == {}
    await plans.commit((0, 7))
    body = assert_problem(await plans.undo(made), Error.INVALID_REQUEST, status=409)
    assert body["partitions"] == [{"topic": "orders", "partition": 0}]
    assert await plans.committed() == {("orders", 0): 7}


async def test_undoing_with_members_is_refused(plans: Plans, members: Members) -> None:
    await plans.commit((0, 40))
    made = await plans.applied("to-latest")
    await members.stable()
    assert_problem(await plans.undo(made), Error.NON_EMPTY_GROUP)
    assert await plans.committed() == {("orders", 0): 100}


async def test_a_group_deleted_since_it_was_reset_is_not_brought_back(plans: Plans, api: httpx.AsyncClient) -> None:
    await plans.commit((0, 40))
    made = await plans.applied("to-latest")
    assert (await api.delete(GROUP)).status_code == 204
    assert_problem(await plans.undo(made), Error.INVALID_REQUEST, status=409)
    assert_problem(await api.get(GROUP), Error.GROUP_ID_NOT_FOUND)


@pytest.mark.parametrize("verb", ["apply", "undo"])
async def test_an_open_transaction_on_a_partition_of_the_plan_refuses_it(
    plans: Plans, api: httpx.AsyncClient, verb: str
) -> None:
    await plans.commit((0, 40))
    made = await plans.made("to-latest", topics=WHOLE)
    act = plans.apply if verb == "apply" else plans.undo
    if verb == "undo":
        assert (await plans.apply(made)).status_code == 200
    before = await plans.committed()
    await pend(api, {2: 50})
    refused = assert_problem(await act(made), Error.UNSTABLE_OFFSET_COMMIT)
    assert refused["partitions"] == [{"topic": "orders", "partition": 2}]
    assert await plans.committed() == before
    await ended(api, committed=False)
    assert (await act(made)).status_code == 200


async def test_a_body_where_there_is_nothing_to_say(plans: Plans) -> None:
    await plans.commit((0, 40))
    made = await plans.made("to-latest")
    for verb in ("apply", "undo"):
        response = await plans.api.post(f"{GROUP}/offsets/plans/{made['id']}/{verb}", json={"force": True})
        assert_problem(response, Error.INVALID_REQUEST)
    assert await plans.committed() == {("orders", 0): 40}


async def test_who_may(plans: Plans, client_with: ClientWith, topics: TopicService) -> None:
    await topics.create("secret", 1)
    await plans.commit((0, 40))
    made = await plans.made("to-latest")
    reader = Plans(await client_with("describe:group:g", "read:topic:orders"))
    assert_problem(await reader.ask("to-latest"), Error.GROUP_AUTHORIZATION_FAILED)
    assert_problem(await reader.apply(made), Error.GROUP_AUTHORIZATION_FAILED)
    assert_problem(await reader.undo(made), Error.GROUP_AUTHORIZATION_FAILED)
    assert (await reader.api.get(f"{GROUP}/offsets/plans/{made['id']}")).json()["partitions"] == made["partitions"]
    stranger = Plans(await client_with("alter-offsets:group:other", "read:topic:*"))
    for response in (await stranger.ask("to-latest"), await stranger.apply(made)):
        assert_problem(response, Error.GROUP_ID_NOT_FOUND)
    no_topics = Plans(await client_with("alter-offsets:group:g", "describe:topic:orders"))
    denied = assert_problem(await no_topics.apply(made), Error.TOPIC_AUTHORIZATION_FAILED)
    assert denied["topics"] == ["orders"]
    for topic in ("secret", "nothing"):  # no telling which of them exists
        response = await no_topics.ask("to-latest", topics=[{"name": topic}])
        assert_problem(response, Error.TOPIC_AUTHORIZATION_FAILED)
    assert_problem(await no_topics.ask("from-file", csv="orders,0,5"), Error.TOPIC_AUTHORIZATION_FAILED)
    operator = Plans(await client_with("alter-offsets:group:g", "read:topic:orders"))
    assert (await operator.apply(made)).status_code == 200
    assert (await operator.undo(made)).status_code == 200


async def test_topics_that_one_may_not_see_are_passed_over_and_never_shown(
    plans: Plans, client_with: ClientWith, topics: TopicService
) -> None:
    await topics.create("secret", 1)
    await plans.commit((0, 40))
    await plans.commit((0, 5), topic="secret")
    limited = Plans(await client_with("alter-offsets:group:g", "read:topic:orders"))
    assert news(await limited.made("to-latest")) == {("orders", 0): 100}
    everything = await plans.made("to-current")
    seen = (await limited.api.get(f"{GROUP}/offsets/plans/{everything['id']}")).json()
    assert news(seen) == {("orders", 0): 40}
    named = await plans.made("to-current", topics=[{"name": "orders", "partitions": [0]}, {"name": "secret"}])
    for plan in (everything, named):
        refused = await limited.apply(plan)
        assert_problem(refused, Error.TOPIC_AUTHORIZATION_FAILED)
        assert "secret" not in refused.text
        assert "secret" not in (await limited.api.get(f"{GROUP}/offsets/plans/{plan['id']}")).text
    assert "secret" not in (await limited.api.get(f"{GROUP}/offsets/plans")).text
    half = Plans(await client_with("alter-offsets:group:g", "read:topic:orders", "describe:topic:secret"))
    assert_problem(await half.ask("to-current"), Error.TOPIC_AUTHORIZATION_FAILED)


async def test_a_group_that_one_may_not_see_cannot_be_copied_from(plans: Plans, client_with: ClientWith) -> None:
    await Plans(plans.api, "/v1/groups/source").commit((0, 70))
    limited = Plans(await client_with("alter-offsets:group:g", "read:topic:orders"))
    hidden = assert_problem(await limited.ask("copy-from-group", from_group="source"), Error.GROUP_ID_NOT_FOUND)
    missing = assert_problem(await limited.ask("copy-from-group", from_group="nobody"), Error.GROUP_ID_NOT_FOUND)
    assert hidden["detail"].replace("source", "nobody") == missing["detail"]
    assert_problem(await plans.ask("copy-from-group", from_group="a/b"), Error.INVALID_GROUP_ID)


@pytest.mark.parametrize("anew", [False, True], ids=["deleted", "made anew"])
async def test_a_topic_that_was_deleted_since_gets_no_offsets(
    plans: Plans, topics: TopicService, clock: VirtualClock, anew: bool
) -> None:
    before = rfc3339(START_MS)
    clock.advance(1_000)
    await plans.commit((0, 50))
    taken_away = await plans.applied("to-committed-at", at=before)  # nothing is committed on the topic any more
    planned = await plans.made("to-latest", topics=WHOLE)
    clock.advance(1_000)
    await topics.delete("orders")
    if anew:
        await topics.create("orders", 3)
    for response in (await plans.apply(planned), await plans.undo(taken_away)):
        problem = assert_problem(response, Error.INVALID_REQUEST, status=409)
        assert problem["topics"] == ["orders"]
        assert "make a new plan" in problem["detail"]
    assert await plans.committed() == {}


async def test_undo_sees_a_commit_that_was_deleted_again(plans: Plans, clock: VirtualClock) -> None:
    before = rfc3339(START_MS)
    assert (await plans.api.post(f"{GROUP}/pins", json={})).status_code == 200
    clock.advance(1_000)
    await plans.commit((0, 50), (1, 50))
    made = await plans.applied("to-committed-at", at=before)  # nothing is committed any more
    assert (await plans.undo(made)).status_code == 200
    made = await plans.applied("to-committed-at", at=before)
    await plans.commit((0, 70))
    deletion = {"topics": [{"name": "orders", "partitions": [0]}]}
    assert (await plans.api.post(f"{GROUP}/offsets/delete", json=deletion)).status_code == 200
    problem = assert_problem(await plans.undo(made), Error.INVALID_REQUEST, status=409)
    assert problem["partitions"] == [{"topic": "orders", "partition": 0}]
    assert await plans.committed() == {}
