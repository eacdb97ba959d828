"""Where each item of share groups is, by the journal and the rows: a second way to what reconcile says."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import psycopg

Place = tuple[str, int, int]
"""A topic, a partition and an offset."""

HELD = """
select t.name, p.partition, o from offsets_sharepartition p join groups_topic t on t.topic_id = p.topic_id
join (select share_partition_id, held from offsets_sharelock
      union all select share_partition_id, held from offsets_shareretry
      union all select share_partition_id, int8multirange(int8range("offset", "offset" + 1)) from offsets_sharedead) x
     on x.share_partition_id = p.id
cross join lateral unnest(x.held) r cross join lateral generate_series(lower(r), upper(r) - 1) o
"""


def lines(connection: psycopg.Connection[Any]) -> list[tuple[str, str, int, dict[str, Any]]]:
    """The lines of items: kind, topic, partition and what they say."""
    rows = connection.execute(
        "select kind, topic, partition, metadata, committed_offset from offset_commit_log"
        " where starts_with(kind, 'items_') order by id"
    ).fetchall()
    assert all(committed is None for *_, committed in rows)
    return [(kind, topic, partition, json.loads(metadata)) for kind, topic, partition, metadata, _ in rows]


def misplaced(connection: psycopg.Connection[Any]) -> dict[Place, int]:
    """Offsets below the next one that are not in one place exactly, and in how many they are."""
    begins: dict[tuple[str, int], int] = {}
    places: Counter[Place] = Counter()
    for kind, topic, partition, said in lines(connection):
        if kind == "items_begin":
            begins[topic, partition] = said["begin"]
            places = Counter({key: count for key, count in places.items() if key[:2] != (topic, partition)})
        elif kind == "items_done":
            for first, last in (part for parts in said.values() for part in parts):
                places.update((topic, partition, offset) for offset in range(first, last + 1))
    places.update(connection.execute(HELD).fetchall())
    ends = connection.execute(
        "select t.name, p.partition, p.next_offset from offsets_sharepartition p"
        " join groups_topic t on t.topic_id = p.topic_id where p.next_offset is not null"
    ).fetchall()
    due = {
        (topic, partition, offset) for topic, partition, end in ends for offset in range(begins[topic, partition], end)
    }
    wrong = {place: places[place] for place in due if places[place] != 1}
    begun = {place for place in places if place[2] >= begins[place[:2]]}
    return wrong | {place: places[place] + 1 for place in begun - due}
