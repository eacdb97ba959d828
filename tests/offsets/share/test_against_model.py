"""Random sequences: the functions of the database against the model, in virtual time.

Source: share.md 7.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import astuple
from random import Random
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offsets.share.store import Rules
from tests.offsets.share.model import Items, LockLost
from tests.support.placed import misplaced

Connection = psycopg.Connection[Any]
State = tuple[int, list[Any], list[Any], list[Any]]
Asked = tuple[str, int, int]
"""Who acquires, how many items at most, and for how long (ms)."""
START = 1_700_000_000_000
MEMBERS = ("a", "b", "c")


def composite(rules: Rules) -> str:
    """As `kcoord.share_rules`."""
    return "(" + ",".join(str(value) for value in astuple(rules)) + ")"


class Table:
    """A partition in the database, through the functions."""

    def __init__(self, connection: Connection, rules: Rules) -> None:
        self.connection = connection
        self.rules = composite(rules)
        row = connection.execute(
            "insert into groups_group (group_id, type, state, previous_state, state_since, generation_id,"
            " protocol_type, new_member_added, version, created_at, updated_at)"
            " values (%s, 'share', 'Empty', '', 0, 1, 'share', false, 1, 0, 0) returning id, group_id",
            [f"g-{uuid.uuid4()}"],
        ).fetchone()
        assert row is not None
        self.group, self.group_id = row
        topic = uuid.uuid4()
        connection.execute(
            "insert into groups_topic (name, topic_id, partitions, labels, created_at) values (%s, %s, 1, '{}', 0)",
            [f"t-{topic}", topic],
        )
        row = connection.execute(
            "insert into offsets_sharepartition (group_id, topic_id, partition, next_offset, end_offset)"
            " values (%s, %s, 0, 0, 0) returning id, topic_id",
            [self.group, topic],
        ).fetchone()
        assert row is not None
        self.partition, self.topic = row
        self._value("count(kcoord.share_journal_begin(array[%s]))", self.partition)

    def end(self, offset: int) -> None:
        self.connection.execute(
            "update offsets_sharepartition set end_offset = %s where id = %s", [offset, self.partition]
        )

    def take(self, asked: list[Asked], now: int) -> list[list[tuple[int, list[int], int]]]:
        """What each of several requests gets, in one call."""
        places = "{" + ",".join(str(place) for place in range(1, len(asked) + 1)) + "}"
        found = self.connection.execute(
            "select t.place, t.lock_id, t.delivery_count, o"
            " from kcoord.share_acquire(%s, %s::text[], %s::bigint[], %s::bigint[], array[%s::uuid], array[0],"
            " array[%s], array[null::bigint], %s::text::kcoord.share_rules, %s) t"
            " cross join lateral unnest(t.held) r cross join lateral generate_series(lower(r), upper(r) - 1) o"
            " order by 2, 4",
            [self.group, *map(list, zip(*asked, strict=True)), self.topic, places, self.rules, now],
        ).fetchall()
        taken: list[dict[tuple[int, int], list[int]]] = [{} for _ in asked]
        for place, lock_id, count, offset in found:
            taken[place - 1].setdefault((lock_id, count), []).append(offset)
        return [[(lock_id, offsets, count) for (lock_id, count), offsets in each.items()] for each in taken]

    def settle(self, member_id: str, item: dict[str, Any], late: bool, remembers: bool, now: int) -> int | None:
        """Raises LockLost."""
        row = self.connection.execute(
            "select why, held_by, until"
            " from unnest(kcoord.share_settle(array[%s], array[%s], array[%s::text::jsonb], %s, %s,"
            " array[%s::text::kcoord.share_rules], %s))",
            [self.group_id, member_id, json.dumps([item]), late, remembers, self.rules, now],
        ).fetchone()
        assert row is not None
        why, held_by, until = row
        if why is not None:
            raise LockLost(why, held_by)
        return None if until is None else int(until)

    def expire(self, now: int) -> None:
        self.connection.execute(
            "select kcoord.share_expire(%s, 1000, %s::text::kcoord.share_rules, %s)", [self.group, self.rules, now]
        )

    def leave(self, members: list[str], now: int) -> None:
        self.connection.execute(
            "select kcoord.share_leave(%s, %s, %s::text::kcoord.share_rules, %s)",
            [self.group, members, self.rules, now],
        )

    def operate(self, kind: str, offsets: set[int], now: int) -> int:
        """How many there were."""
        held = "{" + ",".join(f"[{offset},{offset + 1})" for offset in offsets) + "}"
        return self._value(
            "kcoord.share_operate(%s, %s::int8multirange, %s, null, %s::text::kcoord.share_rules, %s)",
            self.partition, held, kind, self.rules, now,
        )  # fmt: skip

    def replay(self, offsets: set[int], reset_count: bool, now: int) -> int:
        """How many there were."""
        return self._value(
            "kcoord.share_replay(%s, %s, %s, %s::text::kcoord.share_rules, %s)",
            self.group, self._ids(offsets), reset_count, self.rules, now,
        )  # fmt: skip

    def discard(self, offsets: set[int], now: int) -> int:
        """How many there were."""
        return self._value("kcoord.share_discard(%s, %s, %s)", self.group, self._ids(offsets), now)

    def begin(self, start: int) -> int:
        """Where it began before."""
        return self._value("kcoord.share_alter(%s, %s, 0, %s)", self.group, self.topic, start)

    def _ids(self, offsets: set[int]) -> list[int]:
        named = 'select id from offsets_sharedead where share_partition_id = %s and "offset" = any(%s)'
        return [key for (key,) in self.connection.execute(named, [self.partition, [*offsets]]).fetchall()]

    def _value(self, call: str, *parameters: object) -> int:
        row = self.connection.execute(f"select {call}", parameters).fetchone()
        assert row is not None
        return int(row[0])

    def state(self) -> State:
        """As `state_of` has that of the model."""
        return stored(self.connection, self.partition)


def stored(connection: Connection, partition: int) -> State:
    """What the tables have of a partition."""

    def rows(text: str) -> list[tuple[Any, ...]]:
        return connection.execute(text, [partition]).fetchall()

    each = " cross join lateral unnest(x.held) r cross join lateral generate_series(lower(r), upper(r) - 1) o"
    locks = rows(
        f"select x.id, x.member_id, x.delivery_count, x.until, o from offsets_sharelock x {each}"
        " where share_partition_id = %s order by 1, 5"
    )
    retries = rows(
        f"select o, x.delivery_count, x.not_before from offsets_shareretry x {each}"
        " where share_partition_id = %s order by 1"
    )
    dead = rows(
        'select "offset", cause, delivery_count from offsets_sharedead where share_partition_id = %s order by 1'
    )
    (first,) = rows("select next_offset from offsets_sharepartition where id = %s")
    return first[0], locks, retries, dead


def state_of(items: Items) -> State:
    locks = [
        (lock_id, lock.member_id, lock.delivery_count, lock.until, offset)
        for lock_id, lock in sorted(items.locks.items())
        for offset in sorted(lock.held)
    ]
    retries = [(offset, retry.delivery_count, retry.not_before) for offset, retry in sorted(items.retries.items())]
    dead = [(offset, found.cause, found.delivery_count) for offset, found in sorted(items.dead.items())]
    return items.next_offset, locks, retries, dead


def check(items: Items, accepted: set[int]) -> None:
    """No item is lost, none is anywhere twice, and no count is above the limit."""
    places = [offset for lock in items.locks.values() for offset in lock.held]
    places += [*items.retries, *items.dead, *accepted]
    assert len(places) == len(set(places))
    since = sorted(offset for offset in places if offset >= items.start)
    assert since == list(range(items.start, items.next_offset)), "everything given out is in one place"
    assert items.locked <= items.rules.most_locks
    counts = [lock.delivery_count for lock in items.locks.values()]
    assert all(count <= items.rules.delivery_limit for count in counts)
    assert all(retry.delivery_count < items.rules.delivery_limit for retry in items.retries.values())


@pytest.fixture
def connection(database: str) -> Iterator[Connection]:
    with psycopg.connect(database, autocommit=True) as found:
        yield found


RULES = st.builds(
    Rules,
    lock_ms=st.just(30_000),
    delivery_limit=st.integers(1, 4),
    most_locks=st.sampled_from([3, 10, 2_000]),
    backoff_ms=st.sampled_from([0, 0, 1_000]),
    backoff_max_ms=st.just(3_000),
    backoff_multiplier=st.integers(1, 3),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), rules=RULES)
def test_random_sequences_are_what_the_model_says(connection: Connection, seed: int, rules: Rules) -> None:
    random, now = Random(seed), START
    items, table = Items(rules), Table(connection, rules)
    accepted: set[int] = set()
    given_out: list[tuple[int, list[int], str]] = []
    acts = {"end": 15, "take": 30, "settle": 45, "expire": 5, "leave": 5, "time": 5, "operator": 10}
    for _ in range(40):
        member_id = random.choice(MEMBERS)
        match random.choices([*acts], [*acts.values()])[0]:
            case "end":
                items.end_offset += random.randint(0, 6)
                table.end(items.end_offset)
            case "take":
                asking = [
                    (random.choice(MEMBERS), random.choice((0, 1, 3, 8)), random.choice((30_000, 30_000, 4_000)))
                    for _ in range(random.choice((1, 1, 2, 4)))
                ]
                if not any(most for _, most, _ in asking):
                    continue  # nobody looks at a partition for nothing
                for (who, most, lock_ms), found in zip(asking, table.take(asking, now), strict=True):
                    taken: dict[int, list[int]] = {}  # what was replayed and what is new are two locks
                    for _, offsets, count in found:
                        taken.setdefault(count, []).extend(offsets)
                    assert {count: sorted(offsets) for count, offsets in taken.items()} == items.take(most, now)
                    for lock_id, offsets, count in found:
                        items.give(lock_id, who, offsets, count, lock_ms, now)
                        given_out.append((lock_id, offsets, who))
            case "settle":
                settle_something(random, items, table, accepted, given_out, now)
            case "expire":
                items.expire(now)
                table.expire(now)
            case "leave":
                items.leave([member_id], now)
                table.leave([member_id], now)
            case "time":
                now += random.choice((1, 5_000, 30_000))
            case "operator":
                operate_somehow(random, items, table, accepted, now)
        assert table.state() == state_of(items)
        check(items, accepted)
    assert misplaced(connection) == {}


def operate_somehow(random: Random, items: Items, table: Table, accepted: set[int], now: int) -> None:
    """Release, reject, replay, discard, or let the partition begin again."""
    offsets = {random.randint(0, items.next_offset) for _ in range(random.randint(1, 8))}
    dead = offsets & items.dead.keys()
    match kind := random.choice(("release", "reject", "replay", "discard", "begin")):
        case "replay":
            reset_count = random.random() < 0.5
            assert table.replay(dead, reset_count, now) == len(dead)
            items.replay(dead, now, reset_count=reset_count)
        case "discard":
            assert table.discard(dead, now) == len(dead)
            accepted |= dead
            for offset in dead:
                del items.dead[offset]
        case "begin":
            start = random.randint(0, items.end_offset + 3)
            table.begin(start)
            items.begin(start)
            accepted.difference_update(range(start, max(accepted, default=0) + 1))
        case _:
            assert table.operate(kind, offsets, now) == items.operate(kind, offsets, now)


def settle_something(
    random: Random,
    items: Items,
    table: Table,
    accepted: set[int],
    given_out: list[tuple[int, list[int], str]],
    now: int,
) -> None:
    """Settle a lock that was given out, also one that is over, mostly by its member; it may have been settled."""
    lock_id, offsets, member_id = random.choice([*given_out[-6:], (10**12, [0], "a")])
    if random.random() < 0.1:
        member_id = random.choice(MEMBERS)
    if lock_id in items.locks and random.random() < 0.6:
        offsets = sorted(items.locks[lock_id].held)
    if random.random() < 0.1:
        offsets = [*offsets, random.randint(0, 20)]
    usual = random.choice(("accept", "release", None))
    parts: dict[str, set[int]] = {}
    for offset in dict.fromkeys(offsets):
        kind = usual or random.choice(("accept", "gap", "release", "reject", "renew", ""))
        if kind:
            parts.setdefault(kind, set()).add(offset)
    if not parts:
        return
    ordered = {kind: parts[kind] for kind in ("accept", "gap", "release", "reject", "renew") if kind in parts}
    delay = random.choice((None, 0, 5_000))
    late, remembers = random.random() < 0.3, random.random() < 0.7
    item = {"lock": lock_id, "delay_ms": delay, **{kind: [[o, o] for o in found] for kind, found in ordered.items()}}
    before = set(items.locks[lock_id].held) if lock_id in items.locks else set()
    try:
        until = items.settle(lock_id, member_id, ordered, now, delay, late=late, remembers=remembers)
    except LockLost as lost:
        with pytest.raises(LockLost) as raised:
            table.settle(member_id, item, late, remembers, now)
        refused = raised.value.why, raised.value.held_by
        assert refused == (lost.why, lost.held_by)  # noqa: PT017 - the model raised, and the functions have to do so
        return
    accepted |= (ordered.get("accept", set()) | ordered.get("gap", set())) & before
    assert table.settle(member_id, item, late, remembers, now) == until
