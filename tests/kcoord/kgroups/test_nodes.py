"""A service of several nodes: requests go where a group is coordinated, lists are put together from all nodes."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from kcoord.client.kgroups.api import Api
from kcoord.client.kgroups.arguments import check
from kcoord.client.kgroups.options import declare
from kcoord.client.kgroups.output import Output
from kcoord.client.kgroups.run import run
from kcoord.protocol.errors import Error, ProtocolError
from tests.kcoord.client.hosts import elsewhere
from tests.kcoord.kgroups.conftest import Run
from tests.kcoord.kgroups.test_scripted import consumer_group, problem


class Service:
    """Nodes a and b, each with groups of its own; a group that is elsewhere is answered NOT_COORDINATOR."""

    def __init__(self) -> None:
        self.groups = {"a": ["g1", "g3"], "b": ["g2", "g4"]}
        self.urls: dict[str, str | None] = {"a": "http://a", "b": "http://b"}
        self.live = {"a": True, "b": True}
        self.more: dict[str, Any] = {}
        self.answers: dict[str, httpx.Response] = {}
        self.asked: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        host, path = request.url.host, request.url.path.removeprefix("/v1/")
        self.asked.append(f"{request.method} {host}/{path}")
        for name in (host, f"{host}/{path}", path):
            if name in self.answers:
                return self.answers[name]
        if path == "nodes":
            nodes = [
                {"node_id": f"n-{n}", "url": self.urls[n], "live": self.live[n], "version": "1"} for n in self.urls
            ]
            return httpx.Response(200, json={"nodes": nodes, **self.more})
        if path == "coordinator":
            wanted = request.url.params.get_list("group_id")
            found = [{"key": g, "url": self.urls[n], "error_code": 0} for g in wanted if (n := self.owner(g))]
            return httpx.Response(200, json={"coordinators": found})
        if path == "groups":
            return self.deleted(host, request) if request.method == "DELETE" else self.page(host)
        owner = self.owner(path.split("/")[1])
        if owner != host:
            return elsewhere(self.urls[owner])
        return httpx.Response(200, json=consumer_group() | {"offsets": [], "topics": [], "next_cursor": None})

    def owner(self, group: str) -> str:
        """The node of a group."""
        return next((node for node, groups in self.groups.items() if group in groups), "")

    def page(self, host: str) -> httpx.Response:
        """The groups of one node."""
        line = {"type": "Classic", "state": "Empty", "protocol_type": "consumer"}
        groups = [{"group_id": group, **line} for group in self.groups[host]]
        return httpx.Response(200, json={"groups": groups, "next_cursor": None})

    def deleted(self, host: str, request: httpx.Request) -> httpx.Response:
        """The result for each group of a deletion."""
        results = []
        for group in request.url.params.get_list("group_id"):
            error = Error.NONE if group in self.groups[host] else Error.NOT_COORDINATOR
            results.append({"group_id": group, "error_code": error.code, "error": error.name})
        return httpx.Response(200, json={"groups": results})

    def taken(self) -> list[str]:
        """What was asked since the last look."""
        asked, self.asked = self.asked, []
        return asked


@pytest.fixture
def service() -> Service:
    return Service()


def api_of(service: Service, url: str = "http://a", *, alone: bool = False) -> Api:
    return Api(httpx.Client(transport=httpx.MockTransport(service)), url, "kc_secret", 500, alone=alone)


def run_with(service: Service, *given: str) -> Run:
    parser = argparse.ArgumentParser()
    declare(parser)
    out, err = io.StringIO(), io.StringIO()
    status = run(check(parser.parse_args(given)), api_of(service), Output(out, err))
    return Run(status, out.getvalue(), err.getvalue())


CALLS: dict[str, Callable[[Api], object]] = {
    "GET {}/groups/g2": lambda api: api.group("g2"),
    "GET {}/groups/g2/offsets": lambda api: api.committed("g2"),
    "POST {}/groups/g2/offsets/delete": lambda api: api.delete_offsets("g2", {"t": [0]}),
}


@pytest.mark.parametrize(("line", "call"), CALLS.items(), ids=CALLS)
def test_request_goes_on_to_the_coordinator(service: Service, line: str, call: Callable[[Api], object]) -> None:
    call(api_of(service))
    assert service.taken() == [line.format("a"), line.format("b")]


def test_request_is_passed_on_once(service: Service) -> None:
    service.answers = {"a": elsewhere("http://b"), "b": elsewhere("http://a")}
    with pytest.raises(ProtocolError) as caught:
        api_of(service).group("g2")
    assert caught.value.error is Error.NOT_COORDINATOR
    assert service.taken() == ["GET a/groups/g2", "GET b/groups/g2"]


def test_request_does_not_leave_tls_and_a_tool_for_one_database_goes_nowhere(service: Service) -> None:
    for api in (api_of(service, "https://a"), api_of(service, alone=True)):
        with pytest.raises(ProtocolError) as caught:
            api.group("g2")
        assert caught.value.error is Error.NOT_COORDINATOR
        assert service.taken() == ["GET a/groups/g2"]


def test_list_has_the_groups_of_all_live_nodes(service: Service) -> None:
    service.urls |= {"c": "http://c", "d": None}
    service.live |= {"c": False, "d": True}
    service.groups["b"].append("g1")  # it moved in between
    assert run_with(service, "--list") == Run(0, "g1\ng2\ng3\ng4\n", "")
    assert service.taken() == ["GET a/nodes", "GET a/groups", "GET b/groups"]


@pytest.mark.parametrize(
    "nodes",
    [
        httpx.Response(404, text="no such page"),
        problem(Error.INVALID_REQUEST),
        httpx.Response(200, json={"nodes": [{"node_id": "a", "url": "http://elsewhere", "live": True}]}),
        httpx.Response(200, json={"nodes": [{"node_id": "a", "url": None, "live": True}], "routing": "any"}),
        httpx.Response(200, json={"nodes": []}),
    ],
    ids=["older, behind a proxy", "older", "one", "without an address", "none"],
)
def test_list_of_a_single_server_is_its_own(service: Service, nodes: httpx.Response) -> None:
    service.answers["nodes"] = nodes
    assert run_with(service, "--list") == Run(0, "g1\ng3\n", "")


def test_list_is_asked_of_one_node_where_any_answers_for_all(service: Service) -> None:
    service.more = {"routing": "any"}
    assert run_with(service, "--list").status == 0
    assert service.taken() == ["GET a/nodes", "GET a/groups"]
    assert [group.group_id for group in api_of(service, alone=True).groups()] == ["g1", "g3"]
    assert service.taken() == ["GET a/groups"]


def test_node_that_fails_is_named(service: Service) -> None:
    service.answers["b"] = httpx.Response(502, text="bad gateway")
    failed = run_with(service, "--list")
    assert failed.status == 1
    assert failed.out.startswith(
        "\nError: The command failed: COORDINATOR_NOT_AVAILABLE: node n-b: GET http://b/v1/groups"
    )
    with pytest.raises(ProtocolError, match=r"node n-a: it advertises 'http://a', .* from https://a"):
        api_of(service, "https://a").groups()


@pytest.mark.parametrize("nodes", [problem(Error.UNKNOWN_SERVER_ERROR), httpx.Response(500, text="oops")], ids=str)
def test_failure_to_list_the_nodes_is_an_error(service: Service, nodes: httpx.Response) -> None:
    service.answers["nodes"] = nodes
    assert run_with(service, "--list").status == 1


def test_token_that_may_not_list_nodes_is_told_what_that_means(service: Service) -> None:
    service.answers["nodes"] = problem(Error.CLUSTER_AUTHORIZATION_FAILED)
    found = run_with(service, "--list")
    assert (found.status, found.out) == (0, "g1\ng3\n")
    assert "may not list the nodes" in found.err


def test_groups_are_deleted_where_they_are_coordinated(service: Service) -> None:
    results = api_of(service).delete_groups(["g2", "g1", "unknown", "g4"])
    assert [(result.group_id, result.error) for result in results] == [
        ("g2", "NONE"),
        ("g1", "NONE"),
        ("unknown", "NOT_COORDINATOR"),
        ("g4", "NONE"),
    ]
    assert service.taken() == ["DELETE a/groups", "GET a/coordinator", "DELETE b/groups"]


def test_results_of_the_others_are_told_if_a_node_fails(service: Service) -> None:
    service.answers["b"] = httpx.Response(502, text="bad gateway")
    results = api_of(service).delete_groups(["g1", "g2"])
    assert [(result.group_id, result.error) for result in results] == [
        ("g1", "NONE"),
        ("g2", "COORDINATOR_NOT_AVAILABLE"),
    ]
    assert "http://b/v1/groups" in (results[1].detail or "")
