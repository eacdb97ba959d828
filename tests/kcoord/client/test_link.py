"""Finding the coordinator, and what answers mean: several servers, proxies, broken answers, retries."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from kcoord.client.config import ConsumerConfig
from kcoord.client.core.backoff import RETRY_AFTER_LIMIT_MS, Backoff
from kcoord.client.core.http import Disconnected
from kcoord.client.core.timers import HeartbeatTimer
from kcoord.client.core.wire import HeartbeatAnswer
from kcoord.client.http import Http
from kcoord.protocol.errors import Action, Error, ProtocolError
from tests.kcoord.client.hosts import DrivenLink, Hosts
from tests.kcoord.client.scripted import Refusal


@pytest.fixture
def hosts() -> Hosts:
    return Hosts()


def test_calls_go_to_the_announced_coordinator(hosts: Hosts) -> None:
    hosts.announces["a"] = "http://c:8000/"
    link = DrivenLink(hosts, "http://a")
    link.beat()
    link.beat()
    assert hosts.asked == ["a/coordinator", "c/groups/g/heartbeat", "c/groups/g/heartbeat"]


def test_servers_that_are_down_are_passed_over(hosts: Hosts, caplog: pytest.LogCaptureFixture) -> None:
    hosts.down = {"a", "b"}
    link = DrivenLink(hosts, "http://a,http://b,http://c")
    link.beat()
    assert hosts.asked == ["a/coordinator", "b/coordinator", "c/coordinator", "c/groups/g/heartbeat"]
    hosts.down.add("c")
    for _ in range(3):
        with pytest.raises(Disconnected, match="refused"):
            link.beat()
        assert link.coordinator is None
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1, "one warning for an outage"
    hosts.down = {"b", "c"}
    link.beat()
    assert hosts.asked[-1] == "a/groups/g/heartbeat"


def test_unreachable_announced_address_is_replaced_by_who_announced_it(hosts: Hosts) -> None:
    """Differs from Kafka: any node may serve any group."""
    hosts.announces["a"] = "http://internal:8000"
    hosts.down = {"internal"}
    link = DrivenLink(hosts, "http://a")
    with pytest.raises(Disconnected):
        link.beat()
    link.beat()
    assert hosts.asked[-2:] == ["a/coordinator", "a/groups/g/heartbeat"]
    # "Not me" means that only the announced one will do; it is given a moment.
    link.driver.pass_time(1)
    hosts.answers["a"] = Refusal(Error.NOT_COORDINATOR).response()
    with pytest.raises(ProtocolError):
        link.beat()
    del hosts.answers["a"]
    hosts.down.clear()
    link.beat()
    assert hosts.asked[-1] == "internal/groups/g/heartbeat"


def test_token_does_not_leave_tls(hosts: Hosts) -> None:
    hosts.announces["a"] = "http://a:8000"
    link = DrivenLink(hosts, "https://a")
    assert link.run(link.find()) == "https://a"


@pytest.mark.parametrize("error", [Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.REQUEST_TIMED_OUT])
def test_coordinator_is_forgotten(hosts: Hosts, error: Error) -> None:
    hosts.announces["a"] = "http://c"
    hosts.answers["c"] = Refusal(error).response()
    link = DrivenLink(hosts, "http://a")
    with pytest.raises(ProtocolError) as caught:
        link.beat()
    assert caught.value.error is error
    assert link.coordinator is None


def test_discovery_that_is_refused_is_not_asked_elsewhere(hosts: Hosts) -> None:
    hosts.answers["a"] = Refusal(Error.GROUP_AUTHORIZATION_FAILED).response()
    with pytest.raises(ProtocolError) as caught:
        DrivenLink(hosts, "http://a,http://b").beat()
    assert caught.value.error is Error.GROUP_AUTHORIZATION_FAILED
    assert hosts.asked == ["a/coordinator"]


def test_server_without_a_coordinator_is_passed_over(hosts: Hosts) -> None:
    code = Error.COORDINATOR_NOT_AVAILABLE.code
    hosts.answers["a"] = httpx.Response(200, json={"coordinators": [{"key": "g", "url": None, "error_code": code}]})
    DrivenLink(hosts, "http://a,http://b").beat()
    assert hosts.asked[-1] == "b/groups/g/heartbeat"


def failure_of(response: httpx.Response) -> ProtocolError:
    client = Http("", 1_000, httpx.Client(transport=httpx.MockTransport(lambda request: response)))
    with pytest.raises(ProtocolError) as caught:
        client.post("http://a/v1/x", {}, HeartbeatAnswer)
    client.close()
    return caught.value


def test_problem_becomes_the_error_with_its_details() -> None:
    refusal = Refusal(Error.REBALANCE_IN_PROGRESS, Action.RETRY, member_id="m1", retry_after="1.5")
    failure = failure_of(refusal.response())
    assert (failure.error, failure.action, failure.retry_after_ms) == (Error.REBALANCE_IN_PROGRESS, Action.RETRY, 1500)
    assert failure.fields == {"member_id": "m1"}
    assert failure.detail == "The group is rebalancing. (request r1)"


def test_problem_says_where_the_coordinator_is() -> None:
    named = {"node_id": "n2", "host": "b", "port": 8001, "url": "http://b:8001"}
    failure = failure_of(problem(421, error="NOT_COORDINATOR", coordinator={**named, "rack": "later"}))
    assert (failure.error, failure.fields) == (Error.NOT_COORDINATOR, {"coordinator": named})


def problem(status: int, **body: Any) -> httpx.Response:
    return httpx.Response(status, json=body, headers={"Content-Type": "application/problem+json"})


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (problem(409, error_code=22), Error.ILLEGAL_GENERATION),
        (problem(400, error="FROM_THE_FUTURE", error_code=999), Error.UNKNOWN_SERVER_ERROR),
        (problem(400, error="INVALID_REQUEST", action="dance"), Error.INVALID_REQUEST),
        (httpx.Response(404, text="<html>"), Error.UNKNOWN_SERVER_ERROR),
        (httpx.Response(307, headers={"Location": "http://b"}), Error.UNKNOWN_SERVER_ERROR),
        (httpx.Response(200, text="<html>"), Error.UNKNOWN_SERVER_ERROR),
        (httpx.Response(200, json={"error_code": "zero"}), Error.UNKNOWN_SERVER_ERROR),
        (httpx.Response(503, text="no upstream"), Error.COORDINATOR_NOT_AVAILABLE),
        (
            httpx.Response(504, content=b"{", headers={"Content-Type": "application/json"}),
            Error.COORDINATOR_NOT_AVAILABLE,
        ),
    ],
    ids=["code alone", "unknown error", "unknown action", "html", "redirect", "no json", "wrong type", "proxy", "half"],
)
def test_answers_that_are_not_by_the_book(response: httpx.Response, error: Error) -> None:
    failure = failure_of(response)
    assert failure.error is error
    assert failure.detail


@pytest.mark.parametrize(("text", "at_most"), [("2", 2000), ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("-3", 0)])
def test_retry_after_is_read(text: str, at_most: int) -> None:
    assert failure_of(httpx.Response(503, headers={"Retry-After": text})).retry_after_ms == at_most


@pytest.mark.parametrize("text", ["", "soon", "nan", "inf"])
def test_retry_after_that_cannot_be_read_is_ignored(text: str) -> None:
    assert failure_of(httpx.Response(503, headers={"Retry-After": text})).retry_after_ms is None


def test_backoff_grows_is_bounded_and_respects_the_server() -> None:
    backoff = Backoff(100, 1_000)
    delays = [backoff.next_ms() for _ in range(60)]
    for delay, plain in zip(delays, [100, 200, 400, 800, *[1_000] * 56], strict=True):
        assert 0.8 * plain <= delay <= 1.2 * plain
    assert backoff.next_ms(5_000) == 5_000
    assert backoff.next_ms(10**9) == RETRY_AFTER_LIMIT_MS
    backoff.reset()
    assert backoff.next_ms() <= 120


def test_heartbeat_timer() -> None:
    settings = {"session_timeout_ms": 10_000, "heartbeat_interval_ms": 3_000, "max_poll_interval_ms": 20_000}
    timer = HeartbeatTimer(ConsumerConfig.of({"group_id": "g", **settings}), now=0)
    timer.reset(now=1)
    assert timer.wait_s(1, heartbeating=True) == 3
    assert timer.wait_s(1, heartbeating=False) == 19
    timer.sent(now=4)
    assert timer.next_at == 7
    timer.failed(now=4, retry_after_ms=None)
    assert 4 < timer.next_at <= 4.12
    timer.failed(now=4, retry_after_ms=5_000)
    assert timer.next_at == 9
    assert (timer.session_expired(10.9), timer.session_expired(11)) == (False, True)
    timer.succeeded(now=5)
    assert timer.session_deadline == 15
    assert (timer.poll_expired(19.9), timer.poll_expired(20)) == (False, True)
    timer.polled(now=19)
    assert not timer.poll_expired(38)
