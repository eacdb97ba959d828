"""`python -m tests.peers`: see the package. The status is 1 if a test does not pass, or none is run."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

SECONDS = 900.0
"""For the tests of one package."""


def main() -> int:
    """Run the tests of each package; print what became of each, and what the others need."""
    from tests.peers.doors import FIRST
    from tests.support.database import ephemeral_database
    from tests.wire.kafka_workers import listening_on

    # Sessions of kafka-python's tests are shorter than brokers allow by default.
    settings = {"KCOORD_KAFKA_ADVERTISED_PORT": FIRST, "KCOORD_GROUP_MIN_SESSION_TIMEOUT_MS": 1_000}
    with ephemeral_database() as conninfo, listening_on(conninfo, **settings) as here:
        return asyncio.run(_run(here.port, here.service.token))


async def _run(port: int, token: str) -> int:
    from tests.peers.doors import doors
    from tests.peers.suites import SUITES

    failed = False
    async with doors(port, token) as toxiproxy:
        for name, made in SUITES.items():
            with tempfile.TemporaryDirectory(prefix="peers-") as directory:
                suite = await asyncio.to_thread(made, Path(directory), toxiproxy)
                env = {**os.environ, "KAFKA_VERSION": "4.4.0", **suite.env}
                pipe, both = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
                process = await asyncio.create_subprocess_exec(
                    *suite.command, cwd=suite.directory, env=env, stdout=pipe, stderr=both
                )
                try:
                    printed = (await asyncio.wait_for(process.communicate(), SECONDS))[0].decode(errors="replace")
                finally:
                    if process.returncode is None:
                        process.kill()
            said = {found["test"]: found["said"] for found in re.finditer(suite.outcome, printed, re.MULTILINE)}
            if process.returncode or set(said.values()) != {"PASS"}:
                failed = True
                print(printed)
            print(*(f"  {outcome} {test}" for test, outcome in said.items()), sep="\n")
            print(*(f"  left out, needs {need}: {tests}" for need, tests in suite.left_out.items()), sep="\n")
            print(f"{name}: {len(said)} tests run, {dict(Counter(said.values()))}", flush=True)
    return int(failed)


if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kcoord.settings")
    django.setup()
    sys.exit(main())
