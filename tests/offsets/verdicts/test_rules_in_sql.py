"""The statements that judge all groups find what the rules say: many groups with random rows around the thresholds."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from groups.core.model.types import VerdictKind
from kcoord.config import Config
from kcoord.process.runtime import Runtime
from offsets.commits.retention.sweep import RetentionService
from offsets.core.retention import StoredOffset
from offsets.core.verdicts import (
    STUCK_STATES,
    OwnedPartition,
    StoredSession,
    disputed,
    expiring,
    flapping,
    late,
    stale,
    stalled,
    stuck,
    unattended,
    uncovered,
    unsettled,
)
from offsets.verdicts import VerdictChecks, thresholds
from tests.conftest import START_MS
from tests.offsets.verdicts.rows import LONG_AGO, Rows

T = thresholds(Config({}))
NOW = START_MS
GROUPS = 120
RESOLVED = '{"": {"topics": {"b.*": ["b"]}, "topics_version": 1, "started_at": 1}}'

ITEMS = (VerdictKind.UNATTENDED, VerdictKind.UNSETTLED, VerdictKind.DEAD_LETTERS)

Found = dict[tuple[str, str], tuple[Any, ...]]


def found(rows: Rows, kind: VerdictKind) -> Found:
    """Since when and how many, by group and topic."""
    stored = rows.connection.execute(
        "select g.group_id, v.topic, v.since, v.number from offsets_groupverdict v"
        " join groups_group g on g.id = v.group_id where v.kind = %s",
        [kind.value],
    )
    return {(group, topic): tuple(values) for group, topic, *values in stored}


def around(random: Random, threshold: int) -> int:
    """An instant at a threshold, one ms beside it, or far from it."""
    return threshold + random.choice([-1_000_000, -1, 0, 1, 1_000_000])


async def test_stuck(rows: Rows, checks: VerdictChecks) -> None:
    random, expected = Random(1), {}
    for n, state in enumerate([*STUCK_STATES, "Stable", "Empty"] * 5):
        since = around(random, NOW - T.stuck_ms)
        kind = "consumer" if state in ("Assigning", "Reconciling") else "classic"
        rows.group(f"g{n}", state, since, type=kind)
        if (begun := stuck(state, since, T, NOW)) is not None:
            expected[f"g{n}", ""] = (begun, 0)
    await checks.check_members()
    assert found(rows, VerdictKind.STUCK) == expected
    assert 0 < len(expected) < 30


@pytest.mark.parametrize("known_until", [NOW, NOW - 2_000])
async def test_late(rows: Rows, checks: VerdictChecks, known_until: int) -> None:
    random, expected = Random(2), {}
    rows.node(flushed_until=known_until)
    for n in range(GROUPS):
        group = rows.group(f"g{n}", type="classic" if n % 2 else "consumer")
        silent = []
        for m in range(random.randint(0, 3)):
            session_ms = random.choice([6_000, 45_000, 100_000])
            deadline = around(random, known_until + session_ms * (100 - T.late_percent) // 100)
            session = StoredSession(deadline - session_ms, deadline)
            if n % 2:
                rows.member(group, f"m{m}", session.armed_at, session_ms)
            else:
                rows.consumer_member(group, f"m{m}", session.armed_at, deadline)
            silent += [at] if (at := late(session, known_until, T)) is not None else []
        if silent:
            expected[f"g{n}", ""] = (min(silent), len(silent))
    await checks.check_members()
    assert found(rows, VerdictKind.LATE) == expected
    assert 0 < len(expected) < GROUPS


async def test_flapping(rows: Rows, checks: VerdictChecks) -> None:
    random, expected = Random(3), {}
    rows.connection.execute("insert into offsets_activity values (%s, 0, 0, 0)", [NOW - T.flapping_window_ms - 60_000])
    for n in range(GROUPS):
        rows.group(f"g{n}")
        count = random.choice([1, T.flapping_rebalances - 1, T.flapping_rebalances, T.flapping_rebalances + 3])
        begun = [NOW - T.flapping_window_ms + random.choice([-1, 0, 1, 1_000]) for _ in range(count)]
        rows.events(f"g{n}", random.choice(["rebalance_started", "group_epoch_bumped"]), *sorted(begun))
        rows.events(f"g{n}", "member_joined", *[NOW] * 20)
        recent = [at for at in begun if at > NOW - T.flapping_window_ms]
        if (since := flapping(begun, T, NOW)) is not None:
            expected[f"g{n}", ""] = (since, len(recent))
    await checks.check_members()
    assert found(rows, VerdictKind.FLAPPING) == expected
    assert 0 < len(expected) < GROUPS


def owned_partition(random: Random, rows: Rows, group: int, topic: tuple[int, str], partition: int) -> OwnedPartition:
    """Random samples, commits and journal of a partition, and what the rule is given of them."""
    row = rows.connection.execute("select group_id, state_since from groups_group where id = %s", [group]).fetchone()
    assert row is not None
    name, stable_since = row
    before = NOW - T.stalled_ms
    instants = sorted(random.sample([LONG_AGO - 5, before - 9_000, before - 1, before, before + 1, NOW - 7], 4))
    ends = sorted(random.choices([10, 20, 30, 40], k=4))
    for at, end in zip(instants, ends, strict=True):
        rows.sample(topic[0], partition, at, end)
    sampled_at, start, log_end = NOW - 3, random.choice([0, 0, 15]), max(ends[-1], random.choice([20, 50]))
    rows.watermark(topic[0], partition, log_end, start=start, at=sampled_at)
    committed = random.choice([None, 10, 20, 20, 30, 40])
    committed_at = earlier = None
    if committed is None:
        known = [end for at, end in zip(instants, ends, strict=True) if at <= stable_since]
        position = known[-1] if known else ends[0]
    else:
        committed_at = random.choice([before - 9_000, before, before + 1, NOW - 1])
        rows.commit(group, topic[1], partition, committed, committed_at)
        if random.random() < 0.7:
            earlier = (random.choice([committed, committed, 5, 99]), random.choice([before - 60_000, before]))
            rows.journal(name, topic[1], partition, 1, earlier[1] - 5)
            rows.journal(name, topic[1], partition, *earlier)
            rows.journal(name, topic[1], partition, 1, before + 1)
        position = max(committed, start)
    readable = [at for at, end in zip(instants, ends, strict=True) if end > position]
    rows.owner(group, topic[1], partition)
    return OwnedPartition(
        stable_since, log_end, position, readable[0] if readable else sampled_at, committed, committed_at, earlier
    )


async def test_stalled(rows: Rows, checks: VerdictChecks) -> None:
    random, expected = Random(4), {}
    for n in range(GROUPS):
        topic = rows.topic(f"t{n}", 3), f"t{n}"
        state = random.choice(["Stable"] * 9 + ["PreparingRebalance"])
        group = rows.group(f"g{n}", state, around(random, random.choice([LONG_AGO, NOW - T.stalled_ms])))
        owned = [owned_partition(random, rows, group, topic, partition) for partition in range(random.randint(1, 3))]
        since = [at for one in owned if (at := stalled(one, T, NOW)) is not None]
        if since and state == "Stable":
            expected[f"g{n}", f"t{n}"] = (min(since), len(since))
    await checks.check_offsets()
    assert found(rows, VerdictKind.STALLED) == expected
    assert GROUPS // 5 < len(expected) < GROUPS


async def test_stale(rows: Rows, checks: VerdictChecks) -> None:
    random, expected = Random(5), {}
    for n in range(GROUPS // 4):
        topic, group = rows.topic(f"t{n}", 3), rows.group(f"g{n}")
        instants = [around(random, NOW - T.stale_ms) for _ in range(3)]
        for partition, at in enumerate(instants):
            rows.watermark(topic, partition, 0, at=at)
        rows.owner(group, f"t{n}", 0, 1)
        old = [at for at in instants[:2] if stale(at, T, NOW) is not None]
        if old:
            expected[f"g{n}", f"t{n}"] = (min(old), len(old))
    await checks.check_offsets()
    assert found(rows, VerdictKind.STALE) == expected
    assert expected


async def test_disputed(rows: Rows, checks: VerdictChecks) -> None:
    random, expected = Random(8), {}
    for n in range(GROUPS // 4):
        topic, group = rows.topic(f"t{n}", 3), rows.group(f"g{n}")
        instants = [random.choice([None, around(random, NOW - T.stale_ms)]) for _ in range(3)]
        for partition, at in enumerate(instants):
            rows.watermark(topic, partition, 9, lower_at=at)
        rows.owner(group, f"t{n}", 0, 1)
        lately = [since for at in instants[:2] if (since := disputed(at, T, NOW)) is not None]
        if lately:
            expected[f"g{n}", f"t{n}"] = (min(lately), len(lately))
    await checks.check_offsets()
    assert found(rows, VerdictKind.DISPUTED) == expected
    assert 0 < len(expected) < GROUPS // 4


async def test_uncovered(rows: Rows, checks: VerdictChecks) -> None:
    random, expected = Random(6), {}
    for topic in ("a", "b"):
        rows.topic(topic, 3)
    for n in range(GROUPS):
        state = random.choice(["Stable", "Stable", "CompletingRebalance"])
        since, consumer = around(random, NOW - T.uncovered_ms), n % 2 == 0 and state == "Stable"
        group = rows.group(
            f"g{n}", state, since, type="consumer" if consumer else "classic",
            resolution=RESOLVED if consumer else None,
        )  # fmt: skip
        if consumer:
            rows.consumer_member(group, "m", NOW, NOW + 45_000, subscribed_topic_names=["a", "not-there"])
            rows.consumer_member(group, "n", NOW, NOW + 45_000, subscribed_topic_regex="b.*")
        else:
            rows.generation_topics(group, ["a", "b", "not-there"])
        owned = {"a": random.randint(0, 3), "b": random.randint(0, 3)}
        for topic, count in owned.items():
            rows.owner(group, topic, *range(count))
        decodable = consumer or any(owned.values())
        for topic, count in owned.items():
            if decodable and uncovered(3, count, state, since, T, NOW):
                expected[f"g{n}", topic] = (NOW, 3 - count)
    await checks.check_offsets()
    assert found(rows, VerdictKind.UNCOVERED) == expected
    assert len(expected) > GROUPS // 5


async def test_expiring(rows: Rows, checks: VerdictChecks, runtime: Runtime) -> None:
    """As retention itself decides, group by group."""
    random, expected = Random(7), {}
    retention = runtime.get(RetentionService)
    commits: dict[str, list[StoredOffset]] = {}
    for n in range(GROUPS):
        name, consumer = f"g{n}", n % 3 == 0
        protocol_type = random.choice(["consumer", "consumer", "connect", None])
        state = random.choice(["Stable", "Empty"] if consumer else ["Stable", "Empty", "PreparingRebalance"])
        limit = NOW + T.expiring_ms - retention.retention_ms
        group = rows.group(
            name, state, around(random, limit), type="consumer" if consumer else "classic",
            protocol_type="consumer" if consumer else protocol_type, assignment_epoch=1,
            resolution=random.choice([RESOLVED, None]) if consumer else None,
        )  # fmt: skip
        if state != "Empty" and consumer:
            regex = random.choice(["", "b.*"])
            rows.consumer_member(
                group, "m", NOW, NOW + 45_000, subscribed_topic_names=["a"], subscribed_topic_regex=regex
            )
        elif state != "Empty":
            rows.member(group, "m", NOW)
        if not consumer and random.random() < 0.6:
            rows.generation_topics(group, random.choice([[], ["a"]]) if state != "Empty" else [])
        for pin in random.choice([[], [], [], [""], ["c"]]):
            rows.pin(name, pin)
        commits[name] = []
        for topic in ("a", "b", "c"):
            at = around(random, limit)
            expire = random.choice([None, None, NOW + T.expiring_ms, NOW + T.expiring_ms + 1])
            rows.commit(group, topic, 0, 5, at, expire)
            commits[name].append(StoredOffset(topic, 0, at, expire))
    for name, offsets in commits.items():
        rule = await retention.rule(name)
        assert rule is not None
        for offset in offsets:
            at = expiring(rule.fate(offset).expires_at, T, NOW)
            if at is not None:
                expected[name, offset.topic] = (at - T.expiring_ms, 1)
    await checks.check_offsets()
    assert found(rows, VerdictKind.EXPIRING) == expected
    assert GROUPS // 5 < len(expected) < 2 * GROUPS


async def test_items_that_nobody_works_on_or_settles_or_that_were_given_up(rows: Rows, checks: VerdictChecks) -> None:
    random = Random(9)
    expected: dict[VerdictKind, Found] = {kind: {} for kind in ITEMS}
    rows.topic("a", 2)
    for n in range(GROUPS):
        state = random.choice(["Empty", "Stable"])
        since = around(random, NOW - T.stalled_ms)
        group = rows.group(f"g{n}", state, since, type="share")
        waits, kept, dead = 0, [], []
        for number in range(2):
            following, end = random.choice([(0, 0), (5, 5), (0, 7), (None, 9)])
            part = rows.share_partition(group, "a", number, following, end)
            items = max(end - following, 0) if following is not None else 0
            if random.random() < 0.3:
                due = around(random, NOW)
                rows.share_retry(part, 3, due)
                items += 3 if due <= NOW else 0
            if unattended(items, state, since, T, NOW) is not None:
                waits += 1
            if random.random() < 0.3:
                acquired = around(random, NOW - T.stalled_ms)
                rows.share_lock(part, 2, acquired)
                kept += [acquired] if unsettled(acquired, T, NOW) is not None else []
            if random.random() < 0.3:
                dead.append(NOW - random.randint(1, 1_000))
                rows.share_dead(part, 4, at=dead[-1])
        key = f"g{n}", "a"
        if waits:
            expected[VerdictKind.UNATTENDED][key] = (since, waits)
        if kept:
            expected[VerdictKind.UNSETTLED][key] = (min(kept), 2 * len(kept))
        if dead:
            expected[VerdictKind.DEAD_LETTERS][key] = (min(dead), 4 * len(dead))
    await checks.check_offsets()
    for kind in ITEMS:
        assert found(rows, kind) == expected[kind], kind
        assert 5 < len(expected[kind]) < GROUPS
