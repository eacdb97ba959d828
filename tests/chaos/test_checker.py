"""The checker on forged histories: it accepts a good one, and finds each kind of violation and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.chaos import forged
from tests.chaos.checker import check
from tests.chaos.checks import commits, epochs, ownership, removals, settling
from tests.chaos.checks.sessions import Clock
from tests.chaos.forged import FINISH, QUIET, SESSION_S, TOPIC, answer, beats, event, good, joined, line
from tests.chaos.history import Line, Writer, read

SETTLE_S = 15.0
Spoil = Callable[[list[Line]], list[Line]]


def without(lines: list[Line], kind: str, **fields: Any) -> list[Line]:
    """The history without the lines of a kind that have these fields."""
    left = [x for x in lines if x["k"] != kind or any(x.get(k) != v for k, v in fields.items())]
    assert len(left) < len(lines), (kind, fields)
    return left


def moved(lines: list[Line], kind: str, t: float, to: float) -> list[Line]:
    """The history with the lines of a kind at `t` at another time."""
    return [{**x, "t": to} if x["k"] == kind and x["t"] == t else x for x in lines]


def test_a_good_history_keeps_every_promise() -> None:
    report = check(good(), SETTLE_S)
    assert report.violations == []
    promises = {ownership.PROMISE, commits.KEPT, commits.FENCED, commits.ORDERED, commits.READ, epochs.MEMBERS}
    promises |= {epochs.GROUPS, epochs.OWNERS, settling.STABLE, settling.OWNED}
    assert {promise for promise, count in report.checks.items() if count} == promises
    assert report.figures["settled after s"] == 0.0


def test_the_order_of_lines_does_not_matter() -> None:
    assert check(good()[::-1], SETTLE_S).checks == check(good(), SETTLE_S).checks


def two_owners(lines: list[Line]) -> list[Line]:
    """b is assigned what a revokes a moment later."""
    return [{**x, "t": 19.99} if x["k"] == "assigned" and x["m"] == "c1/b" else x for x in lines]


def never_given_up(lines: list[Line]) -> list[Line]:
    """a never gives anything up, and its session goes on."""
    return without(lines, "revoked", m="c0/a")


def commit_lost(lines: list[Line]) -> list[Line]:
    """The second commit was acknowledged, and nothing of it is in Postgres."""
    lines = without(lines, "journal", id=2)
    return [{**x, "offset": 10} if x["k"] == "committed" else x for x in lines]


def view_behind(lines: list[Line]) -> list[Line]:
    """The journal has it, what a fetch would return does not."""
    return [{**x, "offset": 10} if x["k"] == "committed" else x for x in lines]


def fenced_commit(lines: list[Line]) -> list[Line]:
    """After b's commit one of a lands, in the generation before, of a higher offset."""
    lines = [{**x, "offset": 13} if x["k"] == "committed" else x for x in lines]
    return [*lines, forged.journal(3, 1, "c0/a", 1, 13)]


def overtaken(lines: list[Line]) -> list[Line]:
    """A request that was given up lands late and sets the offset back."""
    lines = [{**x, "offset": 11} if x["k"] == "committed" else x for x in lines]
    return [*lines, forged.journal(3, 2, "c1/b", 1, 11)]


def acknowledged_out_of_order(lines: list[Line]) -> list[Line]:
    """b's second commit was sent when the first was acknowledged, and stands before it. The offsets are equal."""
    lines = without(lines, "journal", id=2)
    again = answer(26.0, "c1/b", "offsets/commit", gen=2, offsets=[[TOPIC, 1, 12]], member_id="id-twin")
    twin = {**forged.journal(2, 2, "c1/b", 1, 12), "member_id": "id-twin"}
    return [*lines, again, twin, forged.journal(3, 2, "c1/b", 1, 12)]


def stale_read(lines: list[Line]) -> list[Line]:
    """b begins before what a had committed."""
    return [{**x, "offsets": [[TOPIC, 1, 9]]} if x.get("api") == "offsets/fetch" else x for x in lines]


def member_goes_back(lines: list[Line]) -> list[Line]:
    """a is told an older generation than before; b sees nothing of it."""
    return [*lines, answer(40.0, "c0/a", "consumer-heartbeat", gen=1)]


def join_goes_back(lines: list[Line]) -> list[Line]:
    """A new member joins a generation that was over."""
    return [*lines, answer(40.0, "c1/b", "join", gen=1, member_id="id-new")]


def event_goes_back(lines: list[Line]) -> list[Line]:
    """The timeline of the group has a lower generation after a higher one."""
    return [*lines, event(4, 50.0, "rebalance_completed", 1)]


def epoch_used_twice(lines: list[Line]) -> list[Line]:
    """Two owners with one epoch."""
    return [*lines, forged.change(3, 2, 1)]


def gap_falls(lines: list[Line]) -> list[Line]:
    """The counter of gaps goes back."""
    return [*lines, forged.change(3, 3, 0)]


def expired_early(lines: list[Line]) -> list[Line]:
    """a's last heartbeat before was sent at 45.9; the session is 10 s."""
    return [*lines, event(4, 49.0, "member_expired", 2, "c0/a", "session_expired")]


def removed_by_outage(lines: list[Line]) -> list[Line]:
    """Nothing ran for 20 s; somebody who was not heard of before is removed right after it."""
    outage = line("outage", 30.0, s=20.0)
    return [*lines, outage, event(4, 51.0, "member_expired", 2, "c9/z", "session_expired")]


def still_rebalancing(lines: list[Line]) -> list[Line]:
    """b begins to rebalance and does not end."""
    return [*lines, line("state", 70.0, m="c1/b", s="rebalancing")]


def settles_late(lines: list[Line]) -> list[Line]:
    """b is stable, but only 17 s after the last fault."""
    return [
        *lines,
        line("state", QUIET + 1, m="c1/b", s="rebalancing"),
        line("state", QUIET + 17, m="c1/b", s="stable"),
    ]


def nobody_owns(lines: list[Line]) -> list[Line]:
    """b gave its partition up, and nobody got it."""
    return [*lines, line("revoked", 70.0, m="c1/b", ps=[[TOPIC, 1]])]


def group_disagrees(lines: list[Line]) -> list[Line]:
    """The members believe to be stable; the group in Postgres has one member more."""
    return [{**x, "members": 3} if x["k"] == "left" else x for x in lines]


def cut_short(lines: list[Line]) -> list[Line]:
    """The run ended before it was quiet."""
    return without(lines, "finish")


@pytest.mark.parametrize(
    ("spoil", "broken"),
    [
        (two_owners, {ownership.PROMISE}),
        (never_given_up, {ownership.PROMISE}),
        (commit_lost, {commits.KEPT}),
        (view_behind, {commits.KEPT}),
        (fenced_commit, {commits.FENCED}),
        (overtaken, {commits.ORDERED}),
        (acknowledged_out_of_order, {commits.ORDERED}),
        (stale_read, {commits.READ}),
        (member_goes_back, {epochs.MEMBERS}),
        (join_goes_back, {epochs.GROUPS}),
        (event_goes_back, {epochs.GROUPS}),
        (epoch_used_twice, {epochs.OWNERS}),
        (gap_falls, {epochs.OWNERS}),
        (expired_early, {removals.PROMISED}),
        (removed_by_outage, {removals.OUTAGE}),
        (still_rebalancing, {settling.STABLE}),
        (settles_late, {settling.STABLE}),
        (nobody_owns, {settling.OWNED}),
        (group_disagrees, {settling.STABLE}),
        (cut_short, {settling.STABLE}),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_it_finds(spoil: Spoil, broken: set[str]) -> None:
    report = check(spoil(good()), SETTLE_S)
    assert report.broken() == broken, report.violations


# Histories that look like violations, but are not.


@pytest.mark.parametrize("spoil", [still_rebalancing, nobody_owns], ids=lambda spoil: spoil.__name__)
def test_a_run_waits_for_what_its_members_do_not_know_yet(spoil: Spoil) -> None:
    while_it_runs = sorted((x for x in good() if x["t"] < 70.0), key=lambda x: float(x["t"]))
    assert settling.unsettled(while_it_runs) == []
    assert settling.unsettled(spoil(while_it_runs))


def test_a_member_that_was_cut_off_owns_nothing_once_its_session_may_be_over() -> None:
    """a hears nothing after 12 (sent 11.9), is removed at 21.95, told at 30; b has its partition from 22 on."""
    lines = without(without(good(), "revoked", m="c0/a"), "assigned", m="c0/a", t=21.1)
    lines = [x for x in lines if x["k"] == "assigned" or x.get("m") != "c0/a" or x["t"] <= 12.0]
    lines += [line("lost", 30.0, m="c0/a", ps=[[TOPIC, 0], [TOPIC, 1]]), *joined(31.0, "c0/a", 3)]
    lines += [line("assigned", 31.1, m="c0/a", ps=[[TOPIC, 0]]), *beats("c0/a", 3, 33, 81)]
    assert check(moved(lines, "assigned", 21.1, 22.0), SETTLE_S).violations == []
    early = check(moved(lines, "assigned", 21.1, 21.5), SETTLE_S)
    assert early.broken() == {ownership.PROMISE}, "a tenth of a second before 11.9 + 10 is still a's"


def test_a_member_without_a_heartbeat_is_surely_one_until_its_last_request_was_accepted() -> None:
    """a joins generation 2 (its sync was sent at 20.9), is frozen before its first heartbeat, and is told at 40."""
    lines = [x for x in good() if x.get("m") != "c0/a" or x["t"] <= 2.1 or 20.0 <= x["t"] <= 21.1]
    lines += [line("lost", 40.0, m="c0/a", ps=[[TOPIC, 0]]), *joined(41.0, "c0/a", 3)]
    lines += [line("assigned", 41.1, m="c0/a", ps=[[TOPIC, 0]]), *beats("c0/a", 3, 42, 81)]
    taken = [line("assigned", 30.0, m="c1/b", ps=[[TOPIC, 0]]), line("revoked", 39.0, m="c1/b", ps=[[TOPIC, 0]])]
    assert check([*lines, *taken], SETTLE_S).violations == []
    alive = answer(29.0, "c0/a", "heartbeat", gen=2)
    assert check([*lines, *taken, alive], SETTLE_S).broken() == {ownership.PROMISE}


def test_a_sync_that_is_repeated_promises_no_session() -> None:
    """a's last heartbeat was sent at 45.9; it syncs again at 55, which is told what was stored, and expires at 57."""
    lines = [x for x in good() if x.get("m") != "c0/a" or not 46.0 < x["t"] < 58.0]
    lines += [answer(55.0, "c0/a", "sync", gen=2), event(4, 57.0, "member_expired", 2, "c0/a", "session_expired")]
    assert check(lines, SETTLE_S).violations == []


def test_a_killed_process_owns_nothing() -> None:
    lines = without(good(), "revoked", m="c0/a")
    lines = [x for x in lines if x.get("m") != "c0/a" or x["t"] < 19.0]
    lines += [line("killed", 19.5, crew="c0"), line("begin", 22.0, m="c2/n", g="g", session_s=SESSION_S)]
    lines += [*joined(23.0, "c2/n", 2), line("assigned", 23.1, m="c2/n", ps=[[TOPIC, 0]]), *beats("c2/n", 2, 24, 81)]
    assert check(lines, SETTLE_S).violations == []
    assert check(without(lines, "killed"), SETTLE_S).broken() == {settling.STABLE, ownership.PROMISE}


def test_a_session_may_end_earlier_by_as_much_as_the_clock_jumped() -> None:
    lines = expired_early(good())
    assert check([*lines, line("jump", 47.0, s=7.0)], SETTLE_S).violations == []
    assert check([*lines, line("jump", 45.0, s=7.0)], SETTLE_S).broken() == {removals.PROMISED}, "before the heartbeat"
    assert check([*lines, line("jump", 47.0, s=6.5)], SETTLE_S).broken() == {removals.PROMISED}


def test_a_renewal_that_may_have_come_after_the_removal_promises_nothing() -> None:
    """Sent before the removal, answered after it: the service may have handled it afterwards, for another life."""
    lines = [*good(), event(4, 52.0, "member_expired", 2, "c0/a", "session_expired")]
    lines = [x for x in lines if x.get("m") != "c0/a" or not 41.0 < x["t"] < 53.0]
    assert check(lines, SETTLE_S).violations == []
    crossing = answer(53.0, "c0/a", "heartbeat", gen=2, sent=51.0)
    assert check([*lines, crossing], SETTLE_S).violations == []
    assert check([*lines, {**crossing, "t": 51.5}], SETTLE_S).broken() == {removals.PROMISED}


def test_removals_a_session_after_an_outage_are_no_fault_of_it() -> None:
    outage = line("outage", 30.0, s=20.0)
    late = event(4, 50.0 + SESSION_S, "member_expired", 2, "c9/z", "session_expired")
    assert check([*good(), outage, late], SETTLE_S).violations == []


def test_a_clock_that_jumps_past_the_end_ends_a_session_when_it_jumps() -> None:
    clock = Clock([line("jump", 5.0, s=60.0)])
    assert clock.earliest_end(0.0, SESSION_S) == 5.0
    assert clock.earliest_end(6.0, SESSION_S) == 16.0
    assert Clock([line("jump", 5.0, s=2.0)]).earliest_end(0.0, SESSION_S) == 8.0


def test_histories_of_several_processes_are_one(tmp_path: Any) -> None:
    for name, t in (("a", 2.0), ("b", 1.0)):
        writer = Writer(tmp_path / name)
        writer.write("state", m=name, s="stable", t=t)
        writer.close()
    with (tmp_path / "a").open("a") as torn:
        torn.write('{"k":"state","t":3.0,"m"')
    assert [x["m"] for x in read(tmp_path / "a", tmp_path / "b")] == ["b", "a"]
    assert FINISH > QUIET


def test_a_wait_begins_with_the_first_request_that_failed() -> None:
    lines = [
        *[x for x in good() if x.get("m") != "c0/a" or not 30.0 < x["t"] < 33.0],
        answer(30.5, "c0/a", "offsets/commit", sent=30.4, error="disconnected", gen=2),
        answer(31.0, "c0/a", "offsets/commit", sent=30.9, error="NOT_COORDINATOR", gen=2),
        *forged.commit(32.4, "c0/a", 2, 0, 1, 9),
        line("committed", FINISH + 1, g="g", topic=TOPIC, p=0, offset=1),
        line("over", 30.1, name="kill"),
    ]
    report = check(lines, SETTLE_S)
    assert report.violations == []
    assert report.figures["longest wait s, kill"] == 2.0
