"""The coordinator is another node: it is named, preferred, looked up again, and never followed out of TLS."""

from __future__ import annotations

import random

import httpx
import pytest

from kcoord.client.core.http import Disconnected
from kcoord.client.core.servers import permitted
from kcoord.protocol.errors import Error, ProtocolError
from tests.kcoord.client.hosts import DrivenLink, Hosts, InOrder, elsewhere, named
from tests.kcoord.client.scripted import Refusal

AGE_S = 300


@pytest.fixture
def hosts() -> Hosts:
    return Hosts()


def settled(hosts: Hosts, url: str, **announces: str) -> DrivenLink:
    """A link after its first heartbeat."""
    hosts.announces.update(announces)
    link = DrivenLink(hosts, url)
    link.beat()
    hosts.taken()
    return link


# NOT_COORDINATOR that names it


def test_named_coordinator_is_asked_at_once_without_discovery(hosts: Hosts) -> None:
    link = settled(hosts, "http://a")
    hosts.refusals["a"] = elsewhere("http://b:8001/")
    link.beat()
    assert hosts.taken() == ["a/groups/g/heartbeat", "b/groups/g/heartbeat"]
    link.beat()
    assert hosts.taken() == ["b/groups/g/heartbeat"]
    assert (link.coordinator, link.driver.now) == ("http://b:8001", 0)


def test_request_is_followed_once_then_the_coordinator_is_looked_up(hosts: Hosts) -> None:
    link = settled(hosts, "http://a")
    hosts.refusals = {"a": elsewhere("http://b"), "b": elsewhere("http://a")}
    with pytest.raises(ProtocolError) as caught:
        link.beat()
    assert caught.value.error is Error.NOT_COORDINATOR
    assert hosts.taken() == ["a/groups/g/heartbeat", "b/groups/g/heartbeat"]
    hosts.refusals.clear()
    link.beat()
    assert hosts.taken() == ["a/coordinator", "a/groups/g/heartbeat"]


@pytest.mark.parametrize(
    "url", ["http://b", "http://a:8443", "ftp://b", "b:8000", "https://", "https://[", "https://a"]
)
def test_address_that_must_not_be_followed(hosts: Hosts, url: str) -> None:
    """Out of TLS, none at all, or the same again."""
    link = settled(hosts, "https://a")
    hosts.refusals["a"] = elsewhere(url)
    with pytest.raises(ProtocolError) as caught:
        link.beat()
    assert caught.value.error is Error.NOT_COORDINATOR
    assert hosts.taken() == ["a/groups/g/heartbeat"]
    assert link.coordinator is None


def test_tls_is_told_from_its_scheme_however_it_is_written() -> None:
    assert permitted("http://b", "HTTPS://a") is None
    assert permitted("HTTPS://b/", "https://a") == "HTTPS://b"
    assert permitted("https://b", "http://a") == "https://b"


def test_coordinator_that_was_unreachable_is_not_followed_until_a_moment_later(hosts: Hosts) -> None:
    link = settled(hosts, "http://a")
    hosts.refusals["a"] = elsewhere("http://b")
    hosts.down = {"b"}
    with pytest.raises(Disconnected):
        link.beat()
    hosts.taken()
    with pytest.raises(ProtocolError) as caught:
        link.beat()
    assert caught.value.error is Error.NOT_COORDINATOR
    assert hosts.taken() == ["a/coordinator", "a/groups/g/heartbeat"]
    hosts.down.clear()
    link.driver.pass_time(1)
    with pytest.raises(ProtocolError):
        link.beat()
    hosts.taken()
    link.beat()
    assert hosts.taken()[-1] == "b/groups/g/heartbeat"


def test_coordinator_that_loads_is_asked_again(hosts: Hosts) -> None:
    link = settled(hosts, "http://a,http://b", a="http://c")
    hosts.refusals["c"] = Refusal(Error.COORDINATOR_LOAD_IN_PROGRESS, retry_after="0").response()
    for _ in range(2):
        with pytest.raises(ProtocolError) as caught:
            link.beat()
        assert caught.value.error is Error.COORDINATOR_LOAD_IN_PROGRESS
    assert hosts.taken() == ["c/groups/g/heartbeat"] * 2


# Several servers


def test_clients_begin_with_different_servers(hosts: Hosts) -> None:
    urls = "http://a,http://b,http://c,http://d"
    for seed in range(200):
        DrivenLink(hosts, urls, random.Random(seed)).beat()
    first = [asked.partition("/")[0] for asked in hosts.taken() if asked.endswith("/coordinator")]
    assert all(30 <= first.count(server) <= 70 for server in "abcd"), first
    DrivenLink(hosts, urls, random.Random(7)).beat()
    again = hosts.taken()
    DrivenLink(hosts, urls, random.Random(7)).beat()
    assert hosts.taken() == again, "the seed decides"


def test_survivors_share_the_clients_of_a_server_that_died(hosts: Hosts) -> None:
    links = [DrivenLink(hosts, "http://a,http://b,http://c,http://d", random.Random(seed)) for seed in range(200)]
    for link in links:
        link.beat()
    hosts.down = {"a"}
    orphans = [link for link in links if link.coordinator == "http://a"]
    for link in orphans:
        with pytest.raises(Disconnected):
            link.beat()
        link.beat()
    now_at = [link.coordinator for link in orphans]
    assert len(orphans) >= 30
    assert all(now_at.count(f"http://{server}") >= len(orphans) / 6 for server in "bcd"), now_at


def test_server_that_lost_the_owner_serves_while_it_still_names_it(hosts: Hosts) -> None:
    """Until the lease of a node that died has lapsed, the others name it, also where it is one of the servers."""
    link = settled(hosts, "http://a,http://b", a="http://a", b="http://a")
    hosts.down = {"a"}
    with pytest.raises(Disconnected):
        link.beat()
    link.beat()
    assert hosts.taken() == ["a/groups/g/heartbeat", "b/coordinator", "b/groups/g/heartbeat"]


@pytest.mark.parametrize("error", [Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS], ids=str)
def test_group_without_a_coordinator_is_served_by_any_server(hosts: Hosts, error: Error) -> None:
    hosts.answers = {"a": named(None, error), "b": httpx.Response(502)}
    link = DrivenLink(hosts, "http://a,http://b")
    assert link.run(link.find()) == "http://a"


def test_servers_that_do_not_answer_are_given_the_time_of_one_heartbeat_together() -> None:
    settings = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 2_000}
    one, three = (DrivenLink(Hosts(), ",".join(["http://a"] * n), **settings).config for n in (1, 3))
    assert (one.discovery_timeout_ms, three.discovery_timeout_ms) == (2_000, 1_000)
    waited: list[float] = []

    def silent(request: httpx.Request) -> httpx.Response:
        waited.append(request.extensions["timeout"]["connect"])
        raise httpx.ConnectTimeout("", request=request)

    link = DrivenLink(Hosts(), "http://a,http://b", session_timeout_ms=30_000)
    link.driver._handler = silent
    with pytest.raises(Disconnected):
        link.beat()
    assert waited == [5.0, 5.0]


# The coordinator is preferred


def test_coordinator_is_looked_up_again_now_and_then(hosts: Hosts) -> None:
    link = settled(hosts, "http://a", a="http://b", b="http://b")
    hosts.announces["b"] = "http://c"
    link.driver.pass_time(0.79 * AGE_S)
    link.beat()
    assert hosts.taken() == ["b/groups/g/heartbeat"], "too early"
    link.driver.pass_time(0.02 * AGE_S)
    link.beat()
    assert hosts.taken() == ["b/coordinator", "c/coordinator", "c/groups/g/heartbeat"]
    link.beat()
    assert hosts.taken() == ["c/groups/g/heartbeat"]


def test_looks_of_many_clients_are_spread(hosts: Hosts) -> None:
    links = [DrivenLink(hosts, "http://a", random.Random(seed)) for seed in range(200)]
    for link in links:
        link.beat()
    dues = sorted(link._look_at for link in links)
    assert 0.8 * AGE_S <= dues[0] < dues[-1] <= 1.2 * AGE_S
    assert max(sum(at <= due < at + 1 for due in dues) for at in dues) < 20


def test_client_stays_where_it_is_if_the_coordinator_does_not_answer(hosts: Hosts) -> None:
    link = settled(hosts, "http://a")
    hosts.announces["a"] = "http://b"
    hosts.down = {"b"}
    for _ in range(2):
        link.driver.pass_time(2 * AGE_S)
        link.beat()
        assert hosts.taken() == ["a/coordinator", "b/coordinator", "a/groups/g/heartbeat"]
    hosts.down.clear()
    link.driver.pass_time(2 * AGE_S)
    link.beat()
    assert hosts.taken() == ["a/coordinator", "b/coordinator", "b/groups/g/heartbeat"]
    assert not link._servers.is_unreachable("http://b"), "it answered since"


@pytest.mark.parametrize(
    "answer",
    [
        named(None, Error.COORDINATOR_NOT_AVAILABLE),
        named("http://b"),
        Refusal(Error.GROUP_AUTHORIZATION_FAILED).response(),
        httpx.Response(200, text="<html>"),
    ],
    ids=["nobody", "out of TLS", "refused", "nonsense"],
)
def test_look_that_finds_nothing_changes_nothing(hosts: Hosts, answer: httpx.Response) -> None:
    link = settled(hosts, "https://a")
    hosts.answers["a"] = (
        lambda request: answer if request.url.path == "/v1/coordinator" else httpx.Response(200, json={})
    )
    link.driver.pass_time(2 * AGE_S)
    link.beat()
    assert hosts.taken() == ["a/coordinator", "a/groups/g/heartbeat"]


def test_look_that_finds_the_server_dead_costs_no_request(hosts: Hosts) -> None:
    link = settled(hosts, "http://a,http://b")
    hosts.down = {"a"}
    link.driver.pass_time(2 * AGE_S)
    link.beat()
    assert hosts.taken() == ["a/coordinator", "b/coordinator", "b/groups/g/heartbeat"]


def test_a_disconnect_leads_back_to_the_coordinator(hosts: Hosts) -> None:
    link = settled(hosts, "http://a,http://b", b="http://c")
    hosts.down = {"a"}
    with pytest.raises(Disconnected):
        link.beat()
    link.beat()
    assert hosts.taken() == ["a/groups/g/heartbeat", "b/coordinator", "c/groups/g/heartbeat"]


def test_delay_after_a_disconnect_is_bounded_and_does_not_add_up(hosts: Hosts) -> None:
    class Late(InOrder):
        def random(self) -> float:
            return 0.999999

    hosts.down = {"a"}
    hosts.announces["b"] = "http://a"
    link = DrivenLink(hosts, "http://b", Late(), session_timeout_ms=6_000, heartbeat_interval_ms=2_000)
    link._lost("http://a")
    link.driver.pass_time(0.3)
    link._lost("http://a")
    link.beat()
    assert 0.599 < link.driver.now <= 0.6, "the first back-off and a quarter of the heartbeat interval"
    assert hosts.taken() == ["b/coordinator", "b/groups/g/heartbeat"]
