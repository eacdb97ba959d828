"""`manage.py audit verify`, `manage.py audit export`: check the chain of the audit, and write it as JSON lines."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rest_framework.exceptions import ValidationError

from kcoord.access.audit.chain import Audit, Head, Verifier, verify_lines
from kcoord.access.audit.encoding import Record, from_json, to_json
from kcoord.control.rest.fields import InstantInput
from kcoord.database.paging import INT64_MAX
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError

LONGEST_RUN_SECONDS = 3_600.0
BROKEN = 1


class Command(BaseCommand):
    help = "Check the audit's hash chain, or export the audit as JSON lines."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """What to do."""
        acts = parser.add_subparsers(dest="what", required=True)
        verify = acts.add_parser("verify", help="exit status 0: intact; 1: what is wrong is printed, with its record")
        verify.add_argument(
            "--head",
            action="append",
            default=[],
            metavar="SEQ:HASH",
            help="an end of the chain that an earlier run printed, and that was kept elsewhere; repeatable",
        )
        verify.add_argument("--file", type=Path, help="check this export instead of the database; - is standard input")
        export = acts.add_parser("export", help="one record in a line, in the order of the chain")
        for name, what in (("since", "records from this instant on"), ("until", "records before this instant")):
            export.add_argument(f"--{name}", metavar="INSTANT", help=f"{what}, such as 2025-11-21T03:30:00Z")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it."""
        try:
            if options["what"] == "export":
                since, until = (_instant(name, options[name]) for name in ("since", "until"))
                bridge.call(lambda runtime: self._export(runtime, since or 0, until or INT64_MAX), LONGEST_RUN_SECONDS)
            else:
                self._verify([_head(text) for text in options["head"]], options["file"])
        except ProtocolError as error:
            raise CommandError(error.detail) from error

    async def _export(self, runtime: Runtime, since: int, until: int) -> None:
        async for some in runtime.get(Audit).export(since, until):
            for record in some:
                self.stdout.write(json.dumps(to_json(record), ensure_ascii=False))

    def _verify(self, heads: list[Head], path: Path | None) -> None:
        if path is None:
            found = bridge.call(lambda runtime: runtime.get(Audit).verify(heads), LONGEST_RUN_SECONDS)
        else:
            found = _verified(path, heads)
        for problem in found.problems:
            self.stdout.write(str(problem))
        if found.problems:
            self.stderr.write(f"the audit is not intact: {len(found.problems)} problems in {found.records:,} records")
            sys.exit(BROKEN)
        self.stdout.write(f"intact: {found.records:,} records, head {found.last or 'none'}")


def _verified(path: Path, heads: list[Head]) -> Verifier:
    try:
        if str(path) == "-":
            return verify_lines(_records(sys.stdin), heads)
        with path.open(encoding="utf-8") as lines:
            return verify_lines(_records(lines), heads)
    except OSError as error:
        raise CommandError(f"--file: {error.strerror}: {path}") from error


def _records(lines: Any) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield from_json(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CommandError(f"--file: line {number} is not a line of `manage.py audit export`") from error


def _head(text: str) -> Head:
    try:
        return Head.parse(text)
    except ValueError as error:
        raise CommandError(f"--head {text}: expected SEQ:HASH as `manage.py audit verify` prints it") from error


def _instant(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        found = InstantInput().to_internal_value(text)
    except ValidationError:
        raise CommandError(f"--{name} {text}: expected an instant in RFC 3339, such as 2026-01-31T12:00:00Z") from None
    return found
