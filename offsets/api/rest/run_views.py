"""Runs of the Spark jobs and the findings of reconcile, for people and scripts (architecture.md 7).

Reading runs requires `describe` on the cluster; starting and cancelling them, and reading their logs, requires `admin`.
Findings are those of the groups and topics that the caller may describe.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from kcoord.access.rights import Operation, Permission, Resource
from kcoord.control.rest.answers import shown
from kcoord.control.rest.schema import Name, describe
from kcoord.control.rest.views import ControlView, path_name
from kcoord.door.http.problem import invalid
from kcoord.protocol.errors import Error
from offsets.api.rest import run_serializers as s
from offsets.runs.findings import FindingFilter, FindingReads, SeenBy
from offsets.runs.service import SparkRun, SparkRuns

RUN_ID = Name("run_id", "Id of the run.", {"type": "string", "format": "uuid"})
_DENIED = (Error.CLUSTER_AUTHORIZATION_FAILED,)
_MISSING = "There is no such run."
_ID = "3f0e6a52-6f3b-4c8e-9a53-0d9c1f4b7a11"
_EXAMPLE = {
    "id": _ID,
    "kind": "archive",
    "state": "running",
    "requested_at": "2026-01-31T03:00:00.000Z",
    "requested_by": "schedule",
    "started_at": "2026-01-31T03:00:02.000Z",
    "ended_at": None,
    "cancel_requested_at": None,
    "stage": "write",
    "slices": {"done": 3, "total": 8},
    "rows": None,
    "files": None,
    "bytes": None,
    "days": 0,
    "findings": None,
    "result": None,
    "error": "",
}
_FINDINGS = {
    "run": _ID,
    "ended_at": "2026-01-31T04:00:12.000Z",
    "findings": [
        {
            "number": 1,
            "kind": "other_offset",
            "group_id": "billing",
            "topic": "orders",
            "partition": 0,
            "expected": 4_711,
            "found": 4_700,
            "evidence": {"journal_ids": [90_210]},
        }
    ],
    "next_cursor": None,
}


def _answer(run: SparkRun, status: int = 200) -> Response:
    return Response(shown(s.RunView, run), status=status)


class RunsBase(ControlView):
    """Shared by the views of runs: who may see them at all."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the token, then whether the caller may see runs."""
        super().initial(request, *args, **kwargs)
        self.principal.require_cluster(Operation.DESCRIBE)

    def run_id(self, request: Request, taken: str) -> str:
        """The id in the path."""
        return path_name(request, 3, taken, lambda segment: segment.decode("utf-8", "replace"))

    def run(self, request: Request, taken: str) -> SparkRun:
        """The run in the path. Raises RunRefused with status 404."""
        asked = self.run_id(request, taken)
        return self.service(lambda runtime: runtime.get(SparkRuns).run(asked))


class RunsView(RunsBase):
    """`/v1/archive/runs`."""

    @describe(
        "listRuns",
        "List runs of the Spark jobs",
        tag="archive",
        takes=Permission.DESCRIBE_CLUSTER,
        query=s.RunQuery,
        response=s.RunPage,
        errors=_DENIED,
        description="Takes `describe` on the cluster. Newest first, including runs started by a command or the "
        "schedule.",
        examples=[OpenApiExample("A run", {"runs": [_EXAMPLE], "next_cursor": None}, response_only=True)],
    )
    def get(self, request: Request) -> Response:
        """A page of runs."""
        query = self.query(s.RunQuery)
        page = self.service(lambda runtime: runtime.get(SparkRuns).runs(**query))
        return self.listed(s.RunPage, "runs", page)

    @describe(
        "startRun",
        "Start a run of a Spark job",
        tag="archive",
        takes=Permission.ADMIN_CLUSTER,
        audit="run.start",
        request=s.NewRun,
        response=s.RunView,
        status=202,
        errors=_DENIED,
        conflict="No archive is configured, or a run of this kind is in progress.",
        description="Takes `admin` on the cluster. The run is a separate process: the response is sent once it has "
        "started, and `GET /v1/archive/runs/{run_id}` shows its progress. One run of each kind at a time.",
        examples=[OpenApiExample("Archive now", {"kind": "archive"}, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """Start a run."""
        self.query()
        given = self.given(s.NewRun)
        self.require()
        name = self.principal.name
        run = self.service(lambda runtime: runtime.get(SparkRuns).start(given["kind"], principal=name))
        return _answer(run, 202)


class RunView(RunsBase):
    """`/v1/archive/runs/{run_id}`."""

    @describe(
        "describeRun",
        "Describe a run of a Spark job",
        tag="archive",
        takes=Permission.DESCRIBE_CLUSTER,
        path=[RUN_ID],
        response=s.RunView,
        errors=_DENIED,
        missing=_MISSING,
        description="Takes `describe` on the cluster.",
        examples=[OpenApiExample("A run in progress", _EXAMPLE, response_only=True)],
    )
    def get(self, request: Request, run_id: str) -> Response:
        """One run."""
        self.query()
        return _answer(self.run(request, run_id))


class RunLogView(RunsBase):
    """`/v1/archive/runs/{run_id}/log`."""

    @describe(
        "readRunLog",
        "Read the end of a run's log",
        tag="archive",
        takes=Permission.ADMIN_CLUSTER,
        path=[RUN_ID],
        response=s.RunLogView,
        errors=_DENIED,
        missing=_MISSING,
        description="Takes `admin` on the cluster: a log may name any group and topic. The log is on the machine whose "
        "server or worker started the run.",
    )
    def get(self, request: Request, run_id: str) -> Response:
        """The log."""
        self.query()
        self.require()
        run = self.run(request, run_id)
        tail = self.service(lambda runtime: runtime.get(SparkRuns).log_tail(run))
        content = {"id": run.id, "log": tail and tail.text, "skipped_bytes": tail.skipped if tail else 0}
        return Response(shown(s.RunLogView, content))


class CancelRunView(RunsBase):
    """`/v1/archive/runs/{run_id}/cancel`."""

    @describe(
        "cancelRun",
        "Cancel a run of a Spark job",
        tag="archive",
        takes=Permission.ADMIN_CLUSTER,
        audit="run.cancel",
        path=[RUN_ID],
        response=s.RunView,
        errors=_DENIED,
        missing=_MISSING,
        conflict="The run has ended.",
        description="Takes `admin` on the cluster. The run ends within seconds and publishes nothing more; what it "
        "has published stays. Cancelling twice has no effect.",
    )
    def post(self, request: Request, run_id: str) -> Response:
        """Cancel a run."""
        self.query()
        if request.data:
            raise invalid("the body must be empty")
        self.require()
        asked, name = self.run_id(request, run_id), self.principal.name
        run = self.service(lambda runtime: runtime.get(SparkRuns).cancel(asked, principal=name))
        return _answer(run)


class FindingsView(ControlView):
    """`/v1/reconcile/findings`."""

    @describe(
        "listFindings",
        "List what reconcile found",
        tag="archive",
        takes=Permission.DESCRIBE_GROUP,
        query=s.FindingQuery,
        response=s.FindingPage,
        missing=_MISSING,
        description="Findings of one run of reconcile, on groups and topics that the caller may describe. A limited "
        "number per run is kept here; all are counted in its `findings` and exported to the archive.",
        examples=[OpenApiExample("The offset differs from the journal", _FINDINGS, response_only=True)],
    )
    def get(self, request: Request) -> Response:
        """A page of findings."""
        query = self.query(s.FindingQuery)
        wanted = FindingFilter(query.get("kind"), query.get("group"))
        seen_by = SeenBy(self.visible(Resource.GROUP), self.visible(Resource.TOPIC))
        run, page = self.service(
            lambda runtime: runtime.get(FindingReads).findings(
                wanted, run_id=query.get("run"), cursor=query.get("cursor"), limit=query["limit"], seen_by=seen_by
            )
        )
        return self.listed(s.FindingPage, "findings", page, run=run and run.id, ended_at=run and run.ended_at)
