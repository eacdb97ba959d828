"""The lease of this process as a coordinator node, as far as this process knows.

Source: architecture.md 6; docs/models, rules 1 and 17.
"""

from __future__ import annotations

import time

from kcoord.process.runtime import Runtime


class Lease:
    """Written by the node of this process (`groups.nodes.agent`), read by what acts under it.

    `incarnation`: the row of the node, None: this process is not a node at the moment. `until`: until when the lease
    surely lasts, in seconds of the monotonic clock, taken before the renewal was sent.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.incarnation: int | None = None
        self.until = 0.0

    @property
    def runs(self) -> bool:
        """The lease surely has not run out."""
        return self.incarnation is not None and time.monotonic() < self.until
