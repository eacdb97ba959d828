"""The members and the faults of a run come from its seed, and from nothing else."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.chaos.run import Plan
from tests.chaos.schedule import OUTAGES, PAUSE_S, SECONDS, TIMELESS, schedule
from tests.chaos.workload import HEARTBEAT_S, workload
from tests.support.make import shown_by_make

SEEDS = range(20)


def test_a_seed_gives_the_same_run_again_and_another_seed_another_one() -> None:
    plan = Plan(seed=7, minutes=5)
    assert (plan.faults(), plan.workload()) == (Plan(seed=7, minutes=5).faults(), Plan(seed=7, minutes=5).workload())
    assert plan.faults() != Plan(seed=8, minutes=5).faults()
    assert plan.workload() != Plan(seed=8, minutes=5).workload()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_longer_run_begins_like_a_shorter_one(seed: int) -> None:
    short, long = schedule(seed, 120, 3, 4), schedule(seed, 600, 3, 4)
    assert long[: len(short)] == short


@pytest.mark.parametrize("seed", SEEDS)
def test_faults_do_not_overlap_and_are_over_in_time(seed: int) -> None:
    faults = schedule(seed, 600, 3, 4)
    for earlier, later in pairwise(faults):
        assert later.at >= earlier.over_at + PAUSE_S[0] - 0.1
    assert faults[-1].over_at <= 600


@pytest.mark.parametrize("seed", SEEDS)
def test_every_kind_has_its_turn_before_one_comes_again(seed: int) -> None:
    names = [fault.name for fault in schedule(seed, 600, 3, 4)]
    assert set(names[: len(SECONDS)]) == set(SECONDS)
    assert set(OUTAGES) | set(TIMELESS) < set(SECONDS)


def test_targets_are_servers_and_crews_that_there_are() -> None:
    targets = {fault.target for seed in SEEDS for fault in schedule(seed, 600, 3, 2)}
    assert targets == {"", "server-1", "server-2", "server-3", "c0", "c1"}


def test_the_workload_has_both_protocols_static_members_and_groups_across_processes() -> None:
    work = workload(7, 200, 14, 4)
    members = [spec for specs in work.crews.values() for spec in specs]
    assert len(members) == len({spec.name for spec in members}) == 200
    assert {group.protocol for group in work.groups} == {"classic", "consumer"}
    assert 20 < sum(spec.instance is not None for spec in members) < 60
    instances = [(spec.group.name, spec.instance) for spec in members if spec.instance]
    assert len(instances) == len(set(instances))
    for group in work.groups:
        crews = {name for name, specs in work.crews.items() if any(spec.group == group for spec in specs)}
        assert len(crews) == 4
        assert group.partitions >= sum(spec.group == group for spec in members)


def test_a_session_outlives_the_lease_a_heartbeat_that_fails_and_one_that_is_repeated() -> None:
    for group in workload(7, 200, 14, 4).groups:
        timeout_s = max(HEARTBEAT_S, group.session_s / 3)
        assert 3.0 + HEARTBEAT_S + timeout_s + 1.0 < group.session_s


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("MINUTES=2", "SEED=5"), "--minutes 2 --seed 5"),
        (("SEED=5", "ARGS=--routing owner"), "--seed 5 --routing owner"),
    ],
)
def test_make_chaos_passes_its_words_on(given: tuple[str, ...], words: str) -> None:
    shown = shown_by_make("chaos", *given)
    assert shown.splitlines()[-1].split() == ["exec", ".venv/bin/python", "-m", "tests.chaos", *words.split()]
