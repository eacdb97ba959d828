"""Which worker of `make test` runs which tests, and in which order.

The first worker runs only tests that mostly wait: for servers to start, for sessions to end, for minutes of chaos. It
comes on top of one worker a core, because what waits leaves its core to others. These begin with the tests that compute
and go on with what is left of the others.

The tests of a file stay together, so what its fixtures start is started once, and so do those of an `xdist_group`. What
takes long begins early: begun last, it would be all that runs in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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

FIRST = "gw0"


def next_scope(queue: Mapping[str, Iterable[str]], *, waits: bool) -> str | None:
    """The name of what to run next, long ones first, then as in `queue`; None if nothing is left for this worker.

    `queue`: node ids by what stays together; `waits`: whether the worker only takes tests that mostly wait.
    """

    def rank(scope: str) -> tuple[bool, bool]:
        nodeid = next(iter(queue[scope]))
        return nodeid.startswith(WAITING) != waits, not ("@" in nodeid or nodeid.startswith(LONG))

    found = min(queue, key=rank, default=None)
    return None if waits and found is not None and rank(found)[0] else found


class Scheduling(LoadGroupScheduling):
    """`--dist loadgroup`, as this module describes it."""

    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if group == nodeid else group

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope = next_scope(self.workqueue, waits=node.gateway.id == FIRST and len(self.nodes) > 1)
        if scope is None:
            node.shutdown()
            return
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)
