"""A server that asks nobody who they are or what they may: the yardstick of what authorization costs.

`python -m tests.bench.unguarded --fd N`, as `kcoord.stack.server`.
"""

from __future__ import annotations

import sys

from kcoord.access.rights import ALL_ALLOWED, Access, Principal
from kcoord.stack import server

ANYBODY = Principal(1, "anybody", ALL_ALLOWED)


async def _authenticate(self: Access, secret: str) -> Principal:
    return ANYBODY


def main() -> int:
    """Serve without authorization; returns the exit status."""
    Access.authenticate = _authenticate  # type: ignore[method-assign]
    Access.known = lambda self, key: ANYBODY  # type: ignore[method-assign]
    Principal.require_group = lambda self, operation, group_id: None  # type: ignore[method-assign]
    return server.main()


if __name__ == "__main__":
    sys.exit(main())
