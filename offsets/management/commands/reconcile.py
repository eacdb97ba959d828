"""`manage.py reconcile`: compare commits with the stored offsets and the logs; `--repair` fixes the view."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from kcoord.door.http import logs
from kcoord.door.http.local_transport import local_operator
from kcoord.process import bridge
from kcoord.protocol.errors import ProtocolError
from offsets.models import ReconcileFinding, SparkRun
from offsets.runs.repair import RepairService, planned

TIMEOUT_SECONDS = 600.0
FINDINGS, CANNOT_RUN = 1, 2


class Command(BaseCommand):
    help = (
        "Compare archive and journal with the committed offsets and with the logs. Exit status: 0 without findings, "
        "1 with findings, 2 if it cannot run. docs/reconcile.md explains each finding."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Options for the run, its output, and whether to repair."""
        from offsets.spark.command import add_reconcile_arguments

        add_reconcile_arguments(parser)
        parser.add_argument(
            "--repair",
            action="store_true",
            help="show which committed offsets would be repaired; with --yes, repair them",
        )
        parser.add_argument("--yes", action="store_true", help="with --repair: write the repairs")
        parser.add_argument(
            "--of", type=UUID, metavar="RUN", help="with --repair: use the findings of this run instead of a new run"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run, repair, print, exit."""
        if (options["yes"] or options["of"]) and not options["repair"]:
            raise CommandError("--yes and --of require --repair", returncode=CANNOT_RUN)
        status, told = self._found_before(options["of"]) if options["of"] else self._run(options)
        if options["repair"] and "error" not in told:
            status = self._repair(told, status, apply=options["yes"])
        self._print(told, options["format"])
        if status:
            sys.exit(status)

    def _run(self, options: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        # Here, so that other commands do not wait for pyspark.
        from offsets.spark.command import Installation, reconcile_job, requested, run_job

        installation = Installation(settings.KCOORD, settings.CONNINFO, settings.DATA_DIR)
        asked = {name: options[name] for name in ("watermark_margin_ms", "repair", "yes")}
        request = requested(options, local_operator().name, **asked)
        return run_job("reconcile", reconcile_job(installation, options), installation, request)

    def _found_before(self, run_id: UUID) -> tuple[int, dict[str, Any]]:
        """The stored result of a past run."""
        run = SparkRun.objects.filter(id=run_id, kind=SparkRun.Kind.RECONCILE, state=SparkRun.State.SUCCEEDED).first()
        if run is None:
            raise CommandError(f"--of: no run of reconcile that succeeded has the id {run_id}", returncode=CANNOT_RUN)
        findings = [_as_json(one) for one in ReconcileFinding.objects.filter(run=run).order_by("number")]
        told = {"kind": "reconcile", "run": str(run_id), **(run.result or {}), "findings": findings}
        return FINDINGS if findings else 0, told | {"state": "succeeded", "seconds": 0.0, "spark_start_seconds": 0.0}

    def _repair(self, told: dict[str, Any], status: int, *, apply: bool) -> int:
        mends = planned(told["findings"])
        told["repair"] = {"applied": apply, "planned": [mend.shown() for mend in mends]}
        if not apply or not mends:
            return status
        logs.configure("warning")  # the service's log lines would be mixed with the output
        try:
            done = bridge.call(
                lambda runtime: runtime.get(RepairService).repair(mends, told["run"], local_operator()),
                TIMEOUT_SECONDS,
            )
        except ProtocolError as error:
            told["error"] = f"repair: {error.error.name}: {error.detail}"
            return CANNOT_RUN
        told["repair"]["outcomes"] = [{**one.mend.shown(), "outcome": one.outcome} for one in done]
        return status

    def _print(self, told: dict[str, Any], form: str) -> None:
        if form == "json":
            self.stdout.write(json.dumps(told, ensure_ascii=False))
            return
        from offsets.spark.command import shown

        stream = self.stderr if "error" in told else self.stdout
        stream.write(shown("reconcile", told, form))
        repair = told.get("repair")
        if repair is None or "error" in told:
            return
        for one in repair.get("outcomes", repair["planned"]):
            what = "remove" if one["action"] == "remove" else f"set to {one['to']}"
            done = f" ({one['outcome']})" if "outcome" in one else ""
            place = f"{one['group']} {one['topic']}-{one['partition']}"
            now = "nothing" if one["from"] is None else one["from"]
            self.stdout.write(f"repair {place}: {what}, committed is {now}{done}")
        if repair["planned"] and not repair["applied"]:
            self.stdout.write(
                f"nothing was changed; to write the repairs: manage.py reconcile --repair --yes --of {told['run']}"
            )


def _as_json(one: ReconcileFinding) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "group": one.group_name,
        "topic": one.topic,
        "partition": one.partition,
        "expected": one.expected,
        "found": one.found,
        "evidence": one.evidence,
    }
