"""`manage.py import_offsets FILE`: commit the offsets of a file that `kafka-consumer-groups --export` wrote.

With `--from-kafka-dump`, the file is a dump of `__consumer_offsets`: see `offsets.kafka`.

One plan per group, all of them created before the first is applied, so each import can be reviewed and undone. With
`--dry-run` the plans are created and shown, and nothing is committed.
Source: offsets.md 13.5, items 5 and 6.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from groups.engine.service import GroupService
from kcoord.access.rights import Principal
from kcoord.door.http import logs
from kcoord.door.http.local_transport import local_operator
from kcoord.door.http.paths import check_group_id
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.offset_file import OffsetFile, read_offset_file
from kcoord.resets.strategies import Reset, Strategy
from offsets.core.types import TopicPartition
from offsets.kafka import DumpImport
from offsets.plans.service import PlanService
from offsets.plans.summary import PlanHeader
from offsets.plans.table import HEADINGS, cells, plan_lines, table_row

TIMEOUT_SECONDS = 600.0
MAX_BYTES = 64 * 1024 * 1024
"""A plan of a group has at most 200,000 partitions; a larger file is not an export."""

Groups = Mapping[str, Mapping[TopicPartition, int]]


class Command(BaseCommand):
    help = (
        "Commit the offsets of a CSV file written by kafka-consumer-groups --export: lines of group,topic,partition,"
        "offset, or of topic,partition,offset with --group. The groups must have no members. Each group gets an offset "
        "plan, with which the import can be undone. With --from-kafka-dump: import a dump of __consumer_offsets, with "
        "its history, for groups without one here."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The file, its group, and whether to apply."""
        parser.add_argument("file", type=Path, metavar="FILE", help="the CSV file, in UTF-8 and without a header")
        parser.add_argument(
            "--group", help="the group; required for lines of three columns; with lines of four, import only this group"
        )
        parser.add_argument(
            "--from-kafka-dump",
            action="store_true",
            help="the file is a dump of __consumer_offsets, printed by kafka-console-consumer with "
            "OffsetsMessageFormatter or by kafka-dump-log with --offsets-decoder; its history is imported as well",
        )
        parser.add_argument("--skip-bad-lines", action="store_true", help="with --from-kafka-dump: skip bad lines")
        parser.add_argument("--dry-run", action="store_true", help="create the plans and show them; commit nothing")
        parser.add_argument("--reason", default="", help="why; recorded in the events of the groups")

    def handle(self, *args: Any, **options: Any) -> None:
        """Read, plan, apply. Raises CommandError (exit status 1) if anything is refused."""
        logs.configure("warning")  # the service's log lines would be mixed with the table
        if options["from_kafka_dump"]:
            self._import_dump(options)
            return
        if options["skip_bad_lines"]:
            raise CommandError("--skip-bad-lines requires --from-kafka-dump")
        groups = self._groups(options["file"], options["group"])
        principal, reason, dry_run = local_operator(), options["reason"], options["dry_run"]
        try:
            plans = bridge.call(lambda runtime: self._plan(runtime, groups, principal, reason), TIMEOUT_SECONDS)
            if not dry_run:
                bridge.call(lambda runtime: self._apply(runtime, plans, principal), TIMEOUT_SECONDS)
        except ProtocolError as error:
            raise CommandError(f"{error.error.name}: {error.detail}") from error
        if dry_run:
            for plan in plans:
                self.stderr.write(f"group {plan.group_id}: plan {plan.id}")
            self.stderr.write("dry run: nothing is committed; the plans are kept and can be applied over the HTTP API")

    def _import_dump(self, options: dict[str, Any]) -> None:
        _check_option(options["group"])
        DumpImport(
            options["file"],
            options["group"],
            local_operator(),
            options["reason"],
            options["dry_run"],
            options["skip_bad_lines"],
            settings.KCOORD,
            self.stdout,
            self.stderr,
        ).run()

    def _groups(self, path: Path, group_id: str | None) -> Groups:
        """The offsets of each group. Every bad line is reported before the command ends."""
        _check_option(group_id)
        file = read_offset_file(_text(path))
        for bad in file.bad:
            self.stderr.write(f"{path}:{bad.line}: {bad.problem}")
        if file.bad:
            count = "1 bad line" if len(file.bad) == 1 else f"{len(file.bad)} bad lines"
            raise CommandError(f"{path}: {count}; nothing is imported")
        try:
            return _meant(file, group_id)
        except ProtocolError as error:
            raise CommandError(f"{path}: {error.detail}") from error

    async def _plan(self, runtime: Runtime, groups: Groups, principal: Principal, reason: str) -> list[PlanHeader]:
        """A plan for each group; raises the first refusal, before anything is applied."""
        service = runtime.get(PlanService)
        for group_id in groups:
            await _check_empty(runtime, group_id)
        plans = []
        for group_id, csv in groups.items():
            try:
                plans.append(await service.create(group_id, Reset(Strategy.FROM_FILE, csv=csv), principal, reason))
            except ProtocolError as error:
                raise ProtocolError(error.error, f"group {group_id}: {error.detail}") from error
        self.stdout.write(table_row(HEADINGS))
        for plan in plans:
            async for line in plan_lines(service, plan):
                self.stdout.write(table_row(cells(plan.group_id, line)))
        return plans

    async def _apply(self, runtime: Runtime, plans: list[PlanHeader], principal: Principal) -> None:
        service = runtime.get(PlanService)
        for plan in plans:
            try:
                await service.apply(plan.group_id, plan.id, principal)
            except ProtocolError as error:
                raise ProtocolError(
                    error.error, f"group {plan.group_id}: {error.detail}; the groups named before it are imported"
                ) from error
            undo = f"--reset-offsets --group {shlex.quote(plan.group_id)} --undo {plan.id} --execute"
            self.stderr.write(f"group {plan.group_id}: imported; undo it with: kgroups {undo}")


def _check_option(group_id: str | None) -> None:
    try:
        if group_id is not None:
            check_group_id(group_id)
    except ProtocolError as error:
        raise CommandError(f"--group: {error.detail}") from error


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise CommandError(f"{path}: larger than {MAX_BYTES} bytes; split it and import some groups at a time")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: not UTF-8 at byte {error.start}") from error


def _meant(file: OffsetFile, group_id: str | None) -> Groups:
    """The groups to import. Raises ProtocolError, CommandError."""
    file.refuse_bad_lines()
    if group_id is not None:
        return {group_id: file.of_group(group_id)}
    if not file.names_groups:
        raise CommandError("lines of three columns do not name the group: name the group with --group")
    return file.groups


async def _check_empty(runtime: Runtime, group_id: str) -> None:
    group = (await runtime.get(GroupService).describe(group_id)).group
    if group is not None and group.members:
        raise ProtocolError(
            Error.NON_EMPTY_GROUP, f"group {group_id}: it has {len(group.members)} members; stop them first"
        )
