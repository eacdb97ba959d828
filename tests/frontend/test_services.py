"""Groups of other services on the pages: found with the same filters, and never taken for absent if a service fails."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from django.test import Client
from pytest_django.fixtures import SettingsWrapper

from frontend.apps import services_can_be_asked
from frontend.ui import services
from frontend.ui.services import read_services
from kcoord.secret_tables import SecretTablesError
from kcoord.setting_table import SERVICES_FILE
from tests.frontend.seed import Seed
from tests.frontend.verdict_seed import judged, verdict
from tests.frontend.viewers import allow
from tests.support.database import cloned_database
from tests.support.http_members import make_token
from tests.support.processes import start_server

AT = "2026-03-01T03:00:00.000Z"
Named = Callable[..., None]


@pytest.fixture
def named(settings: SettingsWrapper, tmp_path: Path) -> Named:
    """Write the file of other services: a name and its address, or its address and token."""

    def write(token: str = "secret-of-it", **urls: str) -> None:
        path = tmp_path / "services.toml"
        path.write_text("".join(f'[{name}]\nurl = "{url}"\ntoken = "{token}"\n' for name, url in urls.items()))
        path.chmod(0o600)
        settings.KCOORD = settings.KCOORD.override({SERVICES_FILE: str(path)})

    return write


@dataclass
class Peer:
    """Answers as the first part of the path says; `asked`: the requests."""

    url: str
    asked: list[str] = field(default_factory=list)
    body: bytes = b'{"groups": [], "next_cursor": null}'
    released: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def peer() -> Iterator[Peer]:
    """A program at the address of a service."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append(self.path)
            part = self.path.split("/")[1]
            if part == "silent":
                found.released.wait(60)
            self.send_response(int(part) if part.isdecimal() else 200)
            self.send_header("Content-Length", str(len(found.body)))
            self.end_headers()
            self.wfile.write(found.body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    found = Peer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield found
    found.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


def group_there(group_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "group_id": group_id, "type": "consumer", "state": "Stable", "members": 2, "lag": 7, "lag_sampled_at": AT,
        "judged_at": AT, "verdicts": [], "unknown_partitions": 0, **fields,
    }  # fmt: skip


def page_of(*groups: dict[str, Any], cursor: str | None = None) -> bytes:
    return json.dumps({"groups": groups, "next_cursor": cursor}).encode()


def read(client: Client, address: str) -> str:
    return " ".join(client.get(address).content.decode().split())


@pytest.mark.whole("starts a second server")
def test_groups_of_a_second_server_are_listed_found_and_judged(
    operator: Client, seed: Seed, named: Named, postgres: str
) -> None:
    seed.group("billing-here")
    with cloned_database(postgres) as conninfo, start_server(conninfo) as server:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            there = Seed(connection)
            stuck = there.group("billing-there")
            verdict(there, stuck, "uncovered", "orders")
            judged(there)
            there.group("shipping-there", state="Empty")
        token = make_token(conninfo)
        server.wait_ready()
        named(token=token, payments=server.url)
        overview = read(operator, "/")
        assert f'href="{server.url}/groups/billing-there" title="Uncovered"' in overview
        assert "1 needs attention" in overview
        listed = read(operator, "/groups?q=billing")
        assert f'href="{server.url}/groups/billing-there"' in listed
        assert f'href="{server.url}/groups?q=billing"' in listed
        assert "shipping-there" not in listed
        for filters in ("state=Empty", "verdict=stuck&verdict=uncovered", "type=classic&sort=-members", "min_lag=0"):
            answered = read(operator, f"/groups?{filters}")
            assert ("payments could not be read" in answered, "In other services" in answered) == (False, True), filters
        found = read(operator, "/search?q=shipping")
        assert "Groups of payments" in found
        assert f'href="{server.url}/groups/shipping-there"' in found
        named(token="not-a-token", payments=server.url)
        assert "<strong>payments could not be read:</strong> it refused the token" in read(operator, "/groups")


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("/401", b"{}", "it refused the token"),
        ("/503", b"{}", "the answer was 503"),
        ("/302", b"", "the answer was 302"),
        ("/html", b"<html>", "the answer is not that of a kcoord service"),
        ("/other", b'{"groups": [{"group_id": 1}], "next_cursor": null}', "the answer is not that of a kcoord service"),
        ("/large", b" " * 1_048_577, "more than"),
        ("/silent", b"{}", "no answer within 0.2 s"),
    ],
)
def test_a_service_that_fails_is_named_and_the_others_are_shown(
    operator: Client, seed: Seed, named: Named, peer: Peer, path: str, body: bytes, told: str, monkeypatch: Any
) -> None:
    seed.group("here")
    monkeypatch.setattr(services, "TIMEOUT_SECONDS", 0.2)
    named(payments=peer.url + path)
    peer.body = body
    listed, overview, found = (read(operator, address) for address in ("/groups", "/", "/search?q=her"))
    assert "payments could not be read:" in listed
    assert told in listed
    assert "has no group" not in listed
    assert ">here<" in listed
    assert "Not read" in overview
    assert "Healthy" not in overview.partition("Other services")[2].partition("</section>")[0]
    assert "payments could not be read" in found
    assert peer.url not in found
    assert "secret-of-it" not in listed + overview + found


def test_what_is_not_known_is_not_zero(operator: Client, seed: Seed, named: Named, peer: Peer) -> None:
    named(payments=peer.url)
    peer.body = page_of(
        group_there("unsampled", lag=None, lag_sampled_at=None, judged_at=None),
        group_there("partly", unknown_partitions=2),
        group_there("newer", state="Pausing", verdicts=[{"verdict": "haunted"}]),
        cursor="x",
    )
    listed = read(operator, "/groups")
    assert 'title="Its service does not know it">–' in listed
    assert "the end of some partitions is not known" in listed
    assert "≥" in listed
    assert "As of 2026-03-01 03:00" in listed
    assert "This version does not know the state." in listed
    assert "This version does not know the verdict." in listed
    assert "More groups of payments" in listed
    peer.body = page_of(group_there("unsampled", judged_at=None))
    named(elsewhere=peer.url)
    assert "Not judged" in read(operator, "/")


def test_filters_go_with_the_request_and_those_it_has_not_keep_it_back(
    operator: Client, seed: Seed, named: Named, peer: Peer
) -> None:
    named(payments=peer.url)
    asked = "q=a%26b&state=Empty&state=Dead&client=c&label=owner%3Dme&min_lag=5&sort=-time_lag_ms&columns=lag"
    assert "payments has no group that matches." in read(operator, f"/groups?{asked}")
    (sent,) = peer.asked
    assert parse_qs(urlsplit(sent).query) == {
        "q": ["a&b"], "state": ["Empty", "Dead"], "client_id": ["c"], "label": ["owner=me"], "min_lag": ["5"],
        "sort": ["severity"], "limit": ["25"],
    }  # fmt: skip
    told = read(operator, "/groups?assignor=range&min_time_lag=5")
    assert "their API has no filter for assignor and time lag" in told
    assert len(peer.asked) == 1


def test_the_same_is_not_asked_again_at_once(operator: Client, seed: Seed, named: Named, peer: Peer) -> None:
    named(payments=peer.url)
    for _ in range(3):
        read(operator, "/groups")
    assert len(peer.asked) == 1
    read(operator, "/groups?q=x")
    assert len(peer.asked) == 2


def test_people_who_do_not_see_everything_here_see_nothing_of_it(
    client: Client, seed: Seed, named: Named, peer: Peer, django_user_model: Any
) -> None:
    user = django_user_model.objects.create_user("lea")
    allow(user, "describe:group:billing*", "describe:topic:*", "describe:cluster:*")
    client.force_login(user)
    named(payments=peer.url)
    pages = [read(client, address) for address in ("/", "/groups", "/search?q=a")]
    assert not peer.asked
    assert all("Groups of other services are shown only to people" in text for text in pages[:2])
    assert "payments" not in "".join(pages)


def test_without_a_file_nothing_is_said(operator: Client, seed: Seed) -> None:
    assert "other services" not in (read(operator, "/groups") + read(operator, "/")).lower()


def test_a_file_that_is_broken_later_is_a_failure(
    operator: Client, seed: Seed, named: Named, peer: Peer, settings: SettingsWrapper
) -> None:
    named(payments=peer.url)
    Path(settings.KCOORD.str(SERVICES_FILE)).write_text("[payments")
    assert "is not TOML" in read(operator, "/groups")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[a]\nurl = "https://a.example"', "service 'a': token is missing"),
        ('[a]\ntoken = "hidden"', "service 'a': url is missing"),
        ('[a]\nurl = "ftp://a.example"\ntoken = "hidden"', "service 'a': url is not an http"),
        ('[a]\nurl = "https://[x"\ntoken = "hidden"', "service 'a': url is not an http"),
        ('[a]\nurl = "https://hidden:x@a.example"\ntoken = "t"', "service 'a': url is not an http"),
        ('[a]\nurl = "https://a.example/?x=hidden"\ntoken = "t"', "service 'a': url is not an http"),
        ('[a]\nurl = "https://a.example"\ntoken = "hidden\\r\\nX: y"', "service 'a': token is not"),
        ('[a]\nurl = "https://a.example"\ntoken = " "', "service 'a': token is not"),
        ('[a]\nurl = "https://a.example"\ntoken = "t"\nuser = "hidden"', "unknown field 'user'"),
    ],
)
def test_a_mistake_prevents_the_start_and_names_the_service(
    tmp_path: Path, settings: SettingsWrapper, text: str, told: str
) -> None:
    path = tmp_path / "services.toml"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(SecretTablesError) as error:
        read_services(str(path))
    assert told in str(error.value)
    assert "hidden" not in str(error.value)
    settings.KCOORD = settings.KCOORD.override({SERVICES_FILE: str(path)})
    (found,) = services_can_be_asked(None)
    assert (found.id, told in found.msg) == ("kcoord.E006", True)


def test_a_service_keeps_its_token_to_itself(tmp_path: Path) -> None:
    path = tmp_path / "services.toml"
    path.write_text('[a]\nurl = "https://a.example/kcoord/"\ntoken = "hidden"')
    path.chmod(0o600)
    (found,) = read_services(str(path))
    assert (found.name, found.url, found.token) == ("a", "https://a.example/kcoord", "hidden")
    assert "hidden" not in repr(found)
    assert read_services("") == []
