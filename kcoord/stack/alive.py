"""`python -m kcoord.stack.alive`: exit status 0 if the server of these settings is alive, else 1.

For the health check of a container. It asks /livez, not /readyz: what restarts containers that are
not healthy would otherwise restart every server during an outage of Postgres.
"""

from __future__ import annotations

import asyncio
import os
import sys

from kcoord.config import Config
from kcoord.stack.readiness import status_of


def main() -> int:
    """Ask once; says on standard error what is wrong."""
    config = Config.from_env(os.environ)
    host, port = config.str("host"), config.int("port")
    status = asyncio.run(status_of(host, port, "/livez"))
    if status == 200:
        return 0
    problem = "does not answer" if status is None else f"answered {status}"
    print(f"kcoord: /livez on port {port} of {host} {problem}", file=sys.stderr)  # noqa: T201
    return 1


if __name__ == "__main__":
    sys.exit(main())
