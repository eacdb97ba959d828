"""Pages of a group's journal, which no index has in their order: each is what sorting all lines gives."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import psycopg
import pytest

from kcoord.database.paging import INT64_MAX, Visible
from kcoord.process.runtime import Runtime
from offsets.core.days import DAY_MS, bounds, day_of, partition_name
from offsets.core.types import ChangeKind
from offsets.journal.reading import JournalFilter, JournalReads, Span
from tests.conftest import START_MS
from tests.support.journal import drop_days, journal_lines

TODAY = day_of(START_MS)
DAYS = [TODAY, TODAY - 1, TODAY - 3, TODAY - 30]
"""Those that have a table of their own; lines of other days are in the default partition."""


@pytest.fixture
def lines(database: str) -> Iterator[list[dict[str, Any]]]:
    """Lines of two groups, some of the same instant, most of a few partitions, from a year ago to tomorrow."""
    random = Random(1)
    drop_days(database)
    with psycopg.connect(database) as connection:
        for day in DAYS:
            first, after = bounds(day)
            connection.execute(
                f"create table {partition_name(day)} partition of offset_commit_log"
                f" for values from ({first}) to ({after})"
            )
        ages = [-DAY_MS, 0, 1_000, 60_000, DAY_MS, 2 * DAY_MS, 3 * DAY_MS, 30 * DAY_MS, 365 * DAY_MS]
        written = [
            (
                START_MS - random.choice(ages) + random.randrange(3),
                random.choice(["commit", "commit", "txn_commit", "reset"]),
                random.choice(["g", "g", "h"]),
                random.choice(["a", "b", "c"]),
                min(random.randrange(40), random.randrange(40)),
            )
            for _ in range(400)
        ]
        connection.cursor().executemany(
            "insert into offset_commit_log (at, kind, group_name, topic, partition) values (%s, %s, %s, %s, %s)",
            written,
        )
    yield journal_lines(database, where="group_name = 'g'")
    drop_days(database)


@pytest.mark.parametrize(
    "wanted",
    [
        JournalFilter(),
        JournalFilter(topic="b"),
        JournalFilter(kinds=[ChangeKind.COMMIT, ChangeKind.RESET]),
        JournalFilter(since=START_MS - 2 * DAY_MS, until=START_MS + 1_000),
        JournalFilter(topic="c", kinds=[ChangeKind.TXN_COMMIT], until=START_MS - DAY_MS),
    ],
    ids=["all", "topic", "kinds", "span", "each"],
)
@pytest.mark.parametrize("limit", [7, 50, 1_000])
async def test_pages_are_all_lines_in_order(
    runtime: Runtime, lines: list[dict[str, Any]], wanted: JournalFilter, limit: int
) -> None:
    visible = Visible(prefixes=("",), denied_names=("a",))
    expected = sorted((line["at"], line["id"]) for line in lines if is_wanted(line, wanted) and line["topic"] != "a")
    found: list[tuple[int, int]] = []
    cursor = None
    while True:
        page = await runtime.get(JournalReads).commits("g", wanted, cursor=cursor, limit=limit, visible=visible)
        assert len(page.items) == limit or page.next_cursor is None
        found += [(line.at, line.id) for line in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert expected
    assert found == expected[::-1]


def is_wanted(line: dict[str, Any], wanted: JournalFilter) -> bool:
    """Whether a line matches a filter."""
    kinds = None if wanted.kinds is None else {kind.value for kind in wanted.kinds}
    until = INT64_MAX if wanted.until is None else wanted.until
    return (
        (wanted.topic is None or line["topic"] == wanted.topic)
        and (kinds is None or line["kind"] in kinds)
        and (wanted.since or 0) <= line["at"] < until
    )


@pytest.mark.parametrize("since", [0, START_MS - 40 * DAY_MS, START_MS - 1])
@pytest.mark.parametrize("before", [(INT64_MAX, INT64_MAX), (START_MS, 7), (START_MS - 9 * DAY_MS, 0)])
def test_the_parts_of_a_span_join_up(since: int, before: tuple[int, int]) -> None:
    whole = Span(since, *before)
    parts = list(whole.parts(START_MS))
    if before[0] < since:
        assert parts == []
        return
    assert (parts[0].before_at, parts[0].before_id) == before
    assert parts[-1].since == since
    assert [(later.since - 1, INT64_MAX) for later in parts[:-1]] == [
        (earlier.before_at, earlier.before_id) for earlier in parts[1:]
    ]
    assert all(part.since % DAY_MS == 0 for part in parts[:-1])
    assert len(parts) <= 10
