"""Random sequences: the functions of the database against the model, in virtual time.

Source: share.md 7.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from random import Random
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offsets.core.share import Items, LockLost, Rules

Connection = psycopg.Connection[Any]
START = 1_700_000_000_000
MEMBERS = ("a", "b", "c")


class Table:
    """A partition in the database, through the functions."""

    def __init__(self, connection: Connection, rules: Rules) -> None:
        self.connection = connection
        self.rules = f"({rules.lock_ms},{rules.delivery_limit},{rules.most_locks})"
        row = connection.execute(
            "insert into groups_group (group_id, type, state, previous_state, state_since, generation_id,"
            " protocol_type, new_member_added, version, created_at, updated_at)"
            " values (%s, 'share', 'Empty', '', 0, 1, 'share', false, 1, 0, 0) returning id",
            [f"g-{uuid.uuid4()}"],
        ).fetchone()
        assert row is not None
        (self.group,) = row
        row = connection.execute(
            "insert into offsets_sharepartition (group_id, topic_id, partition, next_offset, end_offset)"
            " values (%s, gen_random_uuid(), 0, 0, 0) returning id",
            [self.group],
        ).fetchone()
        assert row is not None
        (self.partition,) = row

    def end(self, offset: int) -> None:
        self.connection.execute(
            "update offsets_sharepartition set end_offset = %s where id = %s", [offset, self.partition]
        )

    def take(self, member_id: str, most: int, now: int) -> list[tuple[int, list[int], int]]:
        found = self.connection.execute(
            "select t.lock_id, t.delivery_count, o"
            " from kcoord.share_take(%s, %s, %s, %s::text::kcoord.share_rules, %s) t"
            " cross join lateral unnest(t.held) r cross join lateral generate_series(lower(r), upper(r) - 1) o"
            " order by 1, 3",
            [self.partition, member_id, most, self.rules, now],
        ).fetchall()
        taken: dict[tuple[int, int], list[int]] = {}
        for lock_id, count, offset in found:
            taken.setdefault((lock_id, count), []).append(offset)
        return [(lock_id, offsets, count) for (lock_id, count), offsets in taken.items()]

    def settle(self, member_id: str, item: dict[str, Any], now: int) -> None:
        """Raises LockLost."""
        try:
            with self.connection.transaction():
                self.connection.execute(
                    "select kcoord.share_settle(%s, %s, %s::text::jsonb, %s::text::kcoord.share_rules, %s)",
                    [self.group, member_id, json.dumps([item]), self.rules, now],
                )
        except psycopg.Error as error:
            if error.sqlstate != "KC121":
                raise
            raise LockLost from None

    def expire(self, now: int) -> None:
        self.connection.execute("select kcoord.share_expire(1000, %s::text::kcoord.share_rules, %s)", [self.rules, now])

    def state(self) -> tuple[Any, ...]:
        """As `state_of` has that of the model."""

        def rows(text: str) -> list[tuple[Any, ...]]:
            return self.connection.execute(text, [self.partition]).fetchall()

        each = " cross join lateral unnest(x.held) r cross join lateral generate_series(lower(r), upper(r) - 1) o"
        locks = rows(
            f"select x.id, x.member_id, x.delivery_count, x.until, o from offsets_sharelock x {each}"
            " where share_partition_id = %s order by 1, 5"
        )
        retries = rows(
            f"select o, x.delivery_count, x.not_before from offsets_shareretry x {each}"
            " where share_partition_id = %s order by 1"
        )
        dead = rows('select "offset", cause from offsets_sharedead where share_partition_id = %s order by 1')
        (first,) = rows("select next_offset from offsets_sharepartition where id = %s")
        return first[0], locks, retries, dead


def state_of(items: Items) -> tuple[Any, ...]:
    locks = [
        (lock_id, lock.member_id, lock.delivery_count, lock.until, offset)
        for lock_id, lock in sorted(items.locks.items())
        for offset in sorted(lock.held)
    ]
    retries = [(offset, retry.delivery_count, retry.not_before) for offset, retry in sorted(items.retries.items())]
    return items.next_offset, locks, retries, sorted(items.dead.items())


def check(items: Items, accepted: set[int]) -> None:
    """No item is lost, none is anywhere twice, and no count is above the limit."""
    places = [offset for lock in items.locks.values() for offset in lock.held]
    places += [*items.retries, *items.dead, *accepted]
    assert sorted(places) == list(range(items.next_offset)), "everything given out is in one place"
    assert items.locked <= items.rules.most_locks
    counts = [lock.delivery_count for lock in items.locks.values()]
    assert all(count <= items.rules.delivery_limit for count in counts)
    assert all(retry.delivery_count < items.rules.delivery_limit for retry in items.retries.values())


@pytest.fixture
def connection(database: str) -> Iterator[Connection]:
    with psycopg.connect(database, autocommit=True) as found:
        yield found


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    rules=st.builds(Rules, st.just(30_000), st.integers(1, 4), st.sampled_from([3, 10, 2_000])),
)
def test_random_sequences_are_what_the_model_says(connection: Connection, seed: int, rules: Rules) -> None:
    random, now = Random(seed), START
    items, table = Items(rules), Table(connection, rules)
    accepted: set[int] = set()
    for _ in range(40):
        member_id = random.choice(MEMBERS)
        match random.choices(("end", "take", "settle", "expire", "time"), (15, 30, 40, 10, 5))[0]:
            case "end":
                items.end_offset += random.randint(0, 6)
                table.end(items.end_offset)
            case "take":
                most = random.choice((0, 1, 3, 8))
                expected = items.take(most, now)
                given_out = table.take(member_id, most, now)
                assert {count: offsets for _, offsets, count in given_out} == expected
                for lock_id, offsets, count in given_out:
                    items.give(lock_id, member_id, offsets, count, now)
            case "settle":
                lock_id = random.choice([*items.locks, *items.locks, 10**12])
                lock = items.locks.get(lock_id)
                offsets = sorted(lock.held) if lock else [0]
                if lock is not None and random.random() < 0.9:
                    member_id = lock.member_id
                if random.random() < 0.1:
                    offsets.append(random.randint(0, 20))
                parts: dict[str, set[int]] = {}
                for offset in dict.fromkeys(offsets):
                    kind = random.choice(("accept", "gap", "release", "reject", "renew", ""))
                    if kind:
                        parts.setdefault(kind, set()).add(offset)
                if parts:
                    delay = random.choice((0, 0, 5_000))
                    settle(items, table, accepted, lock_id, member_id, parts, now, delay)
            case "expire":
                items.expire(now)
                table.expire(now)
            case "time":
                now += random.choice((1, 5_000, 30_000))
        assert table.state() == state_of(items)
        check(items, accepted)


def settle(
    items: Items,
    table: Table,
    accepted: set[int],
    lock_id: int,
    member_id: str,
    parts: dict[str, set[int]],
    now: int,
    delay: int,
) -> None:
    ordered = {kind: parts[kind] for kind in ("accept", "gap", "release", "reject", "renew") if kind in parts}
    item = {"lock": lock_id, "delay_ms": delay, **{kind: [[o, o] for o in found] for kind, found in ordered.items()}}
    try:
        items.settle(lock_id, member_id, ordered, now, delay)
        accepted |= ordered.get("accept", set()) | ordered.get("gap", set())
    except LockLost:
        with pytest.raises(LockLost):
            table.settle(member_id, item, now)
        return
    table.settle(member_id, item, now)
