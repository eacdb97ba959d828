"""One run: start the stack and the members, let the nemesis loose, wait for rest, collect, check."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos import ending
from tests.chaos.checker import check
from tests.chaos.checks.report import Report
from tests.chaos.checks.settling import unsettled
from tests.chaos.crews import CrewProcesses, running_crews
from tests.chaos.history import Writer, read
from tests.chaos.nemesis import Nemesis
from tests.chaos.schedule import SECONDS, SESSION_S, Fault, schedule
from tests.chaos.workload import SETTINGS, Workload, workload
from tests.chaos.world import World, running_world

FIRST_REST_S = 240.0
"""How long all members may need to come to rest for the first time, on a busy machine."""

LEASE_S = 3.0


@dataclass(frozen=True)
class Plan:
    """What to run. `minutes`: from the first fault to the last; start and rest come on top.

    `kinds`: of faults, by default all; `routing`: the service's setting, "any" or "owner".
    """

    seed: int
    minutes: float
    nodes: int = 3
    members: int = 200
    groups: int = 14
    crews: int = 4
    routing: str = "any"
    kinds: tuple[str, ...] = tuple(SECONDS)

    def workload(self) -> Workload:
        """Its members."""
        return workload(self.seed, self.members, self.groups, self.crews)

    def faults(self) -> list[Fault]:
        """Its faults."""
        return schedule(self.seed, self.minutes * 60, self.nodes, self.crews, self.kinds)


def routing(seed: int) -> str:
    """The routing of a run of which only the seed is given."""
    return "owner" if seed % 3 == 0 else "any"


def settle_bound_s(first_rest_s: float) -> float:
    """How long members may need after the last fault.

    On a quiet machine: a session of those that are gone, and a rebalance. How much slower this machine is shows in how
    long everybody needed to come to rest for the first time.
    """
    return 60.0 + 4 * first_rest_s


def run(plan: Plan, directory: Path, say: Callable[[str], None]) -> Report:
    """Run it. Writes the merged history to `directory`/history.jsonl. Raises AssertionError if it cannot be run."""
    work = plan.workload()
    history = Writer(directory / "nemesis.jsonl")
    history.write("start", wall=time.time() - time.monotonic(), lease_s=LEASE_S, seed=plan.seed)
    with running_world(plan.nodes, {**SETTINGS, "KCOORD_COORDINATOR_ROUTING": plan.routing}) as world:
        for group in work.groups:
            world.create_topic(group.topic, group.partitions)
            history.write(
                "group", g=group.name, topic=group.topic, partitions=group.partitions, protocol=group.protocol
            )
        options = {name: getattr(plan, name) for name in ("seed", "members", "groups", "crews")}
        with running_crews(list(work.crews), options, world.url, world.token, directory, history) as crews:
            first_rest_s = ending.wait_at_rest(world, work, FIRST_REST_S)
            assert first_rest_s is not None, "the groups did not come to rest before the first fault"
            say(f"{plan.members} members of {plan.groups} groups at rest after {first_rest_s:.1f} s")
            bound_s = settle_bound_s(first_rest_s)
            _let_loose(plan.faults(), Nemesis(world, crews, history), say)
            _come_to_rest(world, work, crews, history, directory, bound_s)
        ending.write_rest(world, history)
        (directory / "stack.log").write_text(world.output)
    history.close()
    lines = read(directory / "nemesis.jsonl", *crews.histories())
    report = check(lines, bound_s)
    report.figures["first rest after s"] = first_rest_s
    report.figures["bound s"] = bound_s
    return report


def _let_loose(faults: Sequence[Fault], nemesis: Nemesis, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    for fault in faults:
        time.sleep(max(0.0, began + fault.at - time.monotonic()))
        late_s = time.monotonic() - began - fault.at
        say(f"{fault.at:6.1f} s  {fault.name} {fault.target} {fault.s:g} s{_late(late_s)}")
        nemesis.carry_out(fault)


def _late(seconds: float) -> str:
    return f" ({seconds:.1f} s late)" if seconds > 1 else ""


def _come_to_rest(
    world: World, work: Workload, crews: CrewProcesses, history: Writer, directory: Path, bound_s: float
) -> None:
    """Members know later than the service that they are stable, so both are waited for."""
    history.write("quiet")
    until = time.monotonic() + bound_s
    time.sleep(SESSION_S + 2.0)  # until then nobody notices who died, and all groups seem to be at rest
    while (left_s := until - time.monotonic()) > 0:
        ending.wait_at_rest(world, work, left_s)
        if not unsettled(read(directory / "nemesis.jsonl", *crews.histories())):
            break
        time.sleep(1.0)
    ending.write_groups(world, history)
    history.write("finish")
    crews.close()
