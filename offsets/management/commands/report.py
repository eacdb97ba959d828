"""`manage.py report`: daily statistics of groups from the archive, as Parquet beside it."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from kcoord.door.http.local_transport import local_operator


class Command(BaseCommand):
    help = (
        "Compute commits, consumption, rewinds, idle groups, busiest partitions, rebalances and members by day from "
        "the archive and the events of groups, as Parquet in its folder `reports`. Exit status: 0, or 2 if "
        "it cannot run."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Options for the run and its output."""
        from offsets.spark.command import add_report_arguments

        add_report_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run, print, exit."""
        # Here, so that other commands do not wait for pyspark.
        from offsets.spark.command import Installation, report_job, requested, run_job, shown

        installation = Installation(settings.KCOORD, settings.CONNINFO, settings.DATA_DIR)
        request = requested(options, local_operator().name, idle_days=options["idle_days"])
        status, told = run_job("report", report_job(installation, options), installation, request)
        stream = self.stderr if "error" in told and options["format"] == "text" else self.stdout
        stream.write(shown("report", told, options["format"]))
        if status:
            sys.exit(status)
