"""A process that runs some of the members: `python -m tests.chaos.crew NAME …`. SIGTERM closes them."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from pathlib import Path

from tests.chaos.history import Writer
from tests.chaos.member import ChaosMember
from tests.chaos.workload import workload

BETWEEN_S = 0.03
"""Between the starts of two members."""


async def run(arguments: argparse.Namespace) -> None:
    """All members of the crew, until SIGTERM."""
    history = Writer(arguments.history)
    crews = workload(arguments.seed, arguments.members, arguments.groups, arguments.crews).crews
    token = os.environ["KCOORD_TOKEN"]
    members = [ChaosMember(spec, arguments.url, token, history, arguments.life) for spec in crews[arguments.name]]
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with asyncio.TaskGroup() as tasks:
        for member in members:
            tasks.create_task(member.run())
            await asyncio.sleep(BETWEEN_S)
        await stopping.wait()
        for member in members:
            member.stop()
    history.close()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.crew")
    parser.add_argument("name")
    for name in ("seed", "members", "groups", "crews"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--life", required=True)
    parser.add_argument("--history", type=Path, required=True)
    logging.getLogger("kcoord.client").setLevel(logging.ERROR)
    gc.freeze()
    asyncio.run(run(parser.parse_args()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
