"""Which worker of `make test` runs which tests, and in which order.

The first worker begins with the tests that mostly wait: for servers to start, for sessions to end, for minutes of
chaos. The others begin with the tests that compute. A worker that has no tests of its own kind left runs those of the
other kind. So tests that start whole stacks do not compete with each other for the cores.

The tests of a file stay together, so what its fixtures start is started once, and so do those of an `xdist_group`. What
takes long begins early: begun last, it would be all that runs in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

WAITING = (
    "tests/chaos/", "tests/deploy/", "tests/kcoord/client/test_live", "tests/kcoord/demo/", "tests/kcoord/showcase/",
    "tests/kcoord/stack/", "tests/newcomer/", "tests/processes/", "tests/wire/",
)  # fmt: skip
"""Where the tests are that mostly wait. Wrong here costs time, nothing else."""

LONG = (
    "tests/bench/", "tests/browser/", "tests/conformance/", "tests/kcoord/demo/", "tests/kcoord/openapi/",
    "tests/kcoord/showcase/", "tests/offsets/spark/", "tests/processes/",
)  # fmt: skip
"""Where files take minutes though they have few tests."""

FIRST = "gw0"


def next_scope(queue: Mapping[str, Iterable[str]], *, waits: bool) -> str:
    """The name of what to run next: of the wanted kind if any is left, long ones first, then as in `queue`.

    `queue`: node ids by what stays together; `waits`: whether tests that mostly wait are wanted.
    """

    def rank(scope: str) -> tuple[bool, bool]:
        nodeid = next(iter(queue[scope]))
        return nodeid.startswith(WAITING) != waits, not ("@" in nodeid or nodeid.startswith(LONG))

    return min(queue, key=rank)


class Scheduling(LoadGroupScheduling):
    """`--dist loadgroup`, as this module describes it."""

    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if group == nodeid else group

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope = next_scope(self.workqueue, waits=node.gateway.id == FIRST)
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)
