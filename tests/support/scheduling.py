"""Which worker of `make test` runs which tests, and in which order.

The first worker runs only tests that mostly wait: for servers to start, for sessions to end, for minutes of chaos. It
comes on top of one worker a core, because what waits leaves its core to others. These begin with the tests that compute
and go on with what is left of the others. The last one of four or more has a low priority, so it computes when nothing
else does, and only runs tests in which no clock but a virtual one goes on meanwhile.

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
FEWEST_WITH_SPARE = 4
"""From this number of workers on the last one is the spare one."""


class Role(Enum):
    """What a worker is for."""

    WAITS = "waits"
    COMPUTES = "computes"
    SPARE = "spare"


def role_of(worker: str, workers: int) -> Role:
    """`worker`: its id, "gw0" for the first; `workers`: how many there are."""
    number = int(worker.removeprefix("gw"))
    if number == 0 and workers > 1:
        return Role.WAITS
    return Role.SPARE if number == workers - 1 >= FEWEST_WITH_SPARE - 1 else Role.COMPUTES


def next_scope(queue: Mapping[str, Iterable[str]], role: Role) -> str | None:
    """The name of what to run next, long ones first, then as in `queue`; None if nothing is left for this worker.

    `queue`: node ids by what stays together; `role`: that of the worker.
    """

    def rank(scope: str) -> tuple[bool, bool, bool]:
        nodeid = next(iter(queue[scope]))
        waits, patient = nodeid.startswith(WAITING), nodeid.startswith(PATIENT)
        fits = {Role.WAITS: waits, Role.COMPUTES: not waits, Role.SPARE: patient}[role]
        return not fits, patient, not ("@" in nodeid or nodeid.startswith(LONG))

    found = min(queue, key=rank, default=None)
    return None if role is not Role.COMPUTES and found is not None and rank(found)[0] else found


class Scheduling(LoadGroupScheduling):
    """`--dist loadgroup`, as this module describes it."""

    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if group == nodeid else group

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope = next_scope(self.workqueue, role_of(node.gateway.id, len(self.nodes)))
        if scope is None:
            node.shutdown()
            return
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)
