"""Groups of other services on the pages: found with the same filters, and never taken for absent if a service fails."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import unescape
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
from groups.readmodel import ON_PAGES, GroupSort
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
        "group_id": group_id, "type": "consumer", "state": "Stable", "state_since": AT, "held_until": None,
        "members": 2, "generation_id": 3, "protocol_type": "consumer", "protocol_name": "range", "topics": ["orders"],
        "labels": {}, "lag": 7, "time_lag_ms": 60_000, "time_lag_at_least_ms": None, "lag_sampled_at": AT,
        "judged_at": AT, "verdicts": [], "unknown_partitions": 0, "updated_at": AT, **fields,
    }  # fmt: skip


def page_of(*groups: dict[str, Any], cursor: str | None = None) -> bytes:
    return json.dumps({"groups": groups, "next_cursor": cursor}).encode()


def read(client: Client, address: str) -> str:
    return " ".join(client.get(address).content.decode().split())


def rows_of(listed: str) -> list[str]:
    """The names of groups in a page of the list, in order."""
    return re.findall(r'data-label="Group"><a class="row-link" href="[^"]*">([^<]*)<', listed)


def following(listed: str) -> str | None:
    """The address of the next page of a list."""
    found = re.search(r'<a rel="next" href="([^"]*)"', listed)
    return found and unescape(found[1])


@pytest.mark.whole("starts a second server")
def test_pages_of_a_merged_list_join_up_in_every_order(
    operator: Client, seed: Seed, named: Named, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first service twice: groups that compare equal, also by their ids, are neither left out nor repeated."""
    monkeypatch.setattr("frontend.pages.groups.merged.PAGE_SIZE", 3)
    monkeypatch.setattr("frontend.pages.groups.reads.PAGE_SIZE", 3)
    with cloned_database(postgres) as conninfo, start_server(conninfo) as server:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            for place, to in enumerate((seed, Seed(connection))):
                for name, lag in (("a", 5), ("b", 5), (f"c{place}", 900 * place), (f"d{place}", 7)):
                    to.group_lag(
                        to.group(name, state="Empty" if lag == 5 else "Stable"), lag, None if lag == 7 else lag
                    )
                pk = to.group(f"stuck{place}")
                verdict(to, pk, ("uncovered", "stale")[place])
                judged(to)
        token = make_token(conninfo)
        server.wait_ready()
        named(token=token, payments=server.url, eu=server.url + "/")
        for sort in GroupSort:
            if sort in ON_PAGES:
                continue
            names: list[str] = []
            address: str | None = f"/groups?sort={sort.value}"
            while address is not None:
                listed = read(operator, address)
                assert "could not be read" not in listed
                names += (page := rows_of(listed))
                assert len(page) <= 3
                address = following(listed)
            assert sorted(names) == sorted(
                [*"aabb", "c0", "d0", "stuck0", *"ab", "c1", "c1", "d1", "d1", *["stuck1"] * 2]
            )
            if sort is GroupSort.SEVERITY:
                assert names == ["stuck0", "stuck1", "stuck1", *"aaabbb", "c0", "c1", "c1", "d0", "d1", "d1"]
            if sort is GroupSort.LAG_DESCENDING:
                assert names == ["c1", "c1", "d0", "d1", "d1", *"aaabbb", "c0", "stuck0", "stuck1", "stuck1"]
            if sort is GroupSort.STATE_DESCENDING:
                assert names[-6:] == [*"aaabbb"]
            if sort is GroupSort.GROUP_ID_DESCENDING:
                assert names == sorted(names, reverse=True)


def test_a_service_that_fails_continues_where_it_was(
    operator: Client, seed: Seed, named: Named, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontend.pages.groups.merged.PAGE_SIZE", 2)
    monkeypatch.setattr("frontend.pages.groups.reads.PAGE_SIZE", 2)
    monkeypatch.setattr(services, "REPEATED_SECONDS", 0.0)
    for name in ("a", "c", "e", "g"):
        seed.group(name)
    named(payments=peer.url)
    peer.body = page_of(group_there("b"), group_there("d"), cursor="x")
    first = read(operator, "/groups?sort=group_id")
    assert rows_of(first) == ["a", "b"]
    assert 'title="A group of another service' in first
    assert "Select all 1" in first
    peer.body = b"<html>"
    second = read(operator, following(first) or "")
    assert rows_of(second) == ["c", "e"]
    assert "payments could not be read" in second
    assert ">‹ First page</a>" in second
    peer.body = page_of(group_there("d"))
    third = read(operator, following(second) or "")
    assert rows_of(third) == ["d", "g"]
    assert parse_qs(urlsplit(peer.asked[1]).query)["cursor"] == parse_qs(urlsplit(peer.asked[2]).query)["cursor"]
    assert following(third) is None


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
        assert "1 group here, 1 in payments" in listed
        assert "shipping-there" not in listed
        for filters in (
            "state=Empty",
            "verdict=stuck&verdict=uncovered",
            "state=Held",
            "assignor=range",
            "min_lag=0",
            "min_time_lag=1",
            *(f"sort={sort.value}" for sort in GroupSort if sort not in ON_PAGES),
        ):
            answered = read(operator, f"/groups?{filters}")
            assert (" in payments" in answered, "unknown in payments" in answered) == (True, False), filters
        found = read(operator, "/search?q=shipping")
        assert "Empty, classic, in payments" in found
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
    monkeypatch.setattr(services, "TIMEOUT_SECONDS", 0.2 if path == "/silent" else 20.0)
    named(payments=peer.url + path)
    peer.body = body
    listed, overview, found = (read(operator, address) for address in ("/groups", "/", "/search?q=her"))
    assert "payments could not be read:" in listed
    assert told in listed
    assert "1 group here, unknown in payments" in listed
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
        group_there("newer", state="Pausing", verdicts=[{"verdict": "haunted", "since": AT}]),
        cursor="x",
    )
    listed = read(operator, "/groups")
    assert 'title="Not sampled yet, nothing committed, or no watermark is known">–' in listed
    assert "the end of 2 partitions is not known" in listed
    assert "≥" in listed
    assert "As of 2026-03-01 03:00" in listed
    assert "This version does not know the state." in listed
    assert "This version does not know the verdict." in listed
    assert "0 groups here, 3+ in payments" in listed
    peer.body = page_of(group_there("unsampled", judged_at=None))
    named(elsewhere=peer.url)
    assert "Not judged" in read(operator, "/")


def test_filters_go_with_the_request_and_those_it_has_not_keep_it_back(
    operator: Client, seed: Seed, named: Named, peer: Peer
) -> None:
    named(payments=peer.url)
    asked = (
        "q=a%26b&state=Empty&state=Held&client=c&label=owner%3Dme&min_lag=5&assignor=range&min_time_lag=5"
        "&sort=-time_lag_ms&columns=lag"
    )
    assert "0 groups here, 0 in payments" in read(operator, f"/groups?{asked}")
    (sent,) = peer.asked
    assert parse_qs(urlsplit(sent).query) == {
        "q": ["a&b"], "state": ["Empty"], "held": ["true"], "client_id": ["c"], "label": ["owner=me"], "min_lag": ["5"],
        "assignor": ["range"], "min_time_lag_ms": ["5000"], "sort": ["-time_lag_ms"], "limit": ["50"],
    }  # fmt: skip
    told = read(operator, "/groups?coordinator=node-1&sort=owner")
    assert "their API has no filter by coordinator and no order “owner”" in told
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
