"""A server whose heartbeats cost nothing, to measure the way to them: `python -m tests.bench.at_once --fd N`.

It is the real one, but every heartbeat is answered from nothing.
"""

from __future__ import annotations

import sys

from groups.core.model.commands import Heartbeat
from groups.core.model.replies import HeartbeatReply
from groups.engine.service import GroupService
from kcoord.protocol.errors import Error
from kcoord.stack import server

DEADLINE = 1_700_000_000_000


def _at_once(self: GroupService, command: Heartbeat) -> HeartbeatReply:
    return HeartbeatReply(Error.NONE, DEADLINE)


if __name__ == "__main__":
    GroupService.heartbeat = _at_once  # type: ignore[method-assign]
    sys.exit(server.main())
