"""How pages of the list of groups are read, and groups searched, among a hundred thousand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from frontend.pages.groups.reads import DRAWN_TOPICS, PAGE_SIZE
from frontend.pages.search import view as reads
from groups.readmodel import GroupFilter, GroupSort
from kcoord.control.rest.ranges import BEYOND, ranges
from kcoord.database.paging import EVERYTHING, Visible
from kcoord.database.sql import queries
from offsets.group_orders import ORDERS, places
from tests.frontend.node_seed import node, own
from tests.frontend.seed import Seed
from tests.frontend.viewers import ALL
from tests.support.database import cloned_database
from tests.support.plans import executed_plan

pytestmark = pytest.mark.whole("plans beside many rows of others; test_statements has those of hot statements")

Q = queries("offsets")

GROUPS, PARTITIONS = 100_000, 50
UNASKED = dict.fromkeys(
    ("labelled", "label_pairs", "label_names", "among", "assigned", "coordinated", "lagging", "held_at")
)
"""Conditions that are looked up before, of a list without any."""


@pytest.fixture(scope="module")
def crowded(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    """A hundred thousand groups, samples of the lag and owners of most, and nodes that coordinate all but a few."""
    with cloned_database(postgres) as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
        seed = Seed(connection)
        seed.many_groups(GROUPS)
        connection.execute(f"update groups_group set partition = id % {PARTITIONS}".encode())
        connection.execute(
            "insert into offsets_grouplag (group_id, at, lag, time_lag_ms, partitions)"
            " select id, 0, id % 7000, nullif(id % 5, 0), nullif(id % 600, 0) from groups_group where id % 3 > 0"
        )
        nodes = [node(seed, f"node-{number}") for number in range(4)]
        own(seed, {partition: nodes[partition % 4] for partition in range(PARTITIONS - 2)})
        connection.execute(
            "insert into groups_grouplabels (group_name, labels, updated_at, updated_by)"
            " select group_id, jsonb_build_object('owner', 'team-' || id % 97), 0, ''"
            " from groups_group where id % 5 > 0"
        )
        connection.execute(
            "insert into offsets_groupverdict (group_id, kind, topic, since, number, names)"
            " select id, case id % 400 when 0 then 'late' else 'stalled' end, 'orders', 0, 1, '{}' from groups_group"
            " where id % 200 = 0"
        )
        connection.execute(
            "insert into offsets_topiclag (group_id, topic, at, lag, committed_offsets, partitions, unknown_partitions)"
            " select id, topic, 0, 1, 0, 1, 0 from groups_group, unnest(array['orders', 'refunds']) topic"
            " where id % 40 = 0"
        )
        connection.execute(
            "insert into offsets_lagsample (group_name, topic, at, lag)"
            " select g.group_id, t.topic, n * 60000, n from offsets_topiclag t"
            " join groups_group g on g.id = t.group_id,"
            " generate_series(1, 90) n"
        )
        connection.execute(
            "insert into groups_member (group_id, member_id, client_id, client_host, session_timeout_ms,"
            " rebalance_timeout_ms, protocol_type, protocol_names, protocol_metadata, assignment, is_new, pending_sync)"
            " select id, 'm' || id, 'client-' || id % 97, 'h', 1, 1, 'consumer', '{}', '{}', '', false, false"
            " from groups_group"
        )
        connection.execute(
            "vacuum analyze groups_group, offsets_grouplag, groups_grouplabels, offsets_groupverdict, offsets_topiclag,"
            " offsets_lagsample, groups_member"
        )
        yield connection


@pytest.mark.parametrize(
    "sort",
    [
        GroupSort.GROUP_ID, GroupSort.GROUP_ID_DESCENDING, GroupSort.STATE, GroupSort.STATE_DESCENDING,
        GroupSort.UPDATED, GroupSort.UPDATED_ASCENDING,
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", [False, True], ids=["forwards", "backwards"])
def test_a_page_of_an_indexed_order_reads_a_page(
    crowded: psycopg.Connection[Any], sort: GroupSort, before: bool
) -> None:
    order = ORDERS[sort]
    row = crowded.execute("select group_id, state, updated_at from groups_group where id = 50000").fetchone()
    assert row is not None
    parameters = {
        **GroupFilter().parameters(), **EVERYTHING.parameters(), **order.extra, **EVERYTHING.parameters("topic"),
        **UNASKED, "after": row[0],
        "after_key": row[1] if order.kind is str else row[2], "limit": PAGE_SIZE + 1,
    }  # fmt: skip
    done = executed_plan(crowded, order.before if before else order.after, parameters, generic=False)
    scans = re.findall(r"on groups_group g?.*\(actual rows=([\d.]+) loops=(\d+)\)", done)
    assert scans, done
    assert sum(float(rows) * int(loops) for rows, loops in scans) <= 8 * (PAGE_SIZE + 1), done


def read_of(done: str, table: str) -> float:
    """How many rows of a table a plan has read."""
    scans = re.findall(rf"on {table}\b.*\(actual rows=([\d.]+) loops=(\d+)\)", done)
    assert scans, done
    return sum(float(rows) * int(loops) for rows, loops in scans)


@pytest.mark.parametrize("generic", [False, True], ids=["these values", "any values"])
@pytest.mark.parametrize("before", [False, True], ids=["forwards", "backwards"])
def test_groups_with_verdicts_are_read_and_not_the_others(
    crowded: psycopg.Connection[Any], before: bool, generic: bool
) -> None:
    order = ORDERS[GroupSort.SEVERITY]
    parameters = {
        **GroupFilter().parameters(), **EVERYTHING.parameters(), **order.extra, **EVERYTHING.parameters("topic"),
        **UNASKED, "after": "", "after_key": None, "limit": PAGE_SIZE + 1,
    }  # fmt: skip
    done = executed_plan(crowded, order.before if before else order.after, parameters, generic=generic)
    assert read_of(done, "groups_group g") <= GROUPS / 200, done


@pytest.mark.parametrize("generic", [False, True], ids=["these values", "any values"])
def test_the_groups_without_verdicts_follow_by_the_index_of_ids(
    crowded: psycopg.Connection[Any], generic: bool
) -> None:
    parameters = {
        **GroupFilter(well=True).parameters(), **EVERYTHING.parameters(), **EVERYTHING.parameters("topic"),
        **UNASKED, "after": "team-50", "limit": PAGE_SIZE + 1,
    }  # fmt: skip
    done = executed_plan(crowded, ORDERS[GroupSort.GROUP_ID].after, parameters, generic=generic)
    assert read_of(done, "groups_group g") <= 2 * (PAGE_SIZE + 1), done


@pytest.mark.parametrize("generic", [False, True], ids=["these values", "any values"])
def test_looks_at_lag_are_ranges_of_the_key(crowded: psycopg.Connection[Any], generic: bool) -> None:
    ids = [pk for (pk,) in crowded.execute("select group_id from offsets_topiclag group by 1 limit 50")]
    parameters = {"ids": ids, "first": 1_860_000, "last": 5_400_000, "most": DRAWN_TOPICS, **ALL.with_groups()}
    done = executed_plan(crowded, queries("frontend").lag_looks, parameters, generic=generic)
    assert "Seq Scan" not in done, done
    assert read_of(done, "offsets_lagsample s") == 50 * 2 * 60, done


@pytest.mark.parametrize("before", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize(
    "sort",
    [
        GroupSort.PARTITIONS, GroupSort.PARTITIONS_DESCENDING, GroupSort.COORDINATOR, GroupSort.COORDINATOR_DESCENDING,
        GroupSort.OWNER, GroupSort.OWNER_DESCENDING,
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "wanted",
    [GroupFilter(), GroupFilter(states=("stable",)), GroupFilter(types=("Classic",))],
    ids=["of all", "of a state", "of a type"],
)
def test_a_page_of_a_computed_order_reads_every_group_once_and_keeps_a_page(
    crowded: psycopg.Connection[Any], sort: GroupSort, before: bool, wanted: GroupFilter
) -> None:
    """No group is looked up by itself, and no more than a page is sorted.

    Plans are those for the values: one for any values costs hundreds of times as much, so Postgres never takes it.
    """
    order = ORDERS[sort]
    parameters = {
        **wanted.parameters(), **EVERYTHING.parameters(), **order.extra, **EVERYTHING.parameters("topic"),
        **UNASKED, **places({partition: f"node-{partition % 4}" for partition in range(PARTITIONS - 2)}),
        "after": "team-15.service-00500", "limit": PAGE_SIZE + 1,
        "after_key": "oteam-50" if order.kind is str else 2 * int(str(order.extra["sign"])),
    }  # fmt: skip
    done = executed_plan(crowded, order.before if before else order.after, parameters, generic=False)
    joined = {"partitions": ["offsets_grouplag"], "owner": ["groups_grouplabels"], "coordinator": []}
    for table in ("groups_group", *joined[sort.value.removeprefix("-")]):
        scans = re.findall(rf"on {table}\b.*\(actual rows=([\d.]+) loops=(\d+)\)", done)
        workers = re.findall(r"Workers Launched: (\d+)", done)
        assert scans, done
        assert all(int(loops) <= 1 + sum(map(int, workers)) for _, loops in scans), done
    assert "top-N heapsort" in done, done
    kept = re.findall(r"Limit \(actual rows=([\d.]+)", done)
    assert float(kept[0]) == PAGE_SIZE + 1, done


@pytest.mark.parametrize("generic", [False, True], ids=["planned for these", "planned for any"])
@pytest.mark.parametrize(
    ("statement", "after"), [(Q.list_groups_by_id_within, ""), (Q.list_groups_by_id_within_descending, BEYOND)]
)
def test_a_page_of_a_few_prefixes_among_many_groups_reads_those(
    crowded: psycopg.Connection[Any], statement: str, after: str, generic: bool
) -> None:
    """Without the ranges, the index is read from one end until a page is full."""
    visible = Visible(("team-15.service-00500",), ("team-07.service-00", "team-96.service-9999"))
    within = ranges(visible)
    parameters = {
        **GroupFilter().parameters(), **visible.parameters(), **EVERYTHING.parameters("topic"),
        **UNASKED, "after": after, "limit": PAGE_SIZE + 1,
        "low": [low for low, _ in within], "high": [high for _, high in within],
    }  # fmt: skip
    done = executed_plan(crowded, statement, parameters, generic=generic)
    scans = re.findall(r"on groups_group g?.*\(actual rows=([\d.]+) loops=(\d+)\)", done)
    removed = [int(rows) for rows in re.findall(r"Rows Removed by Filter: (\d+)", done)]
    assert scans, done
    assert 3 <= sum(float(rows) * int(loops) for rows, loops in scans) <= 3 * (PAGE_SIZE + 1), done
    assert sum(removed) == 0, done


@pytest.mark.parametrize("generic", [False, True], ids=["these values", "any values"])
@pytest.mark.parametrize("q", ["team-07.service-0", "team", "zebra"])
def test_the_beginning_of_a_name_is_looked_up(crowded: psycopg.Connection[Any], q: str, generic: bool) -> None:
    parameters = {"q": q, "end": q + "\U0010ffff", "limit": reads.SHOWN}
    done = executed_plan(
        crowded, queries("frontend").groups_beginning, {**parameters, **ALL.with_groups()}, generic=generic
    )
    assert "_like on groups_group" in done, done
    assert "Rows Removed" not in done, done


def test_a_part_of_a_name_is_looked_for_in_a_bounded_number_of_rows(crowded: psycopg.Connection[Any]) -> None:
    parameters = {"q": "zebra", "most": 1_000, "limit": reads.SHOWN}
    done = executed_plan(
        crowded, queries("frontend").groups_containing, {**parameters, **ALL.with_groups()}, generic=True
    )
    read = re.findall(r"Scan.* on groups_group \(actual rows=([\d.]+)", done)
    assert [float(rows) for rows in read] == [1_000], done


@pytest.mark.parametrize("generic", [False, True], ids=["these values", "any values"])
@pytest.mark.parametrize("most", [1_000, reads.MOST_ROWS])
@pytest.mark.parametrize(
    ("statement", "kind", "table", "rows"),
    [
        ("labels_completed", "labels", "groups_grouplabels", GROUPS * 4 // 5),
        ("members_completed", "members", "groups_member", GROUPS),
    ],
)
def test_what_completes_a_field_reads_a_table_once_and_no_more_than_its_bound(
    crowded: psycopg.Connection[Any], statement: str, kind: str, table: str, rows: int, most: int, generic: bool
) -> None:
    """Of all groups, whose names all match, which is the most to look up."""
    parameters = {"q": "e", "kind": kind, "group_id": "", "most": most, "limit": 2 * reads.SHOWN, **ALL.with_groups()}
    done = executed_plan(crowded, getattr(queries("frontend"), statement), parameters, generic=generic)
    assert read_of(done, table) == min(rows, most), done
    assert read_of(done, "groups_group g") <= max(GROUPS, most), done
    assert "top-N heapsort" in done or "Sort Method: quicksort" in done, done


@pytest.mark.parametrize("generic", [False, True], ids=["these values", "any values"])
def test_accounts_are_not_even_read_for_who_may_not_know_them(crowded: psycopg.Connection[Any], generic: bool) -> None:
    parameters = {"q": "a", "kind": "holders", "administers": False, "most": reads.MOST_ROWS, "limit": 2 * reads.SHOWN}
    done = executed_plan(crowded, queries("frontend").principals_completed, parameters, generic=generic)
    assert "One-Time Filter: false" in done or "never executed" in done, done
