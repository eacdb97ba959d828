"""Which worker of `make test` runs which tests, and in which order.

The first worker runs only tests that mostly wait: for servers to start, for sessions to end, for minutes of chaos. It
comes on top of one worker a core, because what waits leaves its core to others. These begin with the tests that compute
and go on with what is left of the others. Of four or more workers the second begins with tests that wait as well:
otherwise only those would be left in the end, and nobody would use the cores meanwhile. The last one of them has a low
priority, so it computes when nothing else does, and only runs tests in which no clock but a virtual one goes on.

The tests of a file stay together, so what its fixtures start is started once, and so do those of an `xdist_group`. What
takes long begins early: begun last, it would be all that runs in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

WAITING = (
    "tests/browser/test_outages", "tests/chaos/", "tests/deploy/", "tests/failover/", "tests/kcoord/client/test_live",
    "tests/kcoord/demo/", "tests/kcoord/showcase/", "tests/kcoord/stack/", "tests/newcomer/", "tests/offsets/spark/",
    "tests/processes/", "tests/wire/",
)  # fmt: skip
"""Where the tests are that mostly wait. Wrong here costs time, nothing else."""

LONG = (
    "tests/bench/", "tests/browser/", "tests/conformance/", "tests/failover/", "tests/kcoord/demo/",
    "tests/kcoord/openapi/", "tests/kcoord/showcase/", "tests/offsets/spark/", "tests/processes/",
)  # fmt: skip
"""Where files take minutes though they have few tests."""

PATIENT = (
    "tests/docs/", "tests/frontend/", "tests/groups/core/", "tests/kcoord/assignors/", "tests/mutants/",
    "tests/offsets/core/",
)  # fmt: skip
"""Where the tests are that may take any time."""

NICENESS = 10
FEWEST_OF_ALL_ROLES = 4
"""From this number of workers on there is one of each role."""


class Role(Enum):
    """What a worker is for."""

    WAITS = "waits"
    WAITS_FIRST = "waits first"
    COMPUTES = "computes"
    SPARE = "spare"


def role_of(worker: str, workers: int) -> Role:
    """`worker`: its id, "gw0" for the first; `workers`: how many there are."""
    number = int(worker.removeprefix("gw"))
    if number == 0 and workers > 1:
        return Role.WAITS
    if workers < FEWEST_OF_ALL_ROLES:
        return Role.COMPUTES
    return {1: Role.WAITS_FIRST, workers - 1: Role.SPARE}.get(number, Role.COMPUTES)


def next_scope(queue: Mapping[str, Iterable[str]], role: Role) -> str | None:
    """The name of what to run next, long ones first, then as in `queue`; None if nothing is left for this worker.

    `queue`: node ids by what stays together; `role`: that of the worker.
    """

    def rank(scope: str) -> tuple[bool, bool, bool]:
        nodeid = next(iter(queue[scope]))
        waits, patient = nodeid.startswith(WAITING), nodeid.startswith(PATIENT)
        fits = {Role.COMPUTES: not waits, Role.SPARE: patient}.get(role, waits)
        return not fits, patient, not ("@" in nodeid or nodeid.startswith(LONG))

    found = min(queue, key=rank, default=None)
    takes_all = role in (Role.COMPUTES, Role.WAITS_FIRST)
    return None if not takes_all and found is not None and rank(found)[0] else found


class Scheduling(LoadGroupScheduling):
    """`--dist loadgroup`, as this module describes it."""

    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if group == nodeid else group

    def remove_node(self, node: WorkerController) -> str | None:
        """As inherited, but what a dead worker has done is not work for others: they would get nothing, and wait."""
        given = self.assigned_work[node]
        self.assigned_work[node] = {scope: tests for scope, tests in given.items() if not all(tests.values())}
        return super().remove_node(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope = next_scope(self.workqueue, role_of(node.gateway.id, len(self.nodes)))
        if scope is None:
            node.shutdown()
            return
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)
