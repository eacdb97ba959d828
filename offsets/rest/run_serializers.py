"""Requests and responses of the run and finding endpoints."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rest_framework import serializers

from kcoord.rest.fields import Choice, Instant, Int32, NextCursor, PageQuery, StrictSerializer, Text
from offsets.models import ReconcileFinding, SparkRun
from offsets.runs.findings import Finding
from offsets.runs.service import KINDS, STARTABLE
from offsets.runs.service import SparkRun as Run

STATES = SparkRun.State.values
FINDING_KINDS = ReconcileFinding.Kind.values
OF_GROUPS = ("findings",)
"""Parts of a result that name groups and topics: the list of findings has these, for permitted callers."""


class RunQuery(PageQuery):
    """Selects runs."""

    kind = Choice(KINDS, required=False, help_text="Only runs of this kind.")


class NewRun(StrictSerializer):
    """A run to start."""

    kind = Choice(STARTABLE)


class Slices(serializers.Serializer[Any]):
    """How far the current stage is; 0 of 0: unknown."""

    done = Int32()
    total = Int32()


class RunView(serializers.Serializer[Any]):
    """A run of a Spark job."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(KINDS)
    state = serializers.ChoiceField(
        STATES, help_text="lost: its process ended without recording a result. requested: its process is starting."
    )
    requested_at = Instant()
    requested_by = serializers.CharField(
        help_text="A token, an account, `schedule`, or `local:` and the user who ran the command."
    )
    started_at = Instant(allow_null=True)
    ended_at = Instant(allow_null=True)
    cancel_requested_at = Instant(allow_null=True)
    stage = serializers.CharField(allow_blank=True, help_text="Current or last stage.")
    slices = Slices()
    rows = serializers.IntegerField(allow_null=True)
    files = serializers.IntegerField(allow_null=True)
    bytes = serializers.IntegerField(allow_null=True)
    days = Int32(help_text="Days of the journal from which it archived rows.")
    findings = serializers.IntegerField(allow_null=True, help_text="Number of findings, including those not listed.")
    result = serializers.DictField(allow_null=True, help_text="What the command prints with `--format json`.")
    error = serializers.CharField(allow_blank=True)


class RunPage(serializers.Serializer[Any]):
    """A page of runs, newest first."""

    runs = RunView(many=True)
    next_cursor = NextCursor()


class RunLogView(serializers.Serializer[Any]):
    """The end of a run's log."""

    id = serializers.UUIDField()
    log = serializers.CharField(
        allow_null=True,
        allow_blank=True,
        help_text="null: not on this server; the run was started elsewhere.",
    )
    skipped_bytes = serializers.IntegerField(help_text="Bytes of the log before `log`.")


class FindingQuery(PageQuery):
    """Selects findings."""

    run = Text(required=False, max_length=36, help_text="Run of reconcile; by default the newest that succeeded.")
    kind = serializers.ListField(
        child=Choice(FINDING_KINDS),
        required=False,
        max_length=len(FINDING_KINDS),
        help_text="One of these kinds. Repeatable.",
    )
    group = Text(required=False, max_length=255, help_text="Only this group.")


class FindingView(serializers.Serializer[Any]):
    """A finding of reconcile."""

    number = serializers.IntegerField()
    kind = serializers.ChoiceField(FINDING_KINDS)
    group_id = serializers.CharField()
    topic = serializers.CharField()
    partition = Int32()
    expected = serializers.IntegerField(allow_null=True, help_text="What the journal, or the log, says.")
    found = serializers.IntegerField(allow_null=True, help_text="What is, or was, committed.")
    evidence = serializers.DictField(help_text="Ids of journal lines, members, generations, instants; by kind.")


class FindingPage(serializers.Serializer[Any]):
    """A page of findings by group, topic and partition."""

    run = serializers.UUIDField(allow_null=True, help_text="null: no run of reconcile has succeeded yet.")
    ended_at = Instant(allow_null=True)
    findings = FindingView(many=True)
    next_cursor = NextCursor()


def shown_run(run: Run) -> dict[str, Any]:
    """A run in the form that the view takes."""
    fields = RunView().fields.keys() - {"slices", "result"}
    result = None if run.result is None else {k: v for k, v in run.result.items() if k not in OF_GROUPS}
    slices = {"done": run.slices_done, "total": run.slices_total}
    return {name: getattr(run, name) for name in fields} | {"slices": slices, "result": result}


def shown_finding(finding: Finding) -> dict[str, Any]:
    """A finding in the form that the view takes."""
    return asdict(finding)
