"""Measure the pages of the dashboard: `python -m tests.bench.pages [--groups 100,10000] [--json FILE] [--screen]`.

For each number of groups a server of its own on loopback: the median time of several requests until the whole answer
has arrived, its bytes, the bytes when compressed as browsers ask for it, and the elements of the page (DOM nodes
without texts). Each group has three members, events, and offsets on two topics; last comes a group of 2,000 members
with 10,000 partitions. `--screen` measures in Chromium, besides, how long a join and an outage take to be seen.

It ends by itself: after `--seconds` no further page is begun, and what was left out is said.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import httpx
import psycopg

from kcoord.database.sql import queries
from tests.bench.scrape import fill
from tests.bench.screen import Seen, seen
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, member_id, now_ms
from tests.frontend.verdict_seed import judged
from tests.support.accounts import PASSWORD, USER, make_user
from tests.support.database import ephemeral_database
from tests.support.processes import start_server

SIZES = (100, 10_000, 100_000)
SECONDS = 900.0
REQUESTS = 7
LONGEST_REQUEST = 60.0
HUGE, HUGE_MEMBERS, HUGE_PARTITIONS = "fleet", 2_000, 10_000
EXTRA = (
    "insert into groups_event (group_name, at, kind, generation_id, member_id, detail)"
    " select g.group_id, %(now)s - n * 60000 - g.id,"
    " case when n %% 4 = 0 then 'group_held' else 'rebalance_started' end, n, 'm-1',"
    " jsonb_build_object('cause', 'member_joined', 'principal', 'mara', 'reason', 'bench')"
    " from groups_group g, generate_series(1, 8) n",
    "insert into offsets_grouplag (group_id, at, lag, time_lag_ms, partitions)"
    " select id, %(now)s - 20000, id %% 9999, id %% 7777 * 1000, id %% 40 from groups_group",
    "insert into offsets_topiclag (group_id, topic, at, lag, max_lag, time_lag_ms, committed_offsets, log_end_offsets,"
    " partitions, unknown_partitions)"
    " select group_id, topic, %(now)s - 20000, group_id %% 9999, group_id %% 999, 60000, 0, 0, count(*), 0"
    " from offsets_committedoffset group by group_id, topic",
    queries("offsets").total_topics,
    "insert into offset_commit_log (at, kind, group_name, topic, partition, committed_offset, member_id, generation_id,"
    " client_id, principal, metadata)"
    " select %(now)s - n * 60000, 'commit', g.group_id, 'topic-1', 0, n, 'm-1', 1, 'c', '', ''"
    " from groups_group g, generate_series(1, 5) n",
    "select count(kcoord_audit_append(%(now)s - n * 60000, 'person', 'mara', '7', '10.0.0.7', 'request', 'dashboard',"
    " 'topic.update', 'topic', 'topic-1', '{\"partitions\":3}', '{\"partitions\":6}', 'bench', 'done', '', 1))"
    " from generate_series(200, 1, -1) n",
)
"""Events, lag, commits and records of the audit beside what `tests.bench.scrape` fills in."""
GROUP = "/groups/team-1.consumer-1"
PAGES = {
    "Overview": "/",
    "Groups": "/groups",
    "Groups, by time lag": "/groups?sort=-time_lag_ms",
    "Groups, by partitions": "/groups?sort=-partitions",
    "Groups, part of a name": "/groups?q=consumer-9",
    "Group": GROUP,
    "Group, members": f"{GROUP}?tab=members",
    "Group, partitions": f"{GROUP}?tab=offsets",
    "Member": f"{GROUP}/members/m-1",
    "Rebalances": f"{GROUP}/rebalances",
    "History": f"{GROUP}/history",
    "Commit history": f"{GROUP}/commits",
    "Events": f"{GROUP}/events",
    "Reset offsets": f"{GROUP}/reset",
    "Topics": "/topics",
    "Topics, by lag": "/topics?sort=-lag",
    "Topic": "/topics/topic-1",
    "Nodes": "/nodes",
    "Audit": "/audit",
    "Health": "/health",
    "Plans": "/plans",
    "Timeline": "/timeline",
    "Alerts": "/alerts",
    "Search": "/search?q=consumer-77",
}
HUGE_PAGES = {
    "Group": f"/groups/{HUGE}",
    "Group, members": f"/groups/{HUGE}?tab=members",
    "Group, partitions": f"/groups/{HUGE}?tab=offsets",
    "Member": f"/groups/{HUGE}/members/{member_id(HUGE, 0)}",
    "Rebalances": f"/groups/{HUGE}/rebalances",
    "History": f"/groups/{HUGE}/history",
    "Reset offsets": f"/groups/{HUGE}/reset",
    "Topic": "/topics/telemetry",
    "Overview": "/",
    "Groups": "/groups",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """A page: median and largest time of a request in ms, bytes, bytes compressed, elements."""

    page: str
    path: str
    ms: float
    most_ms: float
    size: int
    compressed: int
    elements: int


class Elements(HTMLParser):
    """Counts the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One more."""
        self.count += 1


def elements(page: str) -> int:
    """How many elements a page has."""
    parser = Elements()
    parser.feed(page)
    return parser.count


def sign_in(client: httpx.Client) -> None:
    """Sign in as a browser does."""
    form = client.get("/sign-in").raise_for_status().text
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
    assert token is not None
    given = {"username": USER, "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
    answer = client.post("/sign-in", data=given, headers={"Referer": str(client.base_url)})
    assert answer.status_code == httpx.codes.FOUND, answer.status_code


def measure(client: httpx.Client, page: str, path: str) -> Measured:
    """Several requests of one page, after one that warms caches. Raises HTTPStatusError."""
    client.get(path).raise_for_status()
    taken, raw = [], b""
    for _ in range(REQUESTS):
        started = time.perf_counter()
        with client.stream("GET", path) as answer:
            raw = b"".join(answer.iter_raw())
        answer.raise_for_status()
        taken.append((time.perf_counter() - started) * 1_000)
    content = gzip.decompress(raw) if answer.headers.get("Content-Encoding") == "gzip" else raw
    return Measured(
        page, path, round(statistics.median(taken), 1), round(max(taken), 1), len(content), len(raw),
        elements(content.decode()),
    )  # fmt: skip


def fill_all(conninfo: str, groups: int) -> None:
    """Groups with members, events, lag, offsets and commits."""
    fill(conninfo, groups)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for statement in EXTRA:
            connection.execute(statement.encode(), {"now": now_ms()})
        put_plan(connection, "team-1.consumer-1", made_at=now_ms() - 60_000, lines=12)
        judged(Seed(connection))
        connection.execute("vacuum analyze")


def fill_huge(conninfo: str) -> None:
    """One group of 2,000 members with 10,000 partitions beside 100 others."""
    fill_all(conninfo, SIZES[0])
    with psycopg.connect(conninfo, autocommit=True) as connection:
        seed, members = Seed(connection), [member_id(HUGE, number) for number in range(HUGE_MEMBERS)]
        pk = seed.group(HUGE, generation=3, leader=members[0])
        seed.members(pk, members, client_id=HUGE)
        partitions = [("telemetry", partition) for partition in range(HUGE_PARTITIONS)]
        seed.topic("telemetry", HUGE_PARTITIONS, [9_000] * HUGE_PARTITIONS)
        seed.assign(pk, {key: members[key[1] % HUGE_MEMBERS] for key in partitions}, 3)
        seed.commit(pk, dict.fromkeys(partitions, 8_000))
        connection.execute("vacuum analyze")


def run(filled: Callable[[str], None], pages: dict[str, str], until: float) -> tuple[list[Measured], list[str]]:
    """What was measured on a database of its own, and the pages that were left out."""
    found, missing = [], []
    with ephemeral_database() as conninfo:
        filled(conninfo)
        with start_server(conninfo) as server:
            make_user(conninfo)
            server.wait_ready()
            with httpx.Client(base_url=server.url, timeout=LONGEST_REQUEST, trust_env=False) as client:
                sign_in(client)
                for page, path in pages.items():
                    if time.monotonic() > until:
                        missing.append(page)
                        continue
                    try:
                        found.append(measure(client, page, path))
                    except httpx.HTTPError as error:
                        missing.append(f"{page} ({type(error).__name__}: {error})")
    return found, missing


def table(results: dict[str, list[Measured]]) -> str:
    """Markdown: a page per line, a database per column. A cell: median time, kB (compressed), elements."""
    rows = list(dict.fromkeys(one.page for found in results.values() for one in found))
    cells = {(name, one.page): one for name, found in results.items() for one in found}
    lines = [f"| page | {' | '.join(results)} |", f"| --- |{' --- |' * len(results)}"]
    for row in rows:
        written = []
        for name in results:
            one = cells.get((name, row))
            written.append("" if one is None else text(one))
        lines.append(f"| {row} | {' | '.join(written)} |")
    return "\n".join(lines)


def text(one: Measured) -> str:
    """A cell: `12 ms, 85 kB (9), 1,203`."""
    return f"{one.ms:.0f} ms, {one.size / 1_000:.0f} kB ({one.compressed / 1_000:.0f}), {one.elements:,}"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line options."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.pages", description="Measure the pages.")
    parser.add_argument("--groups", default=",".join(map(str, SIZES)), help="numbers of groups (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="begin no page later (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--screen", action="store_true", help="also what Chromium shows, and when")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Measure; returns the exit status: 1 if something could not be measured."""
    given = parse(arguments)
    until = time.monotonic() + given.seconds
    load = os.getloadavg()[0]
    results: dict[str, list[Measured]] = {}
    left_out: dict[str, list[str]] = {}
    for groups in [int(size) for size in given.groups.split(",")]:
        name = f"{groups:,} groups"
        results[name], left_out[name] = run(partial(fill_all, groups=groups), PAGES, until)
    name = f"{HUGE_MEMBERS:,} members, {HUGE_PARTITIONS:,} partitions"
    results[name], left_out[name] = run(fill_huge, HUGE_PAGES, until)
    print(table(results), flush=True)
    shown: list[Seen] = seen() if given.screen and time.monotonic() < until else []
    for one in shown:
        print(f"\n{one.what}: {one.seconds:.2f} s (median of {one.of}, at most {one.most:.2f} s)")
    missing = {size: pages for size, pages in left_out.items() if pages}
    for size, pages in missing.items():
        print(f"\nNot measured with {size}: {', '.join(pages)}", file=sys.stderr)
    if given.json:
        figures = {size: [asdict(one) for one in found] for size, found in results.items()}
        machine = {"cores": os.cpu_count(), "load_before": round(load, 2)}
        screen = [asdict(one) for one in shown]
        everything = {"machine": machine, "pages": figures, "screen": screen, "missing": missing}
        given.json.write_text(json.dumps(everything, indent=1) + "\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
