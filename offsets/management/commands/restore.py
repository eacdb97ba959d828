"""`manage.py restore`: groups put back to an instant, as offset plans; or an empty database filled from the archive."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rest_framework.exceptions import ValidationError

from kcoord.control.rest.fields import InstantInput
from kcoord.door.http import logs
from kcoord.door.http.local_transport import local_operator
from kcoord.door.http.paths import check_group_id
from kcoord.protocol.errors import ProtocolError
from offsets.plans.table import HEADINGS, cells, table_row

KIND = "restore"


class Command(BaseCommand):
    help = (
        "Restore the committed offsets of a group, or of all groups, as they were at an instant. Makes an offset plan "
        "for each group, shows it, and with --apply applies it; every plan can be undone. The offsets come from "
        "the journal, and for earlier instants from the archive at KCOORD_ARCHIVE_PATH. With --into-empty, fill an "
        "empty database from the archive. Exit status: 0, 1 if a group was refused, 2 if it cannot run."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """What to restore, to which instant, and whether to apply."""
        from offsets.spark.command import add_common_arguments

        add_common_arguments(parser)
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--group", action="append", metavar="GROUP", help="this group; repeatable")
        what.add_argument("--all-groups", action="store_true", help="every group in the journal or the archive")
        what.add_argument("--undo", type=UUID, metavar="RUN", help="undo the plans that this run of restore applied")
        what.add_argument("--into-empty", action="store_true", help="fill this empty database from the archive")
        parser.add_argument("--at", metavar="INSTANT", help="RFC 3339, such as 2026-01-31T12:00:00Z")
        parser.add_argument(
            "--topic", action="append", default=[], metavar="TOPIC", help="only these topics; repeatable"
        )
        parser.add_argument(
            "--apply", action="store_true", help="apply the plans; without it, they are only shown and kept"
        )
        parser.add_argument("--reason", default="", help="why; recorded in the events of the groups")
        parser.add_argument(
            "--create-topics",
            action="store_true",
            help="with --into-empty: create missing topics, with enough partitions for the offsets",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run, print, exit."""
        logs.configure("warning")  # the service's log lines would be mixed with the table
        from offsets.spark.command import Installation, requested, run_job

        installation = Installation(settings.KCOORD, settings.CONNINFO, settings.DATA_DIR)
        job, parameters = self._job(installation, options)
        request = requested(options, local_operator().name, **parameters)
        # No archive run meanwhile, so that the archive stays as it was read.
        status, told = run_job(KIND, job, installation, request, also=("archive",))
        self._print(job, told, options["format"])
        if status:
            sys.exit(status)

    def _job(self, installation: Any, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        from offsets.runs.restore_jobs import RefillJob, RestoreJob, UndoJob
        from offsets.runs.restoring import RestoreOrder

        at = _instant(options["at"])
        operator = local_operator()
        if options["undo"]:
            return UndoJob(str(options["undo"]), _applied_by(options["undo"]), operator), {"undo": str(options["undo"])}
        if options["into_empty"]:
            _only_for_plans(options)
            job = RefillJob(installation, at, options["create_topics"], operator.name)
            return job, {"into_empty": True, "at": options["at"], "create_topics": options["create_topics"]}
        if at is None:
            raise _usage("--at is required: the instant to restore, such as --at 2026-01-31T12:00:00Z")
        if options["create_topics"]:
            raise _usage("--create-topics requires --into-empty")
        groups = None if options["all_groups"] else _groups(options["group"])
        topics = tuple(dict.fromkeys(options["topic"]))
        order = RestoreOrder(at, topics, operator, options["reason"])
        parameters = {"at": options["at"], "groups": groups, "topics": list(topics), "apply": options["apply"]}
        return RestoreJob(installation, order, groups, options["apply"]), parameters

    def _print(self, job: Any, told: dict[str, Any], form: str) -> None:
        shown = getattr(job, "shown", {})
        if form == "json":
            for plan in told.get("plans", []):
                plan["lines"] = [_line_told(line) for line in shown.get(plan["plan"], [])]
            self.stdout.write(json.dumps(told, ensure_ascii=False))
            return
        if "error" in told:
            self.stderr.write(f"{KIND}: {told['error']}")
            return
        if told.get("into_empty"):
            self._print_filled(told)
            return
        if shown:
            self.stdout.write(table_row(HEADINGS))
        for plan in told["plans"]:
            for line in shown.get(plan["plan"], []):
                self.stdout.write(table_row(cells(plan["group"], line)))
        self._print_rest(told)

    def _print_rest(self, told: Mapping[str, Any]) -> None:
        for one in told.get("left_out", []):
            self.stderr.write(
                f"group {one['group']}: {one['topic']}-{one['partition']} had an offset then and does not exist now"
            )
        for one in told["refused"]:
            self.stderr.write(f"group {one['group']}: {one['error']}: {one['detail']}")
        done = [plan for plan in told["plans"] if plan["state"] != "planned"]
        for plan in told["plans"]:
            self.stderr.write(f"group {plan['group']}: plan {plan['plan']} {plan['state']}{_next(plan)}")
        if "undo" in told:
            self.stderr.write(f"{len(done)} of {told['groups']} plans undone")
        elif told["apply"] and done:
            self.stderr.write(f"{len(done)} groups restored; undo it with: restore --undo {told['run']}")
        elif told["apply"]:
            self.stderr.write("nothing is committed")
        else:
            self.stderr.write(
                "dry run: nothing is committed; the plans are kept, --apply makes new ones and applies them"
            )

    def _print_filled(self, told: Mapping[str, Any]) -> None:
        self.stdout.write(f"{told['groups']} groups with {told['offsets']} offsets as of {told['at']}")
        for topic in told.get("missing_topics", []):
            self.stderr.write(f"topic {topic} does not exist: create it before its offsets can be used")
        if told.get("created_topics"):
            self.stdout.write(f"topics created: {', '.join(told['created_topics'])}")


def _instant(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return InstantInput().to_internal_value(text)
    except ValidationError as error:
        raise _usage(f"--at: {text[:50]!r} is not an instant in RFC 3339, such as 2026-01-31T12:00:00Z") from error


def _groups(names: list[str]) -> list[str]:
    try:
        for name in names:
            check_group_id(name)
    except ProtocolError as error:
        raise _usage(f"--group: {error.detail}") from error
    return list(dict.fromkeys(names))


def _only_for_plans(options: Mapping[str, Any]) -> None:
    for name in ("topic", "apply", "reason"):
        if options[name]:
            raise _usage(f"--{name} cannot be used with --into-empty, which fills the whole database: leave it out")


def _applied_by(run_id: UUID) -> list[tuple[str, str]]:
    """Group and plan of the plans that a run applied."""
    from offsets.models import SparkRun

    run = SparkRun.objects.filter(id=run_id, kind=KIND).first()
    plans = (run.result or {}).get("plans", []) if run is not None else []
    applied = [(plan["group"], plan["plan"]) for plan in plans if plan["state"] == "applied"]
    if not applied:
        raise _usage(f"--undo: {run_id} is not a run of restore that applied plans")
    return applied


def _next(plan: Mapping[str, Any]) -> str:
    if plan["state"] != "applied":
        return ""
    undo = f"--reset-offsets --group {shlex.quote(plan['group'])} --undo {plan['plan']} --execute"
    return f"; undo it with: kgroups {undo}"


def _line_told(line: Any) -> dict[str, Any]:
    return {
        "topic": line.topic,
        "partition": line.partition,
        "old_offset": line.old_offset,
        "new_offset": line.new,
        "note": line.note,
    }


def _usage(problem: str) -> CommandError:
    return CommandError(problem, returncode=2)
