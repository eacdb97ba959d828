"""The list of topics: every order both ways and back again, and the lag over all groups."""

from __future__ import annotations

import csv
import io
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from frontend.pages.topics.topics import BY_NAME, COLUMNS, OF_ALL_GROUPS, PAGE_SIZE, SORTS, TopicList, TopicSort, Wanted
from frontend.pages.topics.topics import listed_topics as topic_list
from kcoord.database.pool import Database
from tests.frontend.seed import Seed, now_ms
from tests.frontend.viewers import ALL, allow, viewer

KEYS = {
    "name": "name",
    "partitions": "partitions",
    "created": "created_at",
    "lag": "(select coalesce(max(lag), -1) from offsets_topictotal l where l.topic = name)",
    "time_lag": "(select coalesce(max(coalesce(time_lag_at_least_ms, time_lag_ms)), -1)"
    " from offsets_topictotal l where l.topic = name)",
}


def total(seed: Seed, topic: str, lag: int | None, *, worst: int | None = None, groups: int = 1, ms: int = 0) -> None:
    """A topic over all groups, as the sampler stores it."""
    seed.connection.execute(
        "insert into offsets_topictotal (topic, at, groups, lag, worst_group_id, worst_lag, time_lag_ms)"
        " values (%s, %s, %s, %s, %s, %s, %s)",
        [topic, now_ms(), groups, lag, worst, lag, None if lag is None else ms],
    )


def lag(seed: Seed, group: int, topic: str, behind: int | None, ms: int = 0) -> None:
    """A group on a topic, as the sampler stores it."""
    seed.connection.execute(
        "insert into offsets_topiclag (group_id, topic, at, lag, time_lag_ms, committed_offsets, partitions,"
        " unknown_partitions) values (%s, %s, %s, %s, %s, 0, 1, 0)",
        [group, topic, now_ms(), behind, None if behind is None else ms],
    )


@pytest.mark.parametrize("sort", list(TopicSort))
async def test_pages_show_every_topic_once_in_order_and_back_again(seed: Seed, db: Database, sort: TopicSort) -> None:
    for number in range(2 * PAGE_SIZE + 7):
        seed.topic(f"topic-{number:03}", 1 + number % 4)
        if number % 5:
            total(seed, f"topic-{number:03}", number % 7, ms=number % 3)
    seed.connection.execute("update groups_topic set created_at = 1700000000000 where id % 3 = 0")
    down = " desc" if sort.descends else ""
    named = down if sort in BY_NAME else ""
    key = KEYS[sort.value.removeprefix("-")]
    order = f"select name from groups_topic order by {key}{down}, name{named}"
    expected = [row[0] for row in seed.connection.execute(order.encode())]
    pages: list[TopicList] = [await topic_list(db, ALL, Wanted(sort=sort))]
    while pages[-1].next is not None:
        pages.append(await topic_list(db, ALL, Wanted(sort=sort, after=pages[-1].next)))
    assert [topic.name for page in pages for topic in page.topics] == expected
    assert [len(page.topics) for page in pages] == [50, 50, 7]
    assert pages[0].previous is None
    assert pages[0].total == 107
    back = await topic_list(db, ALL, Wanted(sort=sort, before=pages[2].previous))
    assert [topic.name for topic in back.topics] == expected[50:100]
    first = await topic_list(db, ALL, Wanted(sort=sort, before=back.previous))
    assert [topic.name for topic in first.topics] == expected[:50]
    assert first.previous is None
    assert first.next == pages[0].next


async def test_who_reads_a_topic_and_its_watermarks(seed: Seed, db: Database) -> None:
    seed.topic("orders", 4, [10, 20])
    seed.topic("other", 4)
    for name in ("g2", "g1"):
        seed.assign(seed.group(name), {("orders", partition): "m" for partition in range(4)})
    seed.commit(seed.group("idle", "Empty"), {("orders", 3): 1})
    found = await topic_list(db, ALL, Wanted("ORD"))
    assert (found.total, [topic.name for topic in found.topics]) == (1, ["orders"])
    assert found.topics[0].groups == ["g1", "g2"]
    assert found.topics[0].committed == ["idle"]
    assert found.topics[0].watermarks == 2
    assert found.topics[0].sampled_at is not None


def test_every_order_has_a_name_and_a_head() -> None:
    assert {sort for sort, _ in SORTS} == set(TopicSort)
    assert {sort for column in COLUMNS for sort in (column.first, column.second) if sort} == set(TopicSort)


def test_the_lag_over_all_groups_and_the_one_furthest_behind(person: Client, seed: Seed) -> None:
    for name in ("orders", "refunds", "unknown", "unread"):
        seed.topic(name, 2)
    worst = seed.group("far/behind", "Empty")
    total(seed, "orders", 12_345, worst=worst, groups=40, ms=7_200_000)
    total(seed, "refunds", 0, worst=worst, groups=2)
    total(seed, "unknown", None)
    page = person.get("/topics?sort=-lag").content.decode()
    assert re.findall(r'row-link" href="[^"]*">([^<]*)', page) == ["orders", "refunds", "unknown", "unread"]
    cells = re.findall(r'<td data-label="Lag" class="num">(.*?)</td>', page)
    assert [re.sub("<[^>]+>", "", cell).split() for cell in cells] == [
        ["12,345", "far/behind", "12,345"],
        ["0"],
        ["–"],
        ["–"],
    ]
    assert 'href="/groups/far%2Fbehind">far/behind</a>' in cells[0]
    assert ">2 h</span>" in page
    assert "+39" not in page, "none of the 40 is named"
    assert "+40</span>" in page
    lines = list(csv.DictReader(io.StringIO(b"".join(person.get("/topics.csv?sort=-lag")).decode())))
    assert [(line["topic"], line["groups"], line["lag"], line["worst_group"]) for line in lines] == [
        ("orders", "40", "12345", "far/behind"),
        ("refunds", "2", "0", "far/behind"),
        ("unknown", "1", "", ""),
        ("unread", "0", "", ""),
    ]


@pytest.mark.parametrize("sees", ["describe:group:*", "describe:group:b*"])
def test_a_time_lag_older_than_the_samples_is_at_least_that_on_every_page(
    client: Client, seed: Seed, sees: str, django_user_model: Any
) -> None:
    user = django_user_model.objects.create_user("lea")
    allow(user, sees, "describe:topic:*")
    client.force_login(user)
    for name in ("orders", "stock"):
        seed.topic(name, 1, [200])
    pk, known = seed.group("billing"), seed.group("basic")
    seed.commit(pk, {("orders", 0): 50, ("stock", 0): 50})
    seed.commit(known, {("orders", 0): 150})
    lag(seed, known, "orders", 50, 90_000)
    now = now_ms()
    for topic, exact, least in (("orders", None, 7_200_000), ("stock", 5_000, None)):
        lag(seed, pk, topic, 150)
        late = {"at": now, "exact": exact, "least": least, "pk": pk, "topic": topic}
        seed.connection.execute(
            "update offsets_topiclag set at = %(at)s, time_lag_ms = %(exact)s, time_lag_at_least_ms = %(least)s"
            " where group_id = %(pk)s and topic = %(topic)s",
            late,
        )
        seed.connection.execute(
            "insert into offsets_lagsample values ('billing', %(topic)s, %(at)s, 150, %(exact)s)", late
        )
    total(seed, "orders", 200, ms=90_000, groups=2)
    total(seed, "stock", 150, ms=5_000)
    seed.connection.execute("update offsets_topictotal set time_lag_at_least_ms = 7200000 where topic = 'orders'")
    older = "the next record is older than the samples"
    topics = client.get("/topics?sort=-time_lag" if sees.endswith(":*") else "/topics").content.decode()
    assert re.findall(r'older than the samples">([^<]*)<', topics) == ["≥ 2 h"]
    assert topics.index(">orders<") < topics.index(">stock<")
    for address in ("/topics/orders", "/groups/billing", "/groups/billing/lag.csv"):
        page = client.get(address)
        said = b"".join(page.streaming_content).decode() if page.streaming else page.content.decode()
        assert f'{older}">≥ 2 h<' in said or "time_lag_at_least_ms" in said, address
    assert re.search(r"by the last samples\">≥ 2 h behind<", client.get("/groups/billing").content.decode())
    for address, expected in (
        ("/topics.csv", {"orders": ("90000", "7200000"), "stock": ("5000", "")}),
        ("/topics/orders/groups.csv", {"billing": ("", "7200000"), "basic": ("90000", "")}),
    ):
        rows = csv.DictReader(io.StringIO(b"".join(client.get(address).streaming_content).decode()))
        found = {
            row.get("group_id") or row.get("topic"): (row["time_lag_ms"], row["time_lag_at_least_ms"]) for row in rows
        }
        assert found == expected


def test_the_lag_over_the_groups_that_can_be_seen(client: Client, seed: Seed) -> None:
    from django.contrib.auth import get_user_model

    seed.topic("orders", 2)
    for name, behind in (("a1", 5), ("a2", 30), ("a3", None), ("secret", 1_000)):
        lag(seed, seed.group(name), "orders", behind, ms=60_000)
    total(seed, "orders", 1_035, groups=4)
    user = get_user_model().objects.create_user("sam")
    allow(user, "describe:group:a*", "describe:topic:*")
    client.force_login(user)
    page = client.get("/topics").content.decode()
    (cell,) = re.findall(r'<td data-label="Lag" class="num">(.*?)</td>', page)
    assert re.sub("<[^>]+>", "", cell).split() == ["35", "a2", "30"]
    assert "sort=-lag" not in unescape(page)
    assert "sort=-partitions" in unescape(page)
    for sort in OF_ALL_GROUPS:
        assert client.get(f"/topics?sort={sort.value}").status_code == 403


async def test_deleted_groups_are_not_named(seed: Seed, db: Database) -> None:
    seed.topic("orders", 1)
    total(seed, "orders", 7, worst=4_711)
    for who in (ALL, viewer("describe:group:x", "describe:topic:*")):
        found = await topic_list(db, who, Wanted())
        assert all(one.worst_group is None for one in found.totals.values())


def test_a_cursor_of_another_order_is_refused(person: Client, seed: Seed) -> None:
    for number in range(60):
        seed.topic(f"topic-{number}", 1)
    link = re.search(r'rel="next" href="([^"]+)"', person.get("/topics?sort=-partitions").content.decode())
    assert link is not None
    following = unescape(link[1])
    assert person.get(following).status_code == 200
    assert person.get(following.replace("sort=-partitions", "sort=partitions")).status_code == 400
