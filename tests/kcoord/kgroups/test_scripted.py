"""What a service may answer that is hard to bring about: a group that mixes protocols, one that loads, nonsense."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from kcoord.client.kgroups import api as api_module
from kcoord.client.kgroups.api import Api, segment
from kcoord.client.kgroups.arguments import check
from kcoord.client.kgroups.options import declare
from kcoord.client.kgroups.output import Output
from kcoord.client.kgroups.run import run
from kcoord.protocol.errors import Error, ProtocolError
from tests.kcoord.kgroups.conftest import Run

Answer = Callable[[httpx.Request], httpx.Response]

NODE = {"node_id": "n1", "host": "h", "port": 9, "partition": 0, "url": "http://h:9"}
URL = "http://service"


def problem(error: Error, **headers: str) -> httpx.Response:
    """A problem response."""
    body = {"error": error.name, "error_code": error.code, "title": error.name, "status": error.status, "detail": "so"}
    return httpx.Response(error.status, json=body, headers={"Content-Type": "application/problem+json", **headers})


def consumer_member(member_id: str, kind: str, *partitions: int) -> dict[str, Any]:
    """A member of a consumer group as the API describes it; it owns what it is meant to have."""
    listed = [{"topic_id": "t1", "topic": "orders", "partitions": list(partitions)}]
    gone = [{"topic_id": "t0", "topic": None, "partitions": [7]}]
    return {
        "member_id": member_id,
        "group_instance_id": None,
        "client_id": "c",
        "client_host": "h",
        "member_type": kind,
        "member_epoch": 4,
        "assignment": listed + gone,
        "target_assignment": listed,
    }


def consumer_group(*members: dict[str, Any], state: str = "Stable") -> dict[str, Any]:
    """A consumer group as the API describes it."""
    return {
        "group_id": "g",
        "type": "consumer",
        "state": state,
        "coordinator": NODE,
        "assignor": "uniform",
        "group_epoch": 4,
        "assignment_epoch": 4,
        "members": list(members),
    }


def api_of(answer: Answer, timeout_ms: int = 5_000) -> Api:
    """A client whose requests `answer` answers."""
    return Api(httpx.Client(transport=httpx.MockTransport(answer)), URL, "kc_secret", timeout_ms)


def run_with(answer: Answer, *given: str) -> Run:
    """One run of the tool."""
    import argparse

    parser = argparse.ArgumentParser()
    declare(parser)
    out, err = io.StringIO(), io.StringIO()
    status = run(check(parser.parse_args(given)), api_of(answer), Output(out, err))
    return Run(status, out.getvalue(), err.getvalue())


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the tool slept between two requests, in seconds of a clock that goes on only then."""
    slept: list[float] = []
    monkeypatch.setattr(api_module.time, "sleep", slept.append)
    monkeypatch.setattr(api_module.time, "monotonic", lambda: sum(slept))
    return slept


def test_upgraded_is_shown_where_a_group_mixes_both_protocols() -> None:
    members = consumer_member("m1", "consumer", 0), consumer_member("m2", "classic", 10, 2)
    given = ("--describe", "--group", "g", "--members", "--verbose")
    mixed = run_with(lambda _: httpx.Response(200, json=consumer_group(*members)), *given)
    assert [row[-5:] for row in mixed.rows] == [
        ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED"],
        ["4", "orders:0", "4", "orders:0", "true"],
        ["4", "orders:2,10", "4", "orders:2,10", "false"],
    ]
    alike = run_with(lambda _: httpx.Response(200, json=consumer_group(members[0])), *given)
    assert "UPGRADED" not in alike.out


@pytest.mark.parametrize("state", ["Assigning", "Reconciling"])
def test_states_in_which_a_consumer_group_rebalances(state: str) -> None:
    found = run_with(
        lambda _: httpx.Response(200, json=consumer_group(state=state)), "--describe", "--group", "g", "--state"
    )
    assert found.err == "\nWarning: Consumer group 'g' is rebalancing.\n"


def test_a_service_that_loads_is_asked_again(pauses: list[float]) -> None:
    answers = [
        problem(Error.COORDINATOR_LOAD_IN_PROGRESS, **{"Retry-After": "2"}),
        problem(Error.COORDINATOR_NOT_AVAILABLE),
        httpx.Response(200, json=consumer_group()),
    ]
    assert api_of(lambda _: answers.pop(0)).group("g").state == "Stable"
    assert pauses == [2.0, api_module.PAUSE_MS / 1000]


def test_a_service_that_goes_on_loading_is_an_error_in_time(pauses: list[float]) -> None:
    api = api_of(lambda _: problem(Error.COORDINATOR_LOAD_IN_PROGRESS, **{"Retry-After": "1"}), timeout_ms=3_500)
    with pytest.raises(ProtocolError) as raised:
        api.group("g")
    assert raised.value.error is Error.COORDINATOR_LOAD_IN_PROGRESS
    assert pauses == [1.0, 1.0, 1.0]


def test_what_changes_something_is_sent_once(pauses: list[float]) -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return problem(Error.COORDINATOR_NOT_AVAILABLE)

    api = api_of(answer)
    changes: list[Callable[[], object]] = [
        lambda: api.delete_groups(["g"]),
        lambda: api.delete_offsets("g", {"t": [0]}),
        lambda: api.plan("g", "to-latest", None, {}, ""),
        lambda: api.apply("g", "p"),
        lambda: api.undo("g", "p"),
    ]
    for change in changes:
        with pytest.raises(ProtocolError):
            change()
    assert (len(sent), pauses) == (len(changes), [])


def test_a_service_that_cannot_be_reached_is_not_waited_for(pauses: list[float]) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused", request=request)

    found = run_with(refuse, "--list")
    assert (found.status, pauses) == (1, [])
    assert found.out.startswith("\nError: The command failed: COORDINATOR_NOT_AVAILABLE: GET http://service/v1/nodes")


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>hello</html>"),
        httpx.Response(200, json={"groups": 5}),
        httpx.Response(302, headers={"Location": "http://elsewhere/"}),
        httpx.Response(404, text="no such page"),
        httpx.Response(500, text="oops"),
        httpx.Response(502, text="bad gateway"),
    ],
    ids=str,
)
def test_an_address_where_something_else_answers(answer: httpx.Response) -> None:
    found = run_with(lambda _: answer, "--list")
    assert found.status == 1
    assert found.out.startswith("\nError: The command failed: ")
    assert "secret" not in found.out + found.err


def test_a_group_that_is_deleted_while_it_is_described() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/offsets"):
            return problem(Error.GROUP_ID_NOT_FOUND)
        return httpx.Response(200, json=consumer_group(consumer_member("m1", "consumer", 0)))

    found = run_with(answer, "--describe", "--group", "g")
    assert (found.status, found.out) == (1, "\nError: Consumer group 'g' does not exist.\n")


def test_offsets_that_may_not_be_read_are_an_error_and_the_rest_goes_on() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/offsets"):
            return problem(Error.GROUP_AUTHORIZATION_FAILED)
        return httpx.Response(200, json=consumer_group(consumer_member("m1", "consumer", 0)))

    found = run_with(answer, "--describe", "--group", "a", "--group", "g")
    assert found.status == 1
    assert found.out.count("could not be read: GROUP_AUTHORIZATION_FAILED: so") == 2


def test_the_token_goes_out_and_the_state_is_filtered_by_the_service() -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={"groups": [], "next_cursor": None})

    assert run_with(answer, "--list", "--state", "stable,empty", "--type", "consumer").status == 0
    assert sent[-1].headers["Authorization"] == "Bearer kc_secret"
    assert sent[-1].url.params.get_list("state") == ["Stable", "Empty"]
    assert sent[-1].url.params.get_list("type") == ["Consumer"]


def test_names_stay_one_segment_of_a_path() -> None:
    assert [segment(name) for name in ("a/b", "..", ".", "a.b", "ä?%")] == [
        "a%2Fb",
        "%2E%2E",
        "%2E",
        "a.b",
        "%C3%A4%3F%25",
    ]
