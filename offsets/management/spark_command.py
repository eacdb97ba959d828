"""What the commands of Spark's jobs share."""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from kcoord.packages import PackagesMissing
from offsets.spark.waiting import CANNOT_RUN, wait_for_packages


class SparkCommand(BaseCommand):
    """A command that needs Spark's packages: it waits while they are being installed, and refuses without them."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """The parser, whose arguments need the packages already. Exits with status 2 without them."""
        try:
            wait_for_packages(settings.CONNINFO)
        except PackagesMissing as missing:
            self.stderr.write(f"{subcommand}: {missing}")
            sys.exit(CANNOT_RUN)
        return super().create_parser(prog_name, subcommand, **kwargs)
