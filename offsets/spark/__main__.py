"""`python -m offsets.spark archive|reconcile|report`: the jobs without Django, as `spark-submit` starts them."""

from __future__ import annotations

import argparse
import getpass
import os
import sys

from kcoord.config import Config
from kcoord.database.address import libpq_conninfo
from offsets.spark.command import (
    CANNOT_RUN,
    Installation,
    add_archive_arguments,
    add_reconcile_arguments,
    add_report_arguments,
    archive_job,
    reconcile_job,
    report_job,
    requested,
    run_job,
    shown,
)

JOBS = {"archive": archive_job, "reconcile": reconcile_job, "report": report_job}
ASKED = {"archive": ("adopt", "check"), "reconcile": ("watermark_margin_ms",), "report": ("idle_days",)}
"""Arguments that are stored in the record of the run."""


def main() -> int:
    """Run the job that the arguments name; the exit status."""
    parser = argparse.ArgumentParser(prog="offsets.spark", description="The Spark jobs of kcoord.")
    kinds = parser.add_subparsers(dest="kind", required=True)
    add_archive_arguments(kinds.add_parser("archive"))
    add_reconcile_arguments(kinds.add_parser("reconcile"))
    add_report_arguments(kinds.add_parser("report"))
    given = parser.parse_args()
    config = Config.from_env(os.environ)
    if config.problems:
        print("; ".join(config.problems), file=sys.stderr)  # noqa: T201
        return CANNOT_RUN
    conninfo = libpq_conninfo(config.str("database.url"), config.data_dir)
    installation = Installation(config, conninfo, config.data_dir)
    arguments = vars(given)
    asked = {name: arguments[name] for name in ASKED[given.kind]}
    request = requested(arguments, f"local:{getpass.getuser()}", **asked)
    status, told = run_job(given.kind, JOBS[given.kind](installation, arguments), installation, request)
    stream = sys.stderr if "error" in told and given.format == "text" else sys.stdout
    print(shown(given.kind, told, given.format), file=stream)
    return status


if __name__ == "__main__":
    sys.exit(main())
