"""Pages through Django's test client: who may look, what bad addresses are answered, what no page may contain."""

from __future__ import annotations

import gzip
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

import frontend
from frontend.middleware import ADMIN_POLICY, JOINED, POLICY
from frontend.ui.page import group_url
from frontend.urls import urlpatterns
from kcoord.database.paging import encode_cursor
from tests.frontend.seed import Seed, working_group
from tests.frontend.viewers import allow

PANEL = {"HTTP_HX_REQUEST": "true"}
OPEN_PAGES = {"login", "home", "docs", "live", "identity", "identity-answer", "signed-out", "identity-sign-out"}
SOME_ID = "7f9c24e8-3b12-4fef-91e0-56a2d5a1f0b3"
SAMPLES = {
    "kind": "json", "name": "t", "group_id": "g", "member_id": "m", "plan_id": SOME_ID, "run_id": SOME_ID,
    "token_id": 7, "rule_id": 7,
}  # fmt: skip
STRANGE_IDS = ["a b", "kürbis <b>&\"'", "100%", "a?b#c", "..a", "日本", "a\\b", "x" * 255, "-", "live", "events"]


def addresses() -> list[str]:
    """Every page, with a group, a member, a plan and a run that need not exist."""
    return [
        reverse(f"frontend:{page.name}", kwargs={name: SAMPLES[name] for name in page.pattern.converters})
        for page in urlpatterns
        if page.name not in OPEN_PAGES | {"logout"}
    ]


@pytest.mark.parametrize("address", addresses())
def test_a_stranger_is_sent_to_the_sign_in(client: Client, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/sign-in?next=")


def test_a_panel_fetched_after_the_session_ended_sends_the_page_to_the_sign_in(client: Client) -> None:
    answer = client.get("/groups?state=Stable", **PANEL)
    assert answer.status_code == 401
    assert answer.headers["HX-Redirect"] == "/sign-in?next=%2Fgroups%3Fstate%3DStable"


def test_the_stream_refuses_strangers(client: Client) -> None:
    assert client.get("/live").status_code == 401


def test_the_first_address_is_the_overview(person: Client) -> None:
    assert "<title>Overview · kcoord</title>" in person.get("/").content.decode()


def test_signing_out_takes_a_post(person: Client) -> None:
    assert person.get("/sign-out").status_code == 405
    assert person.get("/groups").status_code == 200
    assert person.post("/sign-out").status_code == 302
    assert person.get("/groups").status_code == 302


@pytest.mark.parametrize(
    ("address", "status", "title"),
    [
        ("/nowhere", 404, "No such page"),
        ("/topics/none", 404, "No such topic"),
        ("/groups?state=x", 400, "Bad request"),
        ("/admin/groups/group/add/", 403, "Not allowed"),
    ],
)
def test_a_refusal_keeps_the_navigation(operator: Client, address: str, status: int, title: str) -> None:
    answer = operator.get(address)
    assert answer.status_code == status
    page = answer.content.decode()
    assert f"<h1>{title}</h1>" in page
    assert [f'<ul aria-label="{name}">' in page for name in ("Work", "Change", "Service", "Access")] == [True] * 4
    assert ('aria-current="page">Topics' in page) == (address == "/topics/none")


def test_a_stranger_who_is_lost_is_shown_no_navigation(client: Client) -> None:
    answer = client.get("/nowhere")
    assert answer.status_code == 404
    assert "No such page" in answer.content.decode()
    assert "<nav" not in answer.content.decode()


def test_the_navigation_leaves_out_what_a_person_may_not_see(client: Client, seed: Seed) -> None:
    user = get_user_model().objects.create_user("mara")
    allow(user, "describe:group:seen-*")
    client.force_login(user)
    page = client.get("/groups").content.decode()
    assert ["Health" in page, 'aria-label="Service"' in page, ">Tokens</a>" in page, ">Admin</a>" in page] == [
        False
    ] * 4
    assert 'aria-label="Change"' in page


def test_an_empty_service_teaches_the_first_step(person: Client) -> None:
    text = person.get("/groups").content.decode()
    assert "No groups yet" in text
    assert "/v1/groups/first/join" in text


def test_the_list_shows_its_columns(person: Client, seed: Seed) -> None:
    working_group(seed)
    text = person.get("/groups").content.decode()
    row = re.search(r"<tr id=.*?</tr>", text, re.DOTALL)
    assert row is not None
    plain = " ".join(re.sub(r"<[^>]+>", " ", row[0]).split())
    assert plain.startswith("Select billing billing Stable 1 min ago classic range 3 – – orders, payments")


def test_filters_are_kept_by_the_links_to_other_pages(person: Client, seed: Seed) -> None:
    seed.many_groups(200)
    text = person.get("/groups?q=service&state=Stable&state=Empty&sort=changed").content.decode()
    links = re.findall(r'rel="next" href="([^"]+)"', text)
    assert len(links) == 1
    assert links[0].startswith("/groups?q=service&amp;state=Stable&amp;state=Empty&amp;sort=changed&amp;after=")
    assert person.get(links[0].replace("&amp;", "&")).status_code == 200


def test_the_panel_is_what_the_page_was_made_from(person: Client, seed: Seed) -> None:
    working_group(seed)
    for address in ("/groups", "/groups/billing", "/topics", "/groups/billing/events"):
        panel = person.get(address, **PANEL).content.decode().strip()
        whole = person.get(address).content.decode()
        assert "<html" not in panel
        assert panel.splitlines()[1].strip() in whole
        assert person.get(address).headers["Vary"] == "HX-Request, Cookie, Accept-Encoding"
        assert person.get(address).headers["Cache-Control"] == "no-store"


def test_a_topic_is_read_by_groups_that_own_it_and_was_committed_by_others(person: Client, seed: Seed) -> None:
    working_group(seed)
    seed.topic("orders", 12)
    seed.topic("empty", 1)
    seed.commit(seed.group("nightly", "Empty"), {("orders", 0): 1})
    page = re.sub(r"<[^>]+>", " ", person.get("/topics").content.decode())
    page = " ".join(page[page.index("Watermarks") :].split())
    assert "orders 12 billing Committed: nightly – – none" in page
    assert "empty 1 no group now – – none" in page


def test_a_group_without_owners_says_in_which_generation(person: Client, seed: Seed) -> None:
    seed.group("fresh", "Empty", generation=0)
    assert "No partition has been assigned or committed yet." in person.get("/groups/fresh").content.decode()
    seed.group("second", "Empty", generation=2)
    assert "No member owns a partition in generation 2" in person.get("/groups/second").content.decode()


@pytest.mark.parametrize("group_id", STRANGE_IDS)
def test_every_group_id_has_a_page(person: Client, seed: Seed, group_id: str) -> None:
    seed.group(group_id)
    seed.event(group_id, "group_created", 0)
    for address in (group_url(group_id), group_url(group_id) + "/events"):
        answer = person.get(address)
        assert answer.status_code == 200
        title = re.search(r"<title>(.*?)</title>", answer.content.decode())
        assert title is not None
        assert (
            group_id.replace("&", "&amp;")
            .replace("<", "&lt;")
            .replace(">", "&gt;")
            .replace('"', "&quot;")
            .replace("'", "&#x27;")
            in (title[1])
        )


def test_a_group_that_is_not_there_may_have_a_history(person: Client, seed: Seed) -> None:
    seed.event("gone", "group_deleted", 4)
    answer = person.get("/groups/gone")
    assert answer.status_code == 404
    assert "Group deleted with its offsets" in answer.content.decode()
    assert person.get("/groups/gone/events").status_code == 200
    assert person.get("/groups/never/events").status_code == 404
    assert person.get("/groups/a%00b").status_code == 404


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("/groups?state=Sleeping", "state: &#x27;Sleeping&#x27; is not one of Stable, PreparingRebalance"),
        ("/groups?type=x", "type: &#x27;x&#x27; is not one of classic, consumer"),
        ("/groups?sort=x", "sort: &#x27;x&#x27; is not one of group_id"),
        ("/groups?q=a%00b", "q: contains the NUL character"),
        ("/groups?q=" + "x" * 256, "q: at most 255 characters"),
        ("/groups?after=%21", "after: no such page of the list"),
        ("/groups?after=" + encode_cursor(1, 2), "after: no such page of the list"),
        (f"/groups?after={encode_cursor('a', 1)}&before={encode_cursor('a', 1)}", "use only one of them"),
        ("/groups/g?show=secrets", "show: &#x27;secrets&#x27; is not one of handovers, partitions"),
        ("/topics?before=x", "before: no such page of the list"),
        ("/groups/g/events?before=x", "before: no such page of the list"),
    ],
)
def test_a_bad_address_is_told_what_is_wrong(person: Client, address: str, says: str) -> None:
    answer = person.get(address)
    assert answer.status_code == 400
    assert says in answer.content.decode()


class Inline(HTMLParser):
    """Finds what the content policy forbids, and references to other hosts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._script = tag == "script" and "src" not in given
        if tag == "style" or "style" in given:
            self.found.append(f"style of <{tag}>")
        self.found += [f"{name} of <{tag}>" for name in given if name.startswith(("on", "hx-on", "hx-vals"))]
        for name in ("src", "href", "action", "hx-get", "hx-post"):
            if "//" in (given.get(name) or ""):
                self.found.append(f"{name}={given[name]}")

    def handle_data(self, data: str) -> None:
        if self._script and data.strip():
            self.found.append("inline script")
        self._script = False


@pytest.mark.parametrize(
    "address",
    [
        "/groups", "/groups?q=nothing", "/groups/billing", "/groups/billing/events", "/groups/none", "/topics",
        "/password", "/password/changed", "/nowhere", "/groups?state=x",
        "/groups/billing?tab=members", "/groups/billing?tab=offsets",
    ],
)  # fmt: skip
def test_no_page_carries_what_the_policy_forbids(person: Client, seed: Seed, address: str) -> None:
    working_group(seed)
    answer = person.get(address)
    parser = Inline()
    parser.feed(answer.content.decode())
    assert parser.found == []
    assert answer.headers["Content-Security-Policy"] == POLICY


def test_the_sign_in_carries_nothing_inline_either(client: Client, seed: Seed) -> None:
    parser = Inline()
    parser.feed(client.get("/sign-in?next=/groups").content.decode())
    assert parser.found == []


def test_only_the_admin_has_a_wider_policy(operator: Client) -> None:
    assert operator.get("/admin/").headers["Content-Security-Policy"] == ADMIN_POLICY
    assert operator.get("/admins").headers["Content-Security-Policy"] == POLICY
    for policy in (POLICY, ADMIN_POLICY):
        sources = {source for part in policy.split(";") for source in part.split()[1:]}
        assert not any("." in source or "*" in source or "http" in source for source in sources)


def test_what_is_vendored_carries_its_licence() -> None:
    vendor = Path(frontend.__file__).parent / "static" / "vendor"
    directories = [path for path in vendor.iterdir() if path.is_dir()]
    assert directories
    for directory in directories:
        assert (directory / "LICENSE").read_text().strip()
        assert f"`{directory.name}/`" in (vendor / "README.md").read_text()


def test_static_files_are_served_whole(client: Client) -> None:
    answer = client.get("/static/frontend/live-worker.js")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/javascript")
    assert b"KcoordStream" in answer.content
    assert "script-src 'self';" in answer.headers["Content-Security-Policy"], "the shared worker has it from its file"
    again = client.get("/static/frontend/live-worker.js", HTTP_IF_MODIFIED_SINCE=answer.headers["Last-Modified"])
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("name", JOINED)
def test_joined_files_have_all_of_their_sources(client: Client, name: str) -> None:
    answer = client.get(f"/static/{name}")
    kind = "text/css" if name.endswith(".css") else "text/javascript"
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
    sources = [(Path(frontend.__file__).parent / "static" / source).read_bytes() for source in JOINED[name]]
    assert answer.content == b"\n".join(sources)
    small = client.get(f"/static/{name}", HTTP_ACCEPT_ENCODING="br, gzip")
    assert (small.headers["Content-Encoding"], gzip.decompress(small.content)) == ("gzip", answer.content)
    again = client.get(f"/static/{name}", HTTP_IF_NONE_MATCH=small.headers["ETag"])
    assert (again.status_code, again.content) == (304, b"")
    assert client.post(f"/static/{name}").status_code == 405


def test_no_source_of_the_styles_is_forgotten() -> None:
    static = Path(frontend.__file__).parent / "static"
    sources = {str(path.relative_to(static)) for path in static.glob("frontend/*.css")}
    assert sources - set(JOINED["frontend/all.css"]) == {"frontend/docs.css"}, "the reference of the API loads its own"


def test_pages_say_so_when_the_database_is_away(person: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.db import OperationalError

    from frontend.pages.group import view as groups

    def away(*_: object) -> None:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(groups.bridge, "call", away)
    answer = person.get("/groups")
    assert answer.status_code == 503
    assert "The database is not available." in answer.content.decode()


@pytest.mark.parametrize(
    ("query", "found", "told"),
    [
        ("topic=orders", ["billing", "nightly"], "the topic orders"),
        ("topic=payments", ["billing"], ""),
        ("topic=order", [], "No group has the topic order."),
        ("member=10.0", [], "a member with “10.0” in its ids"),
        ("member=billing-", ["billing"], ""),
        ("min_lag=1,000", ["nightly"], ""),
        ("min_lag=2000", [], "a lag of 2,000 or more"),
        ("label=team%3Dmoney", ["billing", "nightly"], ""),
        ("label=team", ["billing", "nightly"], ""),
        ("label=team%3Dother&q=bil", [], "“bil” in its id, and the label team=other"),
    ],
)
def test_the_list_is_narrowed_by_more_than_the_name(
    person: Client, seed: Seed, query: str, found: list[str], told: str
) -> None:
    working_group(seed)
    seed.topic("orders", 12)
    seed.connection.execute('update groups_topic set labels = \'{"team": "money"}\'')
    nightly = seed.group("nightly", "Empty")
    seed.commit(nightly, {("orders", 0): 1})
    seed.group_lag(nightly, 1_500, 0)
    seed.group("other", "Empty")
    page = person.get(f"/groups?{query}").content.decode()
    assert re.findall(r'class="row-link" href="/groups/([^"]+)"', page) == found
    assert '<details class="more-filters" id="more-filters" open>' in page
    assert found or told in page
    rows = b"".join(person.get(f"/groups.csv?{query}").streaming_content).decode()  # type: ignore[attr-defined]
    assert [line.partition(",")[0] for line in rows.splitlines()[1:]] == found


def test_more_filters_are_folded_away_unless_they_are_used(person: Client, seed: Seed) -> None:
    seed.group("idle", "Empty")
    assert '<details class="more-filters" id="more-filters">' in person.get("/groups?q=i").content.decode()
    for query in ("min_lag=x", "min_lag=-1", "label=%3Dx"):
        assert person.get(f"/groups?{query}").status_code == 400
