"""Requests and responses of the run and finding endpoints."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from rest_framework import serializers

from kcoord.control.rest.answers import Answer, From, Instant, Int32, NextCursor, doc, one_of
from kcoord.control.rest.fields import Choice, PageQuery, StrictSerializer, Text
from offsets.models import SparkRun
from offsets.runs.findings import KINDS as FINDING_KINDS
from offsets.runs.findings import FindingView
from offsets.runs.service import KINDS, STARTABLE

STATES = SparkRun.State.values


class RunQuery(PageQuery):
    """Selects runs."""

    kind = Choice(KINDS, required=False, help_text="Only runs of this kind.")


class NewRun(StrictSerializer):
    """A run to start."""

    kind = Choice(STARTABLE)


class Slices(Answer):
    """How far the current stage is; 0 of 0: unknown."""

    done: Annotated[Int32, From("slices_done")]
    total: Annotated[Int32, From("slices_total")]


class RunView(Answer):
    """A run of a Spark job."""

    id: UUID
    kind: Annotated[str, one_of(KINDS)]
    state: Annotated[
        str, one_of(STATES, "lost: its process ended without recording a result. requested: its process is starting.")
    ]
    requested_at: Instant
    requested_by: Annotated[str, doc("A token, an account, `schedule`, or `local:` and the user who ran the command.")]
    started_at: Instant | None
    ended_at: Instant | None
    cancel_requested_at: Instant | None
    stage: Annotated[str, doc("Current or last stage.")]
    slices: Annotated[Slices, From("")]
    rows: int | None
    files: int | None
    bytes: int | None
    days: Annotated[Int32, doc("Days of the journal from which it archived rows.")]
    findings: Annotated[int | None, doc("Number of findings, including those not listed.")]
    result: Annotated[
        dict[str, Any] | None, From("public_result"), doc("What the command prints with `--format json`.")
    ]
    error: str


class RunPage(Answer):
    """A page of runs, newest first."""

    runs: list[RunView]
    next_cursor: NextCursor


class RunLogView(Answer):
    """The end of a run's log."""

    id: UUID
    log: Annotated[str | None, doc("null: not on this server; the run was started elsewhere.")]
    skipped_bytes: Annotated[int, doc("Bytes of the log before `log`.")]


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


class FindingPage(Answer):
    """A page of findings by group, topic and partition."""

    run: Annotated[UUID | None, doc("null: no run of reconcile has succeeded yet.")]
    ended_at: Instant | None
    findings: list[FindingView]
    next_cursor: NextCursor
