"""One process of the service on its own: `python -m kcoord.stack.run server|worker|beat|migrate`.

For containers, systemd and Kubernetes, which supervise processes themselves; `python -m kcoord.stack` is for a machine
where nothing does. SIGTERM ends server, worker and beat with exit status 0, once waiting requests are answered and
running tasks are done; `migrate` ends on its own. Exit status 2: it cannot start, and its last line says why.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys

INTERRUPTED = 128 + signal.SIGTERM
"""Exit status of a `migrate` that was stopped: 0 would let the servers start."""

ROLES = {
    "server": "answer HTTP on KCOORD_HOST:KCOORD_PORT",
    "worker": "run Celery's tasks",
    "beat": "schedule Celery's tasks",
    "migrate": "apply missing migrations, then end",
}


def main() -> int:
    """Run one role; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m kcoord.stack.run", description="Run one process of kcoord.")
    roles = parser.add_subparsers(dest="role", required=True, metavar="ROLE")
    for name, what in ROLES.items():
        roles.add_parser(name, help=what)
    role: str = parser.parse_args().role
    # As process 1 of a container it would ignore SIGTERM until a handler exists, and the imports below take a while.
    status = INTERRUPTED if role == "migrate" else 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(status))
    os.dup2(sys.stdout.fileno(), sys.stderr.fileno())  # one stream, in order

    from kcoord.stack import roles as started

    return started.run(role)


if __name__ == "__main__":
    sys.exit(main())
