"""`python -m offsets.spark archive`: the jobs without Django, as `spark-submit` starts them."""

from __future__ import annotations

import argparse
import getpass
import os
import sys

from kcoord.config import Config
from kcoord.postgres import libpq_conninfo
from offsets.spark.command import (
    CANNOT_RUN,
    Installation,
    add_archive_arguments,
    archive_job,
    requested,
    run_job,
    shown,
)
from offsets.spark.session import CODE


def main() -> int:
    """Run the job that the arguments name; the exit status."""
    parser = argparse.ArgumentParser(prog="offsets.spark", description="The Spark jobs of kcoord.")
    add_archive_arguments(parser.add_subparsers(dest="kind", required=True).add_parser("archive"))
    given = parser.parse_args()
    config = Config.from_env(os.environ)
    if config.problems:
        print("; ".join(config.problems), file=sys.stderr)  # noqa: T201
        return CANNOT_RUN
    data_dir = (CODE / config.str("data.dir")).resolve()
    installation = Installation(config, libpq_conninfo(config.str("database.url"), data_dir), data_dir)
    request = requested(vars(given), f"local:{getpass.getuser()}", adopt=given.adopt, check=given.check)
    status, told = run_job(given.kind, archive_job(installation, vars(given)), installation, request)
    stream = sys.stderr if "error" in told and given.format == "text" else sys.stdout
    print(shown(given.kind, told, given.format), file=stream)
    return status


if __name__ == "__main__":
    sys.exit(main())
