"""The page of a topic: partitions with watermarks, groups with lag, the heat map, and what it reads of very many."""

from __future__ import annotations

import re

import psycopg
import pytest
from django.test import Client

from frontend.pages.topics.topic import GROUP_ROWS, GROUPS, LEGEND, PARTITIONS, READERS, Cell, TopicPartition, heat
from frontend.ui.states import level
from kcoord.database.sql import queries
from tests.conftest import START_MS
from tests.frontend.item_seed import queue
from tests.frontend.seed import Seed, now_ms, working_group
from tests.frontend.viewers import ALL
from tests.support.database import cloned_database
from tests.support.plans import executed_plan


def plain(client: Client, address: str) -> str:
    """The text of the page below its head."""
    answer = client.get(address)
    assert answer.status_code == 200
    page = answer.content.decode()
    return " ".join(re.sub(r"<[^>]+>", " ", page[page.index("<main") :]).split())


@pytest.mark.parametrize(("lag", "expected"), [(0, 0), (1, 1), (100, 1), (101, 2), (10_001, 3), (1_000_001, 4)])
def test_levels(lag: int, expected: int) -> None:
    assert level(lag) == expected


@pytest.mark.parametrize(
    ("cell", "end", "text", "look", "says"),
    [
        (None, 100, "·", "blank", "neither owned nor committed"),
        (Cell(1, 3, 40, "m"), 100, "60", "h1", "60 behind, owned by m"),
        (Cell(1, 3, 40, None), 100, "60", "h1 loose", "60 behind, nobody owns it"),
        (Cell(1, 3, 140, "m"), 100, "0", "h0", "0 behind"),
        (Cell(1, 3, 1, "m"), 2_000_012, "2 M", "h4", "2,000,002 behind"),
        (Cell(1, 3, None, "m"), 100, "○", "new", "owned by m, nothing committed"),
        (Cell(1, 3, 5, "m"), None, "?", "hidden", "watermark unknown"),
    ],
)
def test_a_cell_has_a_number_a_look_and_words(
    cell: Cell | None, end: int | None, text: str, look: str, says: str
) -> None:
    start = None if end is None else 10
    found = heat(TopicPartition(3, start, end, None), cell)
    assert (found.text, found.look) == (text, look)
    assert says in found.title
    assert set(look.split()) <= {name for name, _, _ in LEGEND}


def test_partitions_groups_and_map(person: Client, seed: Seed) -> None:
    working_group(seed)
    seed.topic("orders", 13, [11_000] * 12)
    seed.commit(seed.group("nightly.v2", "Empty"), {("orders", 0): 1})
    page = plain(person, "/topics/orders")
    assert "Groups 2" in page
    assert "12 of 13" in page
    assert 'class="heat-head">12</th>' in person.get("/topics/orders").content.decode(), (
        "the head of a column of the map"
    )
    assert "12 – – – never reported nobody" in page
    assert "11 0 11,000 4 s ago" in page or "11 0 11,000" in page
    assert re.search(r"billing Stable [\d,]+ – 12 of 13 600 563 ", page), page
    assert re.search(r"nightly\.v2 Empty [\d,]+ – 0 of 13 10 k · ·", page), page
    assert '/topics/orders"' in person.get("/topics").content.decode()
    assert person.get("/topics/no.such-topic").status_code == 404
    assert person.get("/topics/orders?partition=x").status_code == 400


def test_ten_thousand_partitions_and_a_thousand_groups_come_in_pages(person: Client, seed: Seed) -> None:
    seed.topic("wide", 10_000, [5] * 200)
    seed.many_groups(1_000)
    seed.connection.execute(
        "insert into offsets_topiclag (group_id, topic, at, lag, max_lag, time_lag_ms, committed_offsets,"
        " log_end_offsets, partitions, unknown_partitions)"
        " select id, 'wide', 1, id % 700, 1, null, 0, 0, 1, 0 from groups_group"
    )
    answer = person.get("/topics/wide")
    page = answer.content.decode()
    assert page.count('class="heat blank" title') == GROUPS * PARTITIONS
    assert len(page) < 400_000
    assert "1 to 20 of 1,000" in page
    assert "partitions 0 to 49 of 10,000" in page
    lags = [int(lag) for lag in re.findall(r'<td class="num"><span title="[^"]+">(\d+)<', page)]
    assert lags == sorted(lags, reverse=True)
    assert lags[0] == 699
    last = plain(person, "/topics/wide?partition=9990&skip=980")
    assert "981 to 1,000 of 1,000" in last
    assert "partitions 9,990 to 9,999 of 10,000" in last
    assert "no partition of that number" in plain(person, "/topics/wide?partition=10000")
    assert "no further groups" in plain(person, "/topics/wide?skip=5000")


@pytest.mark.parametrize("generic", [False, True], ids=["these values", "any values"])
@pytest.mark.whole("writes many rows to see that what is read is bounded")
def test_groups_of_a_topic_are_found_beside_those_of_others(postgres: str, generic: bool) -> None:
    with cloned_database(postgres) as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
        Seed(connection).many_groups(20_000)
        connection.execute(
            "insert into offsets_topiclag (group_id, topic, at, lag, max_lag, time_lag_ms, committed_offsets,"
            " log_end_offsets, partitions, unknown_partitions)"
            " select id, 't' || id %% 1000, %s, id, 1, null, 0, 0, 1, 0 from groups_group",
            [START_MS],
        )
        connection.execute(b"vacuum analyze offsets_topiclag, groups_group")
        parameters = {"topic": "t7", "rows": GROUP_ROWS, "limit": GROUPS, "skip": 0, **ALL.with_groups()}
        plan = executed_plan(connection, queries("frontend").topic_groups, parameters, generic=generic)
        assert "offsets_topiclag_by_topic" in plan, plan
        assert not re.search(r"Seq Scan on (offsets_topiclag|groups_group)", plan), plan


def test_the_lag_of_a_group_is_the_sum_of_the_cells_beside_it(person: Client, seed: Seed) -> None:
    """And not that of an older sample."""
    seed.topic("orders", 3, [100, 100, 100])
    group = seed.group("billing", "Empty")
    seed.commit(group, {("orders", 0): 60, ("orders", 1): 100})
    seed.connection.execute(
        "insert into offsets_topiclag (group_id, topic, at, lag, max_lag, time_lag_ms, committed_offsets,"
        " log_end_offsets, partitions, unknown_partitions) values (%s, 'orders', 1, 7777, 7777, 5, 0, 0, 2, 0)",
        [group],
    )
    page = person.get("/topics/orders").content.decode()
    assert "7,777" not in page
    assert "<span>40</span>" in page


def test_the_lag_of_a_topic_with_undrawn_partitions_says_of_when_it_is(person: Client, seed: Seed) -> None:
    seed.topic("orders", 60, [100] * 60)
    group = seed.group("billing", "Empty")
    seed.commit(group, {("orders", 0): 60})
    seed.connection.execute(
        "insert into offsets_topiclag (group_id, topic, at, lag, max_lag, time_lag_ms, committed_offsets,"
        " log_end_offsets, partitions, unknown_partitions) values (%s, 'orders', %s, 7777, 7777, 5, 0, 0, 2, 0)",
        [group, now_ms() - 120_000],
    )
    page = person.get("/topics/orders").content.decode()
    cell = page[page.index("7,777") :][:200]
    assert "2 min ago" in cell


def test_a_share_group_has_items_in_its_cells(person: Client, seed: Seed) -> None:
    queue(seed)
    page = person.get("/topics/entries").content.decode()
    assert "partition 0: 57 behind: 44 ready, 4 of them again, 13 acquired" in page
    assert "partition 1: 0 behind: 0 ready, 0 acquired" in page
    assert "partition 2: nobody has said where it ends, or it has not begun" in page
    assert "Members of a share group share partitions" in page


def cells(page: str) -> list[list[str]]:
    """The table of partitions as text."""
    table = page[page.index("topic-partitions") :].partition("</table>")[0]
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table.partition("<tbody>")[2], re.DOTALL)
    return [
        [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in re.split(r"</t[hd]>", row)[:-1]] for row in rows
    ]


def test_each_partition_names_its_owners_with_links_and_what_they_have_read(person: Client, seed: Seed) -> None:
    members = working_group(seed, workers=2, partitions=2)
    seed.topic("orders", 3, [11_000, 11_000])
    seed.commit(seed.group("nightly.v2", "Empty"), {("orders", 0): 1})
    page = person.get("/topics/orders").content.decode()
    first, second, third, fourth = cells(page)
    assert first[0] == "Partition 0"
    assert first[5:] == ["billing", "billing@10.0.0.1", "10,400", "600"]
    assert second == ["nightly.v2", "none", "1", "10,999"]
    assert third[5:] == ["billing", "billing@10.0.0.2", "10,437", "563"]
    assert fourth[0] == "Partition 2"
    assert fourth[-1] == "nobody"
    assert f'href="/groups/billing/members/{members[0]}"' in page
    assert '2 <span class="sub">of 3</span>' in page


def test_many_groups_on_a_partition_are_counted(person: Client, seed: Seed) -> None:
    seed.topic("orders", 1, [10])
    for number in range(READERS + 4):
        seed.commit(seed.group(f"g{number}", "Empty"), {("orders", 0): number})
    rows = cells(person.get("/topics/orders").content.decode())
    assert len(rows) == READERS
    assert rows[-1][0].endswith("+4")


def test_who_reads_a_partition_is_said_of_the_groups_of_the_page(person: Client, seed: Seed) -> None:
    seed.topic("orders", 1, [10])
    for number in range(GROUPS + 1):
        seed.commit(seed.group(f"g{number:02}", "Empty"), {("orders", 0): number})
    page = person.get("/topics/orders").content.decode()
    assert "with the groups above, 1 to 20 of 21 groups" in page
    beyond = person.get("/topics/orders?skip=40").content.decode()
    assert cells(beyond)[0][-1] == "none of the groups above"


def test_what_is_written_is_a_rate_and_a_plot_with_gaps_where_nobody_reported(person: Client, seed: Seed) -> None:
    seed.topic("orders", 3, [1_000, 1_000])
    ends = {0: [100 * n for n in range(60)], 1: [7] * 20 + [None] * 20 + [7 + 30 * n for n in range(20)]}
    seed.reported("orders", ends)
    page = person.get("/topics/orders").content.decode()
    rows = cells(page)
    assert [row[3] for row in rows] == ["100", "30", "–"]
    assert "last hour, 2 of 3 partitions" in page
    chart = page[page.index('id="growth-chart"') :].partition("</figure>")[0]
    assert chart.partition('class="chart-line')[2].count("M") == 2, "a gap in the middle"
    assert re.search(r"Records written per minute, times in UTC: from 100 to 130, at most 130", page), page


def test_what_is_written_is_unknown_without_reports(person: Client, seed: Seed) -> None:
    seed.topic("orders", 1, [1_000])
    page = person.get("/topics/orders").content.decode()
    assert "Unknown: where its logs end was reported less than twice in the last hour." in page
    assert [row[3] for row in cells(page)] == ["–"]


@pytest.mark.parametrize("generic", [False, True], ids=["these values", "any values"])
def test_ends_are_looked_up_and_not_searched(seed: Seed, generic: bool) -> None:
    for name in ("orders", "others"):
        seed.topic(name, PARTITIONS, [1] * PARTITIONS)
    seed.connection.execute(
        "insert into offsets_watermarksample (topic_id, partition, at, until, log_start_offset, log_end_offset)"
        " select t.id, p, n * 60000, n * 60000, 0, n from groups_topic t, generate_series(0, 49) p,"
        " generate_series(0, 199) n"
    )
    seed.connection.execute("analyze offsets_watermarksample")
    (pk,) = seed.connection.execute("select id from groups_topic where name = 'orders'").fetchone()
    asked = {
        "pk": pk, "partitions": list(range(PARTITIONS)), "first": 3_000_000, "step_ms": 60_000, "steps": 60,
        "old_ms": 300_000,
    }  # fmt: skip
    plan = executed_plan(seed.connection, queries("frontend").topic_ends, asked, generic=generic)
    assert "Seq Scan" not in plan, plan
    read = [float(rows) * int(loops) for rows, loops in re.findall(r"watermarksample.*rows=([\d.]+) loops=(\d+)", plan)]
    assert 0 < sum(read) <= 2 * PARTITIONS * 61, plan
