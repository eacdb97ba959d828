"""`manage.py archive`: publish what was committed since the last run to the archive at KCOORD_ARCHIVE_PATH."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from kcoord.door.http.local_transport import local_operator


class Command(BaseCommand):
    help = (
        "Publish the journal's new rows to the archive at KCOORD_ARCHIVE_PATH, a Delta table of Parquet files. "
        "Exit status: 0, or 2 if it cannot run. docs/archive.md describes how to read the archive."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Options for the run and its output."""
        from offsets.spark.command import add_archive_arguments

        add_archive_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run, print, exit."""
        # Here, so that other commands do not wait for pyspark.
        from offsets.spark.command import Installation, archive_job, requested, run_job, shown

        installation = Installation(settings.KCOORD, settings.CONNINFO, settings.DATA_DIR)
        request = requested(options, local_operator().name, adopt=options["adopt"], check=options["check"])
        status, told = run_job("archive", archive_job(installation, options), installation, request)
        stream = self.stderr if "error" in told and options["format"] == "text" else self.stdout
        stream.write(shown("archive", told, options["format"]))
        if status:
            sys.exit(status)
