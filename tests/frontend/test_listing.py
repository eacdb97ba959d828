"""The list of groups: every order both ways and back again, filters, columns, and what a page costs."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from html import unescape

import pytest
from django.test import Client
from psycopg.types.json import Jsonb

from frontend.pages.groups.reads import DRAWN_TOPICS, PAGE_SIZE, GroupList, Wanted, group_list
from frontend.pages.groups.saved import COLUMNS, NAMES, SORTS, USUAL
from groups.core.model.group import partition_of
from groups.core.model.types import GroupState
from groups.readmodel import GroupFilter, GroupSort
from kcoord.database.paging import Visible
from kcoord.database.pool import Database
from kcoord.database.sql import queries
from offsets.group_list import GroupFinder
from offsets.group_orders import ORDERS, Position
from tests.frontend.node_seed import node, own
from tests.frontend.seed import Seed, member_id, now_ms, working_group
from tests.frontend.verdict_seed import judged, verdict
from tests.frontend.viewers import ALL, allow

Q = queries("offsets")

KEYS = {
    GroupSort.GROUP_ID: "group_id",
    GroupSort.UPDATED_ASCENDING: "updated_at",
    GroupSort.STATE: "state",
    GroupSort.STATE_SINCE: "state_since",
    GroupSort.MEMBERS: "(select count(*) from groups_member m where m.group_id = g.id)",
    GroupSort.GENERATION: "generation_id",
    GroupSort.LAG: "(select coalesce(max(lag), -1) from offsets_grouplag l where l.group_id = g.id)",
    GroupSort.PARTITIONS: "(select coalesce(max(partitions), -1) from offsets_grouplag l where l.group_id = g.id)",
    GroupSort.COORDINATOR: "(select coalesce(max(n.node_id), '') from groups_coordinatorpartition p"
    " join groups_coordinatornode n on n.id = p.owner_id where p.partition = g.partition)",
    GroupSort.OWNER: "(select coalesce(nullif(labels ->> 'owner', ''), labels ->> 'team')"
    " from groups_grouplabels l where l.group_name = g.group_id)",
    GroupSort.SEVERITY: "(select coalesce(min(array_position(array['uncovered', 'stuck', 'late', 'stale'],"
    " kind::text)), 9) from offsets_groupverdict v where v.group_id = g.id)",
    GroupSort.TIME_LAG: "(select coalesce(max(coalesce(time_lag_ms, time_lag_at_least_ms)), -1)"
    " from offsets_grouplag l where l.group_id = g.id)",
}


async def all_pages(db: Database, wanted: Wanted) -> list[GroupList]:
    """Walk forward to the last page."""
    pages = [await group_list(db, ALL, wanted)]
    while pages[-1].next is not None:
        pages.append(await group_list(db, ALL, Wanted(wanted.groups, wanted.sort, after=pages[-1].next)))
    return pages


@pytest.mark.parametrize("sort", list(GroupSort))
async def test_pages_show_every_group_once_in_order_and_back_again(seed: Seed, db: Database, sort: GroupSort) -> None:
    seed.many_groups(2 * PAGE_SIZE + 7)
    ties = "updated_at = 1700000000000, state_since = 1700000000000"
    seed.connection.execute(f"update groups_group set {ties} where id % 3 = 0".encode())
    seed.connection.execute(
        "insert into offsets_grouplag (group_id, at, lag, time_lag_ms, partitions)"
        " select id, 0, id % 7, nullif(id % 5, 0), nullif(id % 6, 0) from groups_group where id % 3 > 0"
    )
    seed.connection.execute("update groups_group set partition = id % 9")
    own(seed, {1: node(seed, "node-b"), 2: node(seed, "node-a"), 3: None})
    seed.connection.execute(
        "insert into groups_grouplabels (group_name, labels, updated_at, updated_by)"
        " select group_id, jsonb_build_object('team', 't' || id % 5, 'owner',"
        " (array['', 'Zoë', 'ann', 'z'])[id % 4 + 1])"
        " - (case when id % 8 = 1 then 'owner' else '' end) - (case when id % 6 = 0 then 'team' else '' end), 0, ''"
        " from groups_group where id % 7 > 1"
    )
    for pk in range(1, 70):
        for kind in ("stale", "late", "uncovered", "stuck")[pk % 3 : pk % 5]:
            verdict(seed, pk, kind, "orders")
    for pk in range(1, 20):
        seed.members(pk, [member_id(str(pk), number) for number in range(pk % 4)])
    name = sort.value.removeprefix("-")
    key = next(key for known, key in KEYS.items() if known.value.removeprefix("-") == name)
    down = " desc nulls last" if sort.value.startswith("-") else ""
    order = f"select group_id from groups_group g order by {key}{down}, group_id{down if name == 'group_id' else ''}"
    expected = [row[0] for row in seed.connection.execute(order.encode())]
    pages = await all_pages(db, Wanted(sort=sort))
    assert [group.group_id for page in pages for group in page.groups] == expected
    assert [len(page.groups) for page in pages] == [50, 50, 7]
    assert pages[0].previous is None
    back = await group_list(db, ALL, Wanted(sort=sort, before=pages[2].previous))
    assert [group.group_id for group in back.groups] == expected[50:100]
    first = await group_list(db, ALL, Wanted(sort=sort, before=back.previous))
    assert [group.group_id for group in first.groups] == expected[:50]
    assert first.previous is None
    assert first.next == pages[0].next


async def test_a_page_goes_on_although_its_edge_was_deleted(seed: Seed, db: Database) -> None:
    seed.many_groups(60)
    first = await group_list(db, ALL, Wanted())
    assert first.next is not None
    seed.connection.execute("delete from groups_group where group_id = %s", [first.groups[-1].group_id])
    second = await group_list(db, ALL, Wanted(after=first.next))
    assert len(second.groups) == 10


async def test_search_takes_every_character_literally_and_ignores_case(seed: Seed, db: Database) -> None:
    for name in ("100%_Sure", "100xySure", "back\\slash", "Ünïcode"):
        seed.group(name)
    for q, found in (("%_s", "100%_Sure"), ("\\", "back\\slash"), ("ünï", "Ünïcode")):
        page = await group_list(db, ALL, Wanted(GroupFilter(q=q)))
        assert [group.group_id for group in page.groups] == [found]


async def test_counts_follow_the_search_but_not_the_chosen_states(seed: Seed, db: Database) -> None:
    for number, state in enumerate(GroupState):
        seed.group(f"a-{number}", state.value)
        seed.group(f"b-{number}", state.value)
    page = await group_list(db, ALL, Wanted(GroupFilter(q="a-", states=("Empty", "Dead"))))
    assert {group.state for group in page.groups} == {"Empty", "Dead"}
    assert page.counts == {state.value: 1 for state in GroupState}


async def test_a_line_counts_members_and_names_topics_owned_or_committed(seed: Seed, db: Database) -> None:
    pk = seed.group("g")
    seed.members(pk, [member_id("g", n) for n in range(3)])
    seed.assign(pk, {(topic, p): "m" for topic in ("b", "d") for p in range(20)})
    seed.commit(pk, {(topic, 0): 1 for topic in ("a", "b", "c")})
    page = await group_list(db, ALL, Wanted())
    assert page.groups[0].members == 3
    assert page.groups[0].topics == ["a", "b", "c", "d"]


def names(client: Client, query: str) -> list[str]:
    """Group ids of a page of the list."""
    page = client.get(f"/groups?{query}").content.decode()
    return [unescape(name) for name in re.findall(r'<a class="row-link"[^>]*>([^<]*)</a>', page)]


def test_filters_by_members_and_by_a_regular_expression(person: Client, seed: Seed) -> None:
    working_group(seed)
    working_group(seed, "ledger.eu")
    seed.group("idle", "Empty")
    seed.group_lag(seed.group("late", "Empty"), 5, 90_000)
    for query, expected in (
        ("client=ledg", ["ledger.eu"]),
        ("host=10.0.0.", ["billing", "ledger.eu"]),
        ("host=10.0.0.1&client=bill", ["billing"]),
        ("host=nowhere", []),
        (r"regex=^[a-r]%2B\.eu$", ["ledger.eu"]),
        ("regex=^l&client=ledger", ["ledger.eu"]),
        ("min_time_lag=90", ["late"]),
        ("min_time_lag=91", []),
    ):
        assert names(person, query) == expected, query
    said = person.get("/groups?client=x&host=y&regex=z&min_time_lag=91").content.decode()
    assert "No group has an id that matches z, and a member with “x” in its client id and “y” in its host," in said
    assert '<details class="more-filters" id="more-filters" open>' in said


def test_filters_by_what_assigns_and_by_the_coordinator(person: Client, seed: Seed) -> None:
    seed.group("classic", protocol="cooperative-sticky")
    seed.group("undecided", "Empty", protocol=None)
    for name in ("asks", "ties", "default", "configured", "unknown"):
        pk = seed.consumer_group(name, "Stable", epoch=1, assignment_epoch=1)
        asked = {"asks": ("range", "range", "uniform"), "ties": ("range", "uniform"), "unknown": ("gone",)}
        for number, assignor in enumerate(asked.get(name, (None,))):
            seed.consumer_member(pk, f"{name}-{number}", epoch=1)
            seed.connection.execute(
                "update groups_consumermember set server_assignor = %s where member_id = %s",
                [assignor, f"{name}-{number}"],
            )
    seed.connection.execute(
        "insert into groups_groupconfigoverride (group_name, name, value, updated_at, updated_by)"
        " values ('configured', 'consumer.assignor', 'range', 0, 'mara')"
    )
    nodes = [node(seed, "node-1"), node(seed, "node-2", lease_ms=0)]
    own(seed, {partition: nodes[partition % 2] for partition in range(50)})
    for (name,) in seed.connection.execute("select group_id from groups_group").fetchall():
        partition = [partition_of(name, 50), name]
        seed.connection.execute("update groups_group set partition = %s where group_id = %s", partition)
    for query, expected in (
        ("assignor=STICKY", ["classic"]),
        ("assignor=range", ["asks", "configured"]),
        ("assignor=uniform", ["default", "ties", "unknown"]),
        ("assignor=uniform&q=t", ["default", "ties"]),
        ("assignor=none", []),
        ("coordinator=node-1", sorted(name for name in EACH if partition_of(name, 50) % 2 == 0)),
        ("coordinator=node", []),
    ):
        assert names(person, query) == expected, query
    said = person.get("/groups?assignor=x&coordinator=node-9").content.decode()
    assert "No group has an assignor with “x” in its name, and the coordinator node-9." in said
    lines = csv.DictReader(io.StringIO(b"".join(person.get("/groups.csv")).decode()))
    told = {line["group_id"]: (line["assignor"], line["coordinator"]) for line in lines}
    alive = {name: "node-1" if partition_of(name, 50) % 2 == 0 else "" for name in EACH}
    assigned = ("range", "cooperative-sticky", "range", "uniform", "uniform", "", "uniform")
    assert told == {name: (one, alive[name]) for name, one in zip(EACH, assigned, strict=True)}
    page = person.get("/groups?columns=type.coordinator").content.decode()
    assert page.count(">node-1</td>") == list(alive.values()).count("node-1")
    assert '<span class="faint">cooperative-sticky</span>' in page


def test_a_node_that_has_ended_or_expired_coordinates_nothing(person: Client, seed: Seed) -> None:
    """By one rule for the filter, the order and the column."""
    nodes = [
        node(seed, "node-c"),
        node(seed, "node-a", ended_ms_ago=1_000, reason="stopped"),
        node(seed, "node-b", lease_ms=0),
        node(seed, "node-a2"),
    ]
    own(seed, dict(enumerate(nodes)))
    placed = {}
    for number in range(20):
        name = f"g-{number:02d}"
        seed.group(name)
        partition = partition_of(name, 50) % 4
        placed[name] = partition
        seed.connection.execute("update groups_group set partition = %s where group_id = %s", [partition, name])
    assert set(placed.values()) == {0, 1, 2, 3}
    for node_id, partitions in (("node-c", {0}), ("node-a", set()), ("node-b", set()), ("node-a2", {3})):
        expected = [name for name in placed if placed[name] in partitions]
        assert names(person, f"coordinator={node_id}") == expected, node_id
    rank = {0: 2, 1: 0, 2: 0, 3: 1}
    assert names(person, "sort=coordinator") == sorted(placed, key=lambda name: (rank[placed[name]], name))
    assert names(person, "sort=-coordinator") == sorted(placed, key=lambda name: (-rank[placed[name]], name))


EACH = ("asks", "classic", "configured", "default", "ties", "undecided", "unknown")


def test_partitions_are_counted_as_far_as_they_can_be_seen(person: Client, client: Client, seed: Seed) -> None:
    from django.contrib.auth import get_user_model

    pk = seed.group("billing")
    seed.assign(pk, {(topic, partition): "m" for topic in ("orders", "secret") for partition in range(3)})
    seed.commit(pk, {("orders", 2): 5, ("orders", 7): 5})
    seed.connection.execute(
        "insert into offsets_grouplag (group_id, at, lag, partitions) values (%s, 1, 4, 1234)", [pk]
    )
    cell = r'data-label="Partitions" class="num"><span([^>]*)>([\d,]*)</span>'
    (whole,) = re.findall(cell, person.get("/groups?columns=partitions").content.decode())
    assert whole == (' title="As of 1970-01-01 00:00:00.001 UTC"', "1,234")
    user = get_user_model().objects.create_user("sam")
    allow(user, "describe:group:*", "describe:topic:orders")
    client.force_login(user)
    page = client.get("/groups?columns=partitions").content.decode()
    ((title, partitions),) = re.findall(cell, page)
    assert partitions == "4"
    assert "As of" not in title, "counted now"
    assert heads(page)["Partitions"] == ("", "")
    refused = client.get("/groups?sort=-partitions")
    assert refused.status_code == 403
    assert "by their partitions" in refused.content.decode()


def test_a_broken_regular_expression_can_be_mended_where_it_stands(person: Client, seed: Seed) -> None:
    seed.group("billing")
    page = person.get("/groups?regex=(&q=b").content.decode()
    assert "The regular expression cannot be used: RE2 cannot read it: missing )" in page
    assert re.search(r'<input[^>]*name="regex"[^>]*value="\("[^>]*aria-invalid="true"', page)


def heads(page: str) -> dict[str, tuple[str, str]]:
    """Column -> what aria-sort says, and where its head leads."""
    found = re.findall(r'<th scope="col"([^>]*)>(?:<a class="sort" href="([^"]*)">)?([^<]+)<', page)
    return {
        label: ((re.search(r'aria-sort="(\w+)"', marks) or ["", ""])[1], unescape(url)) for marks, url, label in found
    }


def test_each_head_sorts_both_ways_and_says_so(person: Client, seed: Seed) -> None:
    seed.many_groups(60)
    every = f"columns={'.'.join(NAMES)}"
    first = heads(person.get(f"/groups?{every}&q=service").content.decode())
    assert first["Group"] == ("", f"/groups?{every}&q=service&sort=group_id")
    assert first["Type"] == ("", "")
    for label, (_, url) in first.items():
        if not url:
            continue
        once = heads(person.get(url).content.decode())
        assert once[label][0] in ("ascending", "descending"), label
        assert [other for other, (sorted_, _) in once.items() if sorted_] == [label]
        twice = heads(person.get(once[label][1]).content.decode())
        assert {once[label][0], twice[label][0]} == {"ascending", "descending"}
        assert twice[label][1].partition("sort=")[2] == url.partition("sort=")[2] or label == "Group"


def test_every_order_has_a_name_and_statements() -> None:
    assert {sort for sort, _ in SORTS} == set(GroupSort) == set(ORDERS)
    offered = {sort for column in COLUMNS for sort in (column.first, column.second) if sort}
    assert offered | {GroupSort.GROUP_ID, GroupSort.GROUP_ID_DESCENDING, GroupSort.SEVERITY} == set(GroupSort)


def test_a_cursor_of_another_order_is_refused(person: Client, seed: Seed) -> None:
    seed.many_groups(60)
    page = person.get("/groups?sort=-lag").content.decode()
    link = re.search(r'rel="next" href="([^"]+)"', page)
    assert link is not None
    following = unescape(link[1])
    assert person.get(following).status_code == 200
    assert person.get(following.replace("sort=-lag", "sort=lag")).status_code == 400


def test_columns_are_chosen_in_the_address(person: Client, seed: Seed) -> None:
    working_group(seed)
    usual = [column.label for column in COLUMNS if column.usual]
    assert list(heads(person.get("/groups").content.decode())) == ["Group", *usual]
    every = person.get("/groups?columns=" + ".".join(NAMES)).content.decode()
    assert list(heads(every)) == ["Group", *(column.label for column in COLUMNS)]
    hidden = next(column for column in COLUMNS if not column.usual)
    assert (
        f'href="/groups?columns={".".join(n for n in NAMES if n in USUAL or n == hidden.name)}"'
        in person.get("/groups").content.decode()
    )
    page = person.get("/groups?columns=lag.state&q=b").content.decode()
    assert list(heads(page)) == ["Group", "State", "Lag"]
    assert '<input type="hidden" name="columns" value="state.lag">' in page
    assert heads(page)["Lag"][1] == "/groups?columns=lag.state&q=b&sort=-lag"
    links = re.findall(r'href="(/groups\?[^"]*)"><span aria-hidden="true">', page)
    assert "/groups?columns=lag&amp;q=b" in links
    assert "/groups?columns=state.members.lag&amp;q=b" in links
    whole = "/groups?columns=" + ".".join(name for name in USUAL if name != "lag")
    assert 'href="/groups"><span aria-hidden="true">' in person.get(whole).content.decode()
    assert list(heads(person.get("/groups?columns=none").content.decode())) == ["Group"]
    assert person.get("/groups?columns=secrets").status_code == 400


def plots(page: str) -> list[tuple[str, int]]:
    """What the plots of a list say, and of how many lines each consists."""
    found = re.findall(r'<svg class="spark"[^>]*aria-label="Last hour: ([^"]+)"><path[^>]*d="([^"]*)"', page)
    return [(said, path.count("M")) for said, path in found]


def test_each_line_draws_the_lag_of_the_last_hour(person: Client, seed: Seed) -> None:
    seed.sampled("behind", {"orders": [700, 9_000, 4_200], "refunds": [10, 10, 10]})
    seed.sampled("level", {"orders": [30]})
    seed.group("unsampled")
    page = person.get("/groups").content.decode()
    assert plots(page) == [("from 710 to 4,210, at most 9,010", 1), ("from 30 to 30, at most 30", 1)]


def test_a_look_that_does_not_know_all_topics_is_a_gap_and_no_fall(person: Client, seed: Seed) -> None:
    pk = seed.sampled("part", {"orders": [100] * 9, "refunds": [50] * 9})
    seed.connection.execute(
        "delete from offsets_lagsample where topic = 'refunds' and at between %s and %s",
        [now_ms() - 31 * 60_000, now_ms() - 14 * 60_000],
    )
    assert plots(person.get("/groups").content.decode()) == [("from 150 to 150, at most 150", 2)]
    seed.connection.execute("delete from offsets_lagsample where topic = 'refunds' and at > %s", [now_ms() - 840_000])
    ((said, lines),) = plots(person.get("/groups").content.decode())
    assert (said[:40], lines) == ("from 150 to 150, at most 150, unknown si", 1)
    seed.connection.execute("delete from offsets_topiclag where group_id = %s and topic = 'refunds'", [pk])
    assert plots(person.get("/groups").content.decode()) == [("from 100 to 100, at most 100", 1)]


def test_a_group_with_too_many_topics_is_not_drawn_and_says_so(person: Client, seed: Seed) -> None:
    seed.sampled("most", {f"t{number}": [1] for number in range(DRAWN_TOPICS)})
    seed.sampled("wide", {f"t{number}": [1] for number in range(DRAWN_TOPICS + 1)})
    most, wide = person.get("/groups").content.decode().split('class="row-link"')[1:]
    assert plots(most) == [("from 50 to 50, at most 50", 1)]
    assert plots(wide) == []
    assert "The last hour is not drawn of more than 50 topics" in wide


def test_hidden_topics_are_not_in_the_plot(seed: Seed, client: Client) -> None:
    from django.contrib.auth import get_user_model

    seed.sampled("behind", {"orders": [700, 4_200], "secret": [0, 1_000_000]})
    user = get_user_model().objects.create_user("sam")
    allow(user, "describe:group:*", "describe:topic:orders")
    client.force_login(user)
    page = client.get("/groups").content.decode()
    assert plots(page) == [("from 700 to 4,200, at most 4,200", 1)]
    assert heads(page)["Time lag"] == ("", ""), "what answers 403 is not offered"
    assert 'name="min_time_lag"' not in page
    assert "time_lag_ms" not in page


def test_a_lag_that_may_be_more_says_so_and_is_sorted_by_what_is_known(person: Client, seed: Seed) -> None:
    seed.sampled("exact", {"orders": [500]})
    seed.sampled("partly", {"orders": [900]}, unknown=2)
    verdict(seed, seed.sampled("stale", {"orders": [700]}), "stale", "orders")
    judged(seed)
    page = person.get("/groups?sort=-lag").content.decode()
    found = re.findall(r'data-label="Lag" class="num"><span title="As of [^,"]*(?:, )?([^"]*)">([^<]*)<', page)
    assert found == [
        ("the end of 2 partitions is not known", "≥ 900"),
        ("new watermarks are missing", "≥ 700"),
        ("", "500"),
    ]


def test_a_time_lag_that_may_be_more_says_so_too(person: Client, seed: Seed) -> None:
    for name, unknown, ms, least in (
        ("exact", 0, 5_000, None),
        ("partly", 2, 9_000, None),
        ("none", 2, None, None),
        ("older", 0, None, 7_200_000),
    ):
        pk = seed.sampled(name, {"orders": [500]}, unknown=unknown)
        seed.connection.execute(
            "update offsets_grouplag set time_lag_ms = %s, time_lag_at_least_ms = %s where group_id = %s",
            [ms, least, pk],
        )
    page = person.get("/groups?sort=-time_lag_ms&columns=time_lag").content.decode()
    found = re.findall(r'data-label="Time lag" class="num nowrap"><span[^>]*title="([^"]*)">([^<]*)<', page)
    assert [text for _, text in found] == ["≥ 2 h", "≥ 9 s", "5 s", "–"]
    assert found[0][0].endswith(", the next record is older than the samples")
    assert found[1][0].endswith(", the end of 2 partitions is not known")
    assert ">older<" in person.get("/groups?min_time_lag=3600").content.decode()
    assert re.search(r">older</a></th><td [^>]*>≥ <span[^>]*>2 h<", person.get("/").content.decode())


def hold(seed: Seed, name: str, ms: int) -> None:
    """An operator holds an empty group until then."""
    pk, until = seed.group(name, "Empty"), now_ms() + ms
    seed.connection.execute("update groups_group set held_until = %s, held_by = 'mara' where id = %s", [until, pk])


def test_groups_that_are_held_are_counted_and_found(person: Client, seed: Seed) -> None:
    hold(seed, "held", 60_000)
    hold(seed, "released", -1)
    working_group(seed)
    page = person.get("/groups").content.decode()
    assert re.search(r'value="Held">\s*<span[^>]*></span>Held\s*<span class="count">1<', page)
    for query, expected in (
        ("state=Held", ["held"]),
        ("state=Held&state=Stable", ["billing", "held"]),
        ("state=Empty", ["held", "released"]),
        ("state=Held&state=Empty", ["held", "released"]),
        ("state=Held&q=rel", []),
    ):
        assert names(person, query) == expected, query
        said = person.get(f"/groups?{query}").content.decode()
        assert f">{len(expected)} group{'' if len(expected) == 1 else 's'} found<" in said, query
    assert "No group has “rel” in its id, and the state Held." in said


async def test_what_needs_attention_comes_first_as_far_as_it_can_be_seen(seed: Seed, db: Database) -> None:
    for name in ("a-well", "b-late", "c-hidden", "d-uncovered"):
        seed.group(name)
    verdict(seed, 2, "late")
    verdict(seed, 3, "uncovered", "secret")
    verdict(seed, 4, "uncovered", "orders")
    verdict(seed, 4, "late")
    whole = await group_list(db, ALL, Wanted())
    assert [group.group_id for group in whole.groups] == ["c-hidden", "d-uncovered", "b-late", "a-well"]
    some = replace(ALL, topics=Visible(("orders",)))
    seen = await group_list(db, some, Wanted())
    assert [group.group_id for group in seen.groups] == ["d-uncovered", "b-late", "a-well", "c-hidden"]
    late = await group_list(db, ALL, Wanted(GroupFilter(verdicts=("late",))))
    assert [group.group_id for group in late.groups] == ["d-uncovered", "b-late"]


def test_labels_of_the_page_lead_to_the_groups_that_have_them(person: Client, seed: Seed) -> None:
    for name, labels in (
        ("a", {"team": "blue", "runbook": "https://wiki/a"}),
        ("b", {"team": "blue", "tier": "1"}),
        ("c", {"team": "red"}),
    ):
        seed.group(name)
        seed.connection.execute(
            "insert into groups_grouplabels (group_name, labels, updated_at, updated_by) values (%s, %s, 0, '')",
            [name, Jsonb(labels)],
        )
    chip = r'<a class="chip" href="([^"]+)"( aria-current="true")?>([^<]+) <span class="count">(\d+)<'
    found = re.findall(chip, person.get("/groups?sort=-lag").content.decode())
    assert [(label, count) for _, _, label, count in found] == [("team=blue", "2"), ("team=red", "1"), ("tier=1", "1")]
    assert names(person, unescape(found[0][0]).partition("?")[2]) == ["a", "b"]
    ((back, current, label, _), *_) = re.findall(chip, person.get(unescape(found[0][0])).content.decode())
    assert (back, bool(current), label) == ("/groups?sort=-lag", True, "team=blue")


FEW = Visible(
    ("missing", "team-15.service-00500"),
    ("team-07.service-00", "team-42.service-09", "x"),
    ("team-07.service-00007",),
    ("team-42.service-099",),
)
"""A name, and groups with a few prefixes but for one name and one prefix."""


@pytest.mark.parametrize("sort", [GroupSort.GROUP_ID, GroupSort.GROUP_ID_DESCENDING])
async def test_pages_of_a_few_prefixes_go_on_and_back_like_others(seed: Seed, db: Database, sort: GroupSort) -> None:
    seed.many_groups(10_000)
    names = [name for (name,) in seed.connection.execute("select group_id from groups_group")]
    expected = sorted((name for name in names if name in FEW), reverse=sort is GroupSort.GROUP_ID_DESCENDING)
    assert len(expected) == 1 + 10 + 9
    async with db.snapshot() as connection:
        finder = GroupFinder(db, connection, FEW)
        found = await finder.find(GroupFilter(), sort, None, 100)
        assert [one.group_id for one in found] == expected
        after = await finder.find(GroupFilter(), sort, Position(expected[4], None), 7)
        assert [one.group_id for one in after] == expected[5:12]
        before = await finder.find(GroupFilter(), sort, Position(expected[12], None, before=True), 7)
        assert [one.group_id for one in before] == expected[11:4:-1]
        assert await GroupFinder(db, connection, Visible()).find(GroupFilter(), sort, None, 7) == []


def test_long_names_are_shown_with_both_ends(person: Client, seed: Seed) -> None:
    name = f"{'team.' * 20}{'x' * 100}.production"
    seed.topic(name, 1)
    seed.commit(seed.group(name), {(name, 0): 1})
    for path in ("/groups", "/topics"):
        page = person.get(path).content.decode()
        (title, shown) = re.findall(r'class="row-link"[^>]*><span class="elided" title="([^"]*)">(.*?)</span>', page)[0]
        assert title == name
        shown = shown.replace("<wbr>", "")
        assert re.fullmatch(r"team\.team.*…x*\.production", shown)
        assert len(shown) == 80
        assert page.count(name) - page.count(f"/{name}") <= 4, "in titles and values alone"


def test_nothing_can_be_filtered_where_nothing_is(person: Client, seed: Seed) -> None:
    assert 'id="filters"' not in person.get("/groups").content.decode()
    assert 'id="filters"' in person.get("/groups?q=x").content.decode()
    seed.group("billing")
    assert 'id="filters"' in person.get("/groups").content.decode()
