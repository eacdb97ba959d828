"""The timeline of all groups: every kind, filters, access, what is left out, zones, and what it reads beside much."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from html import unescape
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from psycopg.types.json import Jsonb

from frontend.pages.history import timeline
from frontend.pages.history.timeline import APART_MS, FOLDED, KINDS, Happened, Rebalance, lines
from frontend.ui import zones
from kcoord.database.sql import queries
from tests.conftest import START_MS
from tests.frontend.alert_seed import put_alert, put_rule
from tests.frontend.conftest import PASSWORD
from tests.frontend.node_seed import change
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, now_ms
from tests.frontend.verdict_seed import verdict
from tests.frontend.viewers import ALL, allow
from tests.support.database import cloned_database
from tests.support.plans import executed_plan
from tests.support.spark_runs import put_run

MINUTE, HOUR = 60_000, 3_600_000
NIGHT = 1_763_694_000_000
"""2025-11-21 03:00 UTC."""


def rows(client: Client, query: str = "") -> list[tuple[str, ...]]:
    """Kind, text and group of each line."""
    answer = client.get(f"/timeline{query}")
    assert answer.status_code == 200
    body = re.findall(r"<tr>\s*<td data-label=\"When\".*?</tr>", answer.content.decode(), re.DOTALL)
    cells = [[plain(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)] for row in body]
    return [tuple(row[1:]) for row in cells]


def plain(html: str) -> str:
    return unescape(" ".join(re.sub(r"<[^>]+>", " ", html.replace("<wbr>", "")).split()))


def file(client: Client, query: str = "") -> list[dict[str, str]]:
    answer = client.get(f"/timeline.csv{query}")
    assert answer.status_code == 200
    return list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))  # type: ignore[attr-defined]


@pytest.fixture
def night(seed: Seed) -> Seed:
    """One of each kind, all within the last hours."""
    now = now_ms()
    billing = seed.group("billing")
    seed.group("mailing")
    seed.event("billing", "rebalance_started", 3, "m1", ms_ago=50 * MINUTE, cause="session_expired")
    seed.event("billing", "rebalance_completed", 4, ms_ago=49 * MINUTE, members=2)
    seed.event("mailing", "group_epoch_bumped", 8, ms_ago=40 * MINUTE, cause="topics_changed")
    verdict(seed, billing, "stalled", "orders", ms_ago=30 * MINUTE)
    verdict(seed, billing, "expiring", "payments", ms_ago=30 * MINUTE)
    put_plan(seed.connection, "billing", made_at=now - 20 * MINUTE, state="applied")
    rule = put_rule(seed.connection)
    put_alert(seed.connection, rule, "billing", at=now - 25 * MINUTE, resolved_at=now - 15 * MINUTE)
    change(seed, range(12), "node-a", "node-b", "lapsed", ms_ago=55 * MINUTE, gap_ms=4_000)
    put_run(seed.connection, "reconcile", findings=2)
    seed.connection.execute(
        "insert into groups_grouplabels (group_name, labels, updated_at, updated_by) values (%s, %s, 0, 'ann')",
        ["mailing", Jsonb({"owner": "post", "team": "a"})],
    )
    return seed


OF_BILLING = [
    ("Alert", "Alert resolved: billing stands still", "billing"),
    ("Plan", "Plan applied by ops", "billing"),
    ("Plan", "Plan made by mara", "billing"),
    ("Alert", "Alert opened: billing stands still", "billing"),
    (
        "Verdict", "Stalled (1 topic): Owners of partitions make no progress although there are records to read.",
        "billing",
    ),
    ("Rebalance", "A member sent no heartbeat in time", "billing"),
]  # fmt: skip
OF_MAILING = [("Rebalance", "Epoch 8: subscribed topics changed", "mailing")]


def test_every_kind_is_a_line_newest_first_and_leads_to_what_it_is_about(operator: Client, night: Seed) -> None:
    found = rows(operator)
    assert {kind for kind, *_ in found} == {state.label for state in KINDS.values()}
    assert [row for row in found if row[2] == "billing"] == OF_BILLING
    assert [row for row in found if row[2] == "mailing"] == OF_MAILING
    (hand_over,) = (row for row in found if row[0] == "Hand-over")
    assert hand_over[1:] == (
        "12 coordinator partitions: node-a → node-b. Lease ran out; up to 4 s without an owner", "service",
    )  # fmt: skip
    assert [row[1] for row in found if row[0] == "Spark run"] == [
        "Reconcile succeeded after 30 s with 2 findings", "Reconcile began",
    ]  # fmt: skip
    page = operator.get("/timeline").content.decode()
    for url in set(re.findall(r'row-link" href="([^"]+)"', page)):
        assert operator.get(unescape(url)).status_code == 200, url


def test_the_span_goes_along_to_the_pages_of_groups(operator: Client, night: Seed) -> None:
    page = unescape(operator.get("/timeline?span=6h").content.decode())
    histories = {urlsplit(url) for url in re.findall(r'href="(/groups/[^"/]+/history[^"]+)"', page)}
    assert {url.path for url in histories} == {"/groups/billing/history", "/groups/mailing/history"}
    (query,) = {url.query for url in histories}
    first, last = (parse_qs(query)[name][0] for name in ("from", "to"))
    assert operator.get(f"/groups/billing/history?{query}").status_code == 200
    narrowed = operator.get(f"/timeline?from={first}&to={last}").content.decode()
    assert f"from={first.replace(':', '%3A')}" in unescape(narrowed)


@pytest.mark.parametrize(
    ("query", "groups"),
    [
        ("?kind=rebalance", {"billing", "mailing"}),
        ("?kind=plan&kind=alert", {"billing"}),
        ("?kind=hand-over", {"service"}),
        ("?q=bill&kind=rebalance", {"billing"}),
        ("?q=illing&kind=rebalance", set()),
        ("?label=owner%3Dpost&kind=rebalance&kind=verdict", {"mailing"}),
        ("?label=team&kind=rebalance", {"mailing"}),
        ("?label=owner%3Dother&kind=rebalance&kind=alert", set()),
        ("?from=2001-01-01T00:00&to=2001-01-02T00:00", set()),
    ],
)
def test_filters(operator: Client, night: Seed, query: str, groups: set[str]) -> None:
    assert {group for *_, group in rows(operator, query)} == groups
    listed = file(operator, query)
    said = {row["group_id"] or "service" for row in listed if row["kind"] != "left_out"}
    assert said == groups
    data = operator.get(f"/timeline.json{query}").json()
    in_words = [{name: str(value or "") for name, value in line.items()} for line in data["lines"]]
    assert in_words == [row for row in listed if row["kind"] != "left_out"]
    assert data["left_out"] == [row["what"] for row in listed if row["kind"] == "left_out"]


def test_markdown_has_the_lines_and_what_they_leave_out(operator: Client, night: Seed) -> None:
    for query in ("?kind=alert&kind=run", "?span=7d&kind=rebalance"):
        answer, data = operator.get(f"/timeline.md{query}"), operator.get(f"/timeline.json{query}").json()
        assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
        assert answer.headers["Content-Disposition"] == 'attachment; filename="timeline.md"'
        text = answer.content.decode()
        assert text.startswith("# Timeline\n\n")
        assert re.findall(r"^\| (2\S+) \| (\S+) \| (.*) \| (\S+) \|$", text, re.MULTILINE) == [
            (line["last_at"], line["kind"], line["what"], f"`{line['group_id']}`" if line["group_id"] else "service")
            for line in data["lines"]
        ]
        assert text.rstrip().splitlines()[-len(data["left_out"]) :] == data["left_out"] or not data["left_out"]
    empty = operator.get("/timeline.md?q=none&kind=alert").content.decode()
    assert re.fullmatch(r"# Timeline\n\n\S+ to \S+\n\nNothing happened\.\n", empty)


def test_a_filter_of_groups_leaves_what_is_about_the_service(operator: Client, night: Seed) -> None:
    assert {kind for kind, *_ in rows(operator, "?q=nothing")} == {"Hand-over", "Spark run"}


@pytest.mark.parametrize(
    "query",
    ["?kind=x", "?span=2h", "?from=x", "?before=x", "?label=%3Dx", "?from=2025-11-21T03:00&to=2025-11-21T03:00"],
)
def test_what_cannot_be_asked_for_is_refused(operator: Client, seed: Seed, query: str) -> None:
    assert operator.get(f"/timeline{query}").status_code == 400
    assert operator.get(f"/timeline.csv{query}").status_code in (200 if "before" in query else 400,)


def test_many_rebalances_of_a_group_are_one_line(operator: Client, seed: Seed) -> None:
    for number in range(40):
        cause = "member_joined" if number % 4 else "session_expired"
        seed.event("x", "rebalance_started", number, ms_ago=HOUR - number * 6_000, cause=cause)
        seed.event("y", "rebalance_started", number, ms_ago=HOUR - number * 6_000 + APART_MS, cause="member_left")
    seed.event("x", "rebalance_started", 41, ms_ago=HOUR + APART_MS + 6_000, cause="member_left")
    found = rows(operator)
    assert [row for row in found if row[2] == "x"] == [
        (
            "Rebalance",
            "40 rebalances within 3 min 54 s: 30 × a member joined, 10 × a member sent no heartbeat in time", "x",
        ),
        ("Rebalance", "A member left", "x"),
    ]  # fmt: skip
    assert [row[1] for row in found if row[2] == "y"] == ["40 rebalances within 3 min 54 s: a member left"]
    (folded, *_) = (row for row in file(operator) if row["group_id"] == "x")
    assert (folded["count"], folded["first_at"] < folded["last_at"]) == ("40", True)
    url = unescape(re.findall(r'row-link" href="([^"]+)"', operator.get("/timeline?q=x").content.decode())[0])
    listed = operator.get(url).content.decode()
    assert listed.count('<tr id="r') == 40, "the link lists those of the line, and no other"


def test_runs_end_where_the_group_was_quiet() -> None:
    def of(*at: int) -> list[tuple[int, int, int]]:
        found = [Rebalance(1_000 - n, one, "rebalance_started", 1, "g", "member_joined") for n, one in enumerate(at)]
        return [(one.first, one.last, len(one.run)) for one in lines(Happened(0, found, {}, {}), KINDS)]

    assert of(*[1_000_000 - n * APART_MS for n in range(FOLDED)]) == [(1_000_000 - 2 * APART_MS, 1_000_000, FOLDED)]
    assert len(of(*[1_000_000 - n * (APART_MS + 1) for n in range(FOLDED)])) == FOLDED
    assert len(of(*[1_000_000] * (FOLDED - 1))) == FOLDED - 1


def member(client: Client, *rules: str) -> Client:
    user = get_user_model().objects.create_user("mara", password=PASSWORD)
    allow(user, *rules)
    client.force_login(user)
    return client


def test_what_may_not_be_seen_did_not_happen_and_the_page_says_that_it_hides(client: Client, night: Seed) -> None:
    member(client, "describe:group:mailing", "describe:topic:*")
    assert rows(client) == OF_MAILING
    page = client.get("/timeline").content.decode()
    assert "billing" not in page.replace("owner=billing", "")
    assert "node-a" not in page
    assert "hand-overs and Spark runs are" in page
    assert "of the groups that you may see" in page
    assert "Hand-over" not in plain(page).replace("hand-over", "")
    assert [row["group_id"] for row in file(client)] == ["mailing"]


def test_an_empty_timeline_says_what_it_does_not_know(client: Client, night: Seed) -> None:
    member(client, "describe:group:none", "describe:topic:*")
    page = plain(client.get("/timeline").content.decode())
    assert "Nothing happened in this time that you may see ; hand-overs and Spark runs are hidden." in page


def test_verdicts_on_topics_that_may_not_be_seen_are_not_there(client: Client, night: Seed) -> None:
    member(client, "describe:group:billing", "describe:topic:payments")
    assert [row for row in rows(client) if row[0] == "Verdict"] == []


def test_more_than_is_read_is_said_and_not_drawn_as_nothing(
    operator: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "MOST_EVENTS", 5)
    monkeypatch.setattr(timeline, "MOST_OTHERS", 2)
    for number in range(9):
        seed.event(f"g{number}", "rebalance_started", 1, ms_ago=(10 - number) * 30 * MINUTE, cause="member_left")
        change(seed, [number], "a", "b", "balanced", ms_ago=(10 - number) * 30 * MINUTE)
    page = plain(operator.get("/timeline").content.decode())
    assert {row[2] for row in rows(operator)} == {"g3", "g4", "g5", "g6", "g7", "g8", "service"}
    assert len([row for row in rows(operator) if row[0] == "Hand-over"]) == 2
    assert re.search(r"More than 5 events of groups are kept of this time: rebalances before \S+ \S+ UTC are not", page)
    assert "More than 2 lines are of the kind Hand-over: those before" in page
    assert re.search(r"Rebalance ≥ \d", page), "what was not read may be more"
    assert re.search(r"Hand-over ≥ 2", page)
    assert re.search(r"Plan 0 ", page)
    assert [row["kind"] for row in file(operator)].count("left_out") == 2
    (values,) = re.findall(r'data-values="([^"]*)"', operator.get("/timeline?kind=rebalance").content.decode())
    assert set(values.split("|")[:100]) == {""}, "unknown is not zero"
    assert ">not read</text>" in operator.get("/timeline").content.decode()
    assert ">not read</text>" not in operator.get("/timeline?kind=plan").content.decode()
    seed.connection.execute(
        "insert into offsets_activity (at, record_offset, event_id, rebalances)"
        " select %s - n * 60000, 0, 0, 7 from generate_series(0, 1440) n",
        [now_ms()],
    )
    (values,) = re.findall(r'data-values="([^"]*)"', operator.get("/timeline?kind=rebalance").content.decode())
    assert set(values.split("|")[5:120]) == {"70"}, "of all groups it was counted each minute"
    (values,) = re.findall(r'data-values="([^"]*)"', operator.get("/timeline?kind=rebalance&q=g").content.decode())
    assert set(values.split("|")[:100]) == {""}, "of some groups it was not"


def test_what_is_no_longer_kept_is_unknown(operator: Client, seed: Seed) -> None:
    page = operator.get("/timeline?from=2001-01-01T00:00&to=2001-01-02T00:00").content.decode()
    assert "are no longer kept" in page
    assert "Nothing is known of this time." in page
    assert "no longer kept" not in operator.get("/timeline").content.decode()
    page = operator.get("/timeline?from=2001-01-01T00:00&to=2001-01-02T00:00&kind=alert").content.decode()
    assert "Resolved alerts before" in page
    assert "Rebalances" not in page


def test_pages_show_every_line_once(operator: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "LINES", 10)
    now = now_ms()
    rule = put_rule(seed.connection)
    for number in range(23):
        put_alert(seed.connection, rule, f"g{number:03}", at=now - HOUR - number // 4)
    found: list[str] = []
    address: str | None = ""
    while address is not None:
        found += [group for *_, group in rows(operator, address)]
        older = re.search(r'rel="next" href="/timeline([^"]+)"', operator.get(f"/timeline{address}").content.decode())
        address = unescape(older[1]) if older else None
    assert sorted(found) == [f"g{number:03}" for number in range(23)]
    page = unescape(operator.get("/timeline").content.decode())
    assert "10 of 23 lines" in page
    older = re.search(r'rel="next" href="/timeline([^"]+)"', page)
    assert older is not None
    spans = re.findall(r'<nav class="ranges.*?</nav>', operator.get(f"/timeline{older[1]}").content.decode(), re.DOTALL)
    assert "before=" not in spans[0], "another time is shown from its newest line on"


def test_instants_are_in_the_zone_of_the_page(operator: Client, seed: Seed) -> None:
    seed.event("g", "rebalance_started", 1, ms_ago=now_ms() - NIGHT, cause="member_left")
    at = "?from=2025-11-21T02:00Z&to=2025-11-21T04:00Z"
    assert "2025-11-21 03:00:00" in operator.get(f"/timeline{at}").content.decode()
    operator.cookies[zones.COOKIE] = "Asia/Kathmandu"
    page = operator.get(f"/timeline{at}").content.decode()
    assert "2025-11-21 08:45:00" in page
    assert "When (UTC+0545)" in page
    assert file(operator, at)[0]["first_at"].startswith("2025-11-21T03:00:00.")


@pytest.fixture(scope="module")
def crowded(postgres: str) -> object:
    """Half a million events of a hundred thousand groups in five days."""
    with cloned_database(postgres) as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(
            "insert into groups_event (group_name, at, kind, generation_id, detail)"
            " select 'team-' || i %% 97 || '.service-' || i %% 100000, %s + i * 864,"
            " case when i %% 2 = 0 then 'rebalance_started' else 'member_joined' end, 1, '{}'"
            " from generate_series(1, 500000) i",
            [START_MS],
        )
        connection.execute(b"vacuum analyze groups_event")
        yield connection


@pytest.mark.parametrize("generic", [False, True], ids=["these values", "any values"])
@pytest.mark.whole("writes many rows to see that what is read is bounded")
def test_a_span_is_found_and_read_by_ids_beside_half_a_million_events(
    crowded: psycopg.Connection[Sequence[int]], generic: bool
) -> None:
    Q = queries("frontend")
    first, last = START_MS + 86_400_000, START_MS + 90_000_000
    ids = {}
    for name, at in (("first_id", first), ("last_id", last)):
        row = crowded.execute(Q.first_event_from.encode(), {"at": at}).fetchone()
        exact = crowded.execute("select min(id) from groups_event where at >= %s", [at]).fetchone()
        assert row == exact
        ids[name] = row[0]
        plan = executed_plan(crowded, Q.first_event_from, {"at": at}, generic=generic)
        read = re.findall(r"on groups_event\b.*\(actual rows=([\d.]+) loops=(\d+)", plan)
        assert sum(float(found) * int(loops) for found, loops in read) < 60, plan
    parameters = {
        **ALL.with_groups(), **ids, "first": first, "last": last, "most": 1_000, "kinds": list(timeline.BEGINNINGS),
        "prefix": None, "label": None, "label_value": None,
    }  # fmt: skip
    plan = executed_plan(crowded, Q.rebalances_of_groups, parameters, generic=generic)
    read = re.findall(r"Scan.* on groups_event\b.*\(actual rows=([\d.]+)", plan)
    assert [float(found) for found in read] == [1_000], plan
    assert "Rows Removed" not in plan.partition("CTE read")[2].partition("CTE Scan")[0], plan
