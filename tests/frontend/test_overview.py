"""The overview: its words, its parts that fail by themselves, and what it reads."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from frontend.pages.group.look import as_shown
from frontend.pages.groups.reads import Wanted, group_list
from frontend.pages.overview import view as presenters
from frontend.pages.overview.parts import (
    BAD,
    GOOD,
    GROUPS_SHOWN,
    OFF,
    UNKNOWN,
    WATCH,
    Alerts,
    Archive,
    Celery,
    HealthLine,
    Limits,
    OverviewParts,
    Part,
    Postgres,
    Sampler,
    health,
)
from frontend.ui.rows import GroupHeader
from frontend.ui.verdicts import KINDS, PLACES, lines
from frontend.ui.viewer import Viewer
from groups.core.model.types import VerdictKind
from groups.nodes.overview import NodeView, SeenPartition
from groups.nodes.overview import Overview as Nodes
from kcoord.config import Config
from kcoord.database.pool import PoolUsage
from kcoord.database.task_health import TaskHealth
from kcoord.door.http.health import Check
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.alerts.types import Outcomes
from offsets.core.verdicts import Verdict
from offsets.verdicts import Minute, VerdictReads, summaries
from tests.frontend.seed import Seed
from tests.frontend.verdict_seed import judged, troubled, verdict
from tests.frontend.viewers import ALL, LOOK, allow, viewer

NOW = 1_700_000_000_000
LIMITS = Limits(timers_ms=15_000, sample_ms=60_000, check_ms=5_000)


def texts(*verdicts: Verdict, state: str = "Stable") -> list[str]:
    """What is wrong, for each kind."""
    return [line.text for line in lines(summaries(verdicts), state, window_ms=600_000)]


def test_every_kind_has_its_words_and_its_place() -> None:
    assert set(KINDS) == set(PLACES) == set(VerdictKind)
    for kind in VerdictKind:
        (line,) = lines(summaries([Verdict(kind, NOW, "t", NOW, 1, 1, ("1",))]), "PreparingRebalance", window_ms=1)
        assert line.state.name == kind.value
        assert line.text.endswith(".")
        assert line.advice.endswith(".")


def test_rebalances_are_counted_in_the_time_that_is_set() -> None:
    found = summaries([Verdict(VerdictKind.FLAPPING, 1, number=12)])
    assert [line.text for line in lines(found, "Stable", window_ms=240_000)] == ["12 rebalances within 4 min."]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([Verdict(VerdictKind.UNCOVERED, 1, "orders", None, 1, None, ("3",))], "Partition 3 of orders has no owner."),
        (
            [Verdict(VerdictKind.UNCOVERED, 1, "orders", None, 40, None, tuple("01234"))],
            "40 partitions of orders have no owner.",
        ),
        (
            [Verdict(VerdictKind.STALLED, 1, topic, None, 2, 50, ("1", "2")) for topic in ("a", "b", "c", "d", "e")],
            "10 partitions of a, b and 3 more topics make no progress while 250 records wait.",
        ),
        ([Verdict(VerdictKind.LATE, 1, "", 5, 1, None, ("worker-1",))], "worker-1 sends no heartbeats."),
        ([Verdict(VerdictKind.LATE, 1, "", 5, 2, None, ("a", "b"))], "2 members send no heartbeats: a and b."),
        (
            [Verdict(VerdictKind.LATE, 1, "", 5, 4_000, None, ("a", "b", "c", "d", "e"))],
            "4,000 members send no heartbeats: a, b and 3,998 more.",
        ),
        ([Verdict(VerdictKind.LATE, 1, "", 5, 2)], "2 members send no heartbeats."),
        (
            [Verdict(VerdictKind.STALE, 1, "orders", None, 2, None, ("1", "2"))],
            "No new watermarks are reported of partitions 1 and 2 of orders.",
        ),
        ([Verdict(VerdictKind.EXPIRING, 1, "orders", 5, 1)], "1 committed offset of orders will be removed."),
    ],
)
def test_words(verdicts: list[Verdict], expected: str) -> None:
    assert texts(*verdicts) == [expected]


def test_a_stuck_group_has_one_wait_on_its_page(person: Client, seed: Seed) -> None:
    seed.group("late", "PreparingRebalance", since_ms_ago=7_200_000, join_deadline_in=60_000)
    page = person.get("/groups/late").content.decode()
    since = re.findall(r'need-since"><time datetime="([^"]*)"|State since</dt><dd><time datetime="([^"]*)"', page)
    assert len(since) == 2
    assert len({one or other for one, other in since}) == 1
    before = "(?:The wait ends</span> |are removed</span> |Next timer</dt><dd><span[^>]*>)"
    ends = re.findall(before + r'<time datetime="([^"]*)"', page)
    assert len(ends) == 3
    assert len(set(ends)) == 1


def test_a_verdict_read_after_its_page_has_the_instants_of_the_page() -> None:
    header = GroupHeader(
        1,
        "g",
        "classic",
        "PreparingRebalance",
        "Stable",
        5_000,
        7,
        "consumer",
        "range",
        None,
        90_000,
        None,
        None,
        0,
        0,
        0,
    )
    stored = Verdict(VerdictKind.STUCK, 9_000, due_at=80_000)
    late = Verdict(VerdictKind.LATE, 9_000, number=1)
    assert as_shown(header, [stored, late]) == [Verdict(VerdictKind.STUCK, 5_000, due_at=90_000), late]
    assert as_shown(replace(header, join_deadline=None, sync_deadline=70_000), [stored])[0].due_at == 70_000
    assert as_shown(replace(header, state="Stable"), [stored, late]) == [late]


def test_a_stuck_group_says_what_its_state_means() -> None:
    (text,) = texts(Verdict(VerdictKind.STUCK, 1), state="Assigning")
    assert text == "“Assigning” does not end. The group changed: the coordinator computes a new target assignment."


async def test_the_summary_of_stored_verdicts_is_that_of_verdicts(seed: Seed, runtime: Runtime) -> None:
    pk = seed.group("g")
    made = [
        Verdict(VerdictKind.STALLED, 9, "b", None, 2, 5, ["1", "2"]),
        Verdict(VerdictKind.STALLED, 7, "a", None, 1, 6, ["3"]),
        Verdict(VerdictKind.LATE, 8, "", 50, 1, None, ["m"]),
    ]
    for one in made:
        seed.connection.execute(
            "insert into offsets_groupverdict (group_id, kind, topic, since, due_at, number, lag, names)"
            " values (%s, %s, %s, %s, %s, %s, %s, %s)",
            [pk, one.kind.value, one.topic, one.since, one.due_at, one.number, one.lag, list(one.names)],
        )
    found = await runtime.get(VerdictReads).attention(10)
    assert list(found.groups[0].verdicts) == summaries(made)
    assert found.counts == {VerdictKind.STALLED: 1, VerdictKind.LATE: 1}


async def test_the_worst_groups_come_first_whatever_their_number(seed: Seed, runtime: Runtime) -> None:
    for number in range(12):
        pk = seed.group(f"late-{number:02}")
        verdict(seed, pk, "late", ms_ago=1_000 * number)
    pk = seed.group("worse")
    for topic in range(200):
        verdict(seed, pk, "stalled", f"t{topic}", ms_ago=10)
    verdict(seed, seed.group("worst"), "uncovered", "t", ms_ago=1)
    verdict(seed, pk, "late", ms_ago=9_000_000)
    found = await runtime.get(VerdictReads).attention(4)
    assert [group.group_id for group in found.groups] == ["worst", "worse", "late-11", "late-10"]
    assert found.total == 14


NODE = SeenPartition(0, "ACTIVE", "n", 1, 1, 0, 1, 5)
WELL = {
    "server": {"database": Check(True)},
    "nodes": Nodes(NOW, [], [NODE], []),
    "celery": Celery(NOW - 900, True, TaskHealth({}, 0)),
    "sampler": Sampler(NOW - 30_000, {"members": NOW - 4_000, "offsets": NOW - 30_000}),
    "postgres": Postgres("18.1", 0.8, 20, 100, {"read": PoolUsage(1, 2, 8, 0)}),
    "archive": Archive("", ()),
    "alerts": Alerts({"billing is stuck": 2}, Outcomes(5, 0, 0, None, None)),
}


def shown(**changes: object) -> dict[str, HealthLine]:
    """The lines of health by name."""
    parts = {name: Part(value, NOW) for name, value in {**WELL, **changes}.items()}
    return {line.name: line for line in health(parts, NOW, LIMITS, {})}


def test_nothing_is_wrong_with_a_service_that_is_well() -> None:
    states = {name: line.state for name, line in shown().items()}
    assert states.pop("Archive") is OFF
    assert set(states.values()) == {GOOD}
    assert len(states) == 8


@pytest.mark.parametrize(
    ("part", "value", "name", "state", "text"),
    [
        ("server", {"disk": Check(False, "the disk is full")}, "Server", BAD, "the disk is full"),
        ("server", {"timers": Check(False, "20 s ago")}, "Server", BAD, "20 s ago"),  # its /readyz is 503
        ("nodes", Nodes(NOW, [], [replace(NODE, state="CLOSED")], []), "Nodes", BAD, "1 partition without an owner"),
        ("celery", Celery(None, True, TaskHealth({}, 0)), "Celery", BAD, "never run"),
        ("celery", Celery(NOW - 16_000, True, TaskHealth({}, 0)), "Celery", BAD, "does not run"),
        ("celery", Celery(NOW, True, TaskHealth({"x": 2}, 101)), "Queue", WATCH, "101 tasks waiting; 2 failed tasks"),
        ("celery", Celery(NOW, False, TaskHealth({}, None)), "Queue", OFF, "another broker"),
        ("sampler", Sampler(NOW, {"offsets": NOW}), "Verdicts", BAD, "by their members"),
        ("sampler", Sampler(NOW, {"offsets": NOW - 200_000, "members": NOW}), "Verdicts", BAD, "by their offsets"),
        ("sampler", Sampler(NOW - 200_000, WELL["sampler"].judged_at), "Sampler", WATCH, "sampled"),  # type: ignore[attr-defined]
        ("postgres", Postgres("18", 1, 95, 100, {}), "Postgres", WATCH, "95 of 100"),
        ("postgres", Postgres("18", 1, 9, 99, {"read": PoolUsage(8, 0, 8, 3)}), "Postgres", WATCH, "3 requests wait"),
        ("postgres", Postgres("18", 1, 9, 99, {"read": PoolUsage(2, 0, 8, 3)}), "Postgres", GOOD, "9 of 99"),
        ("archive", Archive("/archive", ()), "Archive", OFF, "no run yet"),
    ],
)
def test_what_is_wrong_is_said(part: str, value: object, name: str, state: object, text: str) -> None:
    line = shown(**{part: value})[name]
    assert line.state is state
    assert text in line.text


@pytest.mark.parametrize(
    ("node_id", "reason", "ago_ms", "state"),
    [
        ("node-3", "lapsed", 60_000, WATCH),
        ("node-3", None, 60_000, WATCH),  # no other node has noticed yet
        ("node-3", "lapsed", 3_700_000, GOOD),
        ("node-3", "stopped", 60_000, GOOD),
        ("node-1", "lapsed", 60_000, GOOD),  # it is back
    ],
)
def test_a_node_that_lapsed_is_missed_for_an_hour(node_id: str, reason: str | None, ago_ms: int, state: object) -> None:
    live = NodeView("node-1", 5, None, "1", NOW - 9_000, NOW, NOW + 3_000, True, None, None, [0])
    gone = replace(live, node_id=node_id, live=False, lease_expires_at=NOW - ago_ms, end_reason=reason, partitions=[])
    line = shown(nodes=Nodes(NOW, [live, gone], [NODE], []))["Nodes"]
    assert line.state is state
    assert (line.text, line.at) == (
        ("1 live node; node-3 lapsed", NOW - ago_ms) if state is WATCH else ("1 live node, 1 partition active", None)
    )


def test_a_part_that_was_never_read_is_unknown() -> None:
    parts = {name: Part(value, NOW) for name, value in WELL.items()} | {"nodes": Part(failed="no connection")}
    line = next(line for line in health(parts, NOW, LIMITS, {}) if line.name == "Nodes")
    assert (line.state, line.failed) == (UNKNOWN, "no connection")


def test_bars_are_drawn_where_their_minutes_are() -> None:
    minutes = [Minute(NOW - 60_000 * (age + 1), NOW - 60_000 * age, 100.0 * (age + 1), 0) for age in (59, 1, 0)]
    commits, rebalances = presenters.rates(minutes, NOW)
    assert commits.lines[0].values == "6,000" + "|" * 58 + "200|100"
    assert (commits.latest, rebalances.latest) == ("100", "0")
    assert presenters.rates([], NOW)[0].latest == ""


def test_a_minute_of_the_drawing_has_what_was_counted_around_its_middle() -> None:
    ends = [NOW - age for age in (3_600_000, 3_540_000 - 9_000, 3_480_000 - 18_000, 600_000)]
    minutes = [Minute(since, at, n, 0, 7) for n, (since, at) in enumerate(pairwise(ends), 1)]
    (commits, _) = presenters.rates(minutes, NOW)
    assert commits.lines[0].values == "1|2|" + "|".join(["3"] * 48), "nobody counted for 48 minutes"
    assert commits.latest == "", "that was ten minutes ago"
    assert presenters.trend(minutes, NOW).unknown is not None
    assert presenters.trend([Minute(NOW - 60_000, NOW, 5, 0)], NOW).empty, "unknown is not 0"


@pytest.fixture
async def parts(database: str) -> AsyncIterator[OverviewParts]:
    """What reads the parts, in a service of its own."""
    from kcoord.process import runtime as runtimes

    running = Runtime(Config({}), database)
    await running.start()
    runtimes.use(running)
    yield running.get(OverviewParts)
    runtimes.use(None)
    await running.stop()


async def test_a_part_that_fails_blanks_only_itself_and_stays_as_it_was(
    seed: Seed, parts: OverviewParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    troubled(seed)
    monkeypatch.setattr("frontend.pages.overview.parts.REPEATED_SECONDS", 0)
    before = await parts.read(ALL)
    assert {name: part.failed for name, part in before.items() if part.failed} == {}

    async def unavailable(self: OverviewParts, viewer: Viewer) -> None:
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "no connection")

    async def refused(self: OverviewParts) -> None:
        raise psycopg.errors.InsufficientPrivilege("pg_stat_activity")

    monkeypatch.setattr(OverviewParts, "_attention", unavailable)
    monkeypatch.setattr(OverviewParts, "_postgres", refused)
    after = await parts.read(ALL)
    assert {name: part.failed for name, part in after.items() if part.failed} == {
        "attention": "no connection",
        "postgres": "The database refused to read it.",
    }
    assert after["attention"].value == before["attention"].value
    assert after["attention"].at == before["attention"].at
    assert (after["counts"].at or 0) >= (before["counts"].at or 0)


async def test_the_number_of_statements_does_not_grow_with_the_groups(
    seed: Seed, parts: OverviewParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontend.pages.overview.parts.REPEATED_SECONDS", 0)
    executed = []
    execute = psycopg.AsyncCursor.execute

    async def counted(self: psycopg.AsyncCursor[Any], *args: Any, **kwargs: Any) -> Any:
        if not any(name in str(args[0]) for name in ("limit_session", "read_origin")):  # of a new connection
            executed.append(args[0])
        return await execute(self, *args, **kwargs)

    await parts.read(ALL)  # some things are looked at only once
    monkeypatch.setattr(psycopg.AsyncCursor, "execute", counted)
    counts = []
    for groups in (10, 1_000):
        seed.many_groups(groups)
        seed.connection.execute(
            "insert into offsets_groupverdict (group_id, kind, topic, since, number, names)"
            " select id, 'stalled', 't' || n, id, 1, '{}' from groups_group, generate_series(1, 9) n"
        )
        executed.clear()
        found = (await parts.read(ALL))["attention"].value.found
        assert len(found.groups) == min(GROUPS_SHOWN, groups)
        counts.append(len(executed))
        seed.connection.execute("truncate groups_group, offsets_groupverdict restart identity cascade")
    assert counts[0] == counts[1] < 50


async def test_many_viewers_cost_as_much_as_one(
    seed: Seed, parts: OverviewParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontend.pages.overview.parts.REPEATED_SECONDS", 60)
    seed.group("billing")
    first = await parts.read(ALL)
    seed.group("g")
    assert await parts.read(ALL) == first
    (counted,) = (await parts.read(viewer("describe:group:bil*")))["counts"].value
    assert counted == ("classic", "Stable", 1), "who sees other groups is not shown the same"


def test_the_landing_page(person: Client, seed: Seed) -> None:
    troubled(seed)
    page = person.get("/")
    assert page.status_code == 200
    text = page.content.decode()
    assert "7 of 8 groups need attention" in text
    assert text.count('class="need"') == 7
    assert "Partitions 12 and 13 of orders have no owner." in text
    assert "/groups/payments-settlement?#partitions-title" in text


def behind(seed: Seed) -> None:
    """Groups that are behind on two topics, on one, on none, and by what nobody knows."""
    for group_id, lags in {"g1": {"orders": 30, "payments": 10}, "g2": {"orders": 2}, "g3": {"orders": 0}}.items():
        pk = seed.group(group_id)
        seed.group_lag(pk, sum(lags.values()), 60_000 // max(sum(lags.values()), 1))
        at = seed.connection.execute("select at from offsets_grouplag where group_id = %s", [pk]).fetchone()
        assert at is not None
        for topic, lag in lags.items():
            seed.connection.execute(
                "insert into offsets_topiclag (group_id, topic, at, lag, committed_offsets, partitions,"
                " unknown_partitions) values (%s, %s, %s, %s, 0, 1, 0)",
                [pk, topic, at[0], lag],
            )
            seed.connection.execute(
                "insert into offsets_lagsample (group_name, topic, at, lag) values (%s, %s, %s, %s)",
                [group_id, topic, at[0], lag],
            )
    seed.group_lag(seed.group("g4"), None)


@pytest.mark.parametrize(
    ("rules", "total", "known"),
    [
        (LOOK, 42, 3),
        (("describe:group:*", "describe:topic:orders"), 32, 3),
        (("describe:group:g1", "describe:topic:*"), 40, 1),
        (("describe:group:g*", "describe:topic:payments"), 10, 1),
        (("describe:group:*",), None, 0),
    ],
)
async def test_the_total_lag_is_the_sum_of_the_list(
    seed: Seed, parts: OverviewParts, runtime: Runtime, rules: tuple[str, ...], total: int | None, known: int
) -> None:
    behind(seed)
    who = viewer(*rules)
    found = (await parts.read(who))["behind"].value
    listed = [group.lag for group in (await group_list(runtime.db, who, Wanted())).groups]
    assert (found.total.lag, found.total.known) == (total, known)
    assert [lag for lag in listed if lag is not None] == [] if total is None else sum(filter(None, listed)) == total


def test_the_groups_furthest_behind_in_time_come_first(person: Client, seed: Seed) -> None:
    behind(seed)
    text = person.get("/").content.decode()
    assert '<strong><span class="figure">42</span></strong> records behind in 3 of 4 groups' in text
    table = text[text.index("Furthest behind in time</th>") : text.index("All groups by time behind")]
    assert re.findall('href="/groups/(g[0-9])"', table) == ["g3", "g2", "g1"]
    assert "g4" not in table, "whose lag is not known is not first"
    listed = re.findall(
        '<th scope="row"[^>]*><a class="row-link" href="/groups/(g[0-9])"',
        person.get("/groups?sort=-time_lag_ms").content.decode(),
    )
    assert listed[:3] == ["g3", "g2", "g1"]


def test_what_is_known_of_everything_together_is_hidden_and_not_left_out(client: Client, seed: Seed) -> None:
    behind(seed)
    user = get_user_model().objects.create_user("limited")
    allow(user, "describe:group:*", "describe:topic:orders")
    client.force_login(user)
    text = client.get("/").content.decode()
    assert "32</span></strong> records behind in 3 of 4 groups" in text
    assert "that you may see</a>" in text
    assert "Its trend is <span" in text
    assert "furthest behind in time is <span" in text
    assert not re.search(r"\bg3\b", text)


def test_the_landing_page_says_so_where_nothing_is_wrong_or_nothing_is_there(person: Client, seed: Seed) -> None:
    assert "No groups yet" in person.get("/").content.decode()


def test_without_celery_the_page_says_that_nobody_has_judged(person: Client, seed: Seed) -> None:
    seed.group("g")
    text = person.get("/").content.decode()
    assert "Groups have not been judged yet" in text
    assert "Nothing needs attention" not in text


def test_nothing_needs_attention(person: Client, seed: Seed) -> None:
    seed.group("g")
    judged(seed)
    assert "Nothing needs attention" in person.get("/").content.decode()


def test_the_list_filters_by_verdict_and_counts_them(person: Client, seed: Seed) -> None:
    troubled(seed)
    text = person.get("/groups?verdict=late").content.decode()
    assert text.count('class="row-link"') == 2
    assert "2 groups found" in text
    assert person.get("/groups?verdict=fine").status_code == 400
    none = person.get("/groups?verdict=late&q=nothing").content.decode()
    assert "the verdict Late" in none


def test_the_page_of_a_group_has_its_verdicts_as_of_now(person: Client, seed: Seed) -> None:
    pk = seed.group("g", "PreparingRebalance", since_ms_ago=120_000)
    seed.members(pk, ["silent", "heard"], heartbeat_ms_ago=0)
    seed.connection.execute(
        "update groups_member set session_deadline = session_deadline - 30000,"
        " last_heartbeat_at = last_heartbeat_at - 30000 where member_id = 'silent'"
    )
    verdict(seed, pk, "flapping", number=99)
    text = person.get("/groups/g").content.decode()
    assert "(silent) sends no heartbeats." in text
    assert "“Preparing rebalance” does not end.</p>" in text.replace("\n", ""), "why is said above"
    assert "99 rebalances" not in text, "that was some time ago"
    assert text.count(">Late</span>") == 2, "the verdict and the member"


def test_a_group_is_said_to_flap_in_the_same_time_on_every_page(person: Client, seed: Seed) -> None:
    verdict(seed, seed.group("g"), "flapping", number=10)
    for number in range(10):
        seed.event("g", "rebalance_started", number, ms_ago=300_000 + number, cause="member_joined")
    seed.connection.execute("insert into offsets_activity values (1, 0, 0, 0)")  # from which events on
    assert "10 rebalances began in the last 10 min (flapping" in person.get("/groups/g/rebalances").content.decode()
    for path in ("/", "/groups/g", "/groups/g/snapshot.md"):
        assert "10 rebalances within 10 min." in person.get(path).content.decode(), path
