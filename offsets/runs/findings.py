"""Read model of the findings of reconcile. The findings themselves: `offsets.spark.reconcile`; docs/reconcile.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from kcoord.control.rest.answers import Int32, doc, one_of
from kcoord.database.paging import DEFAULT_LIMIT, EVERYTHING, Page, Visible, cut, decode_cursor, encode_cursor
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.core.types import Millis
from offsets.models import ReconcileFinding
from offsets.runs.service import SparkRun, SparkRuns, checked, unknown_run

Q = queries("offsets")

KINDS = ReconcileFinding.Kind.values


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding of reconcile."""

    number: int
    kind: Annotated[str, one_of(KINDS)]
    group_id: str
    topic: str
    partition: Int32
    expected: Annotated[int | None, doc("What the journal, or the log, says.")]
    found: Annotated[int | None, doc("What is, or was, committed.")]
    evidence: Annotated[dict[str, Any], doc("Ids of journal lines, members, generations, instants; by kind.")]


@dataclass(frozen=True, slots=True)
class FindingFilter:
    """Which findings to list: of one of `kinds`, of the group. None: no condition."""

    kinds: Sequence[str] | None = None
    group_id: str | None = None


@dataclass(frozen=True, slots=True)
class SeenBy:
    """The groups and topics that the caller may describe."""

    groups: Visible = EVERYTHING
    topics: Visible = EVERYTHING

    def parameters(self) -> dict[str, list[str]]:
        """In the form that the statements take."""
        return {**self.groups.parameters("group"), **self.topics.parameters("topic")}


@dataclass(frozen=True, slots=True)
class GroupFindings:
    """How many findings a run of reconcile, which ended at `ended_at` (ms), has of a group."""

    run_id: str
    ended_at: Millis
    count: int


class FindingReads:
    """Lists of findings. Methods may raise COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._runs = runtime.get(SparkRuns)

    async def findings(
        self,
        wanted: FindingFilter,
        *,
        run_id: str | None = None,
        cursor: str | None = None,
        limit: int = DEFAULT_LIMIT,
        seen_by: SeenBy = SeenBy(),  # noqa: B008 - immutable
    ) -> tuple[SparkRun | None, Page[FindingView]]:
        """A page of the findings of a reconcile run, by group, topic and partition, and the run.

        `run_id` None: the newest successful run; if there was none yet, None is returned for the run. Raises RunRefused
        with status 404, INVALID_REQUEST for a cursor of another list.
        """
        after = 0
        if cursor is not None:
            run_id, after = _edge(cursor, run_id)
        found_run = await self._run(run_id)
        if found_run is None:
            return None, Page((), None)
        parameters = {
            "run_id": found_run.id,
            "after": after,
            "kinds": None if wanted.kinds is None else list(wanted.kinds),
            "group": wanted.group_id,
            "limit": limit + 1,
            **seen_by.parameters(),
        }
        async with self._db.connection() as connection:
            found = await self._db.records(connection, FindingView, Q.reconcile_findings, parameters)
        shown, more = cut(found, limit)
        return found_run, Page(shown, encode_cursor(found_run.id, shown[-1].number) if more else None)

    async def counts(
        self,
        run_id: str,
        group_id: str | None = None,
        *,
        seen_by: SeenBy = SeenBy(),  # noqa: B008 - immutable
    ) -> dict[str, int]:
        """How many findings of each kind a run stored, in total or of one group."""
        parameters = {"run_id": run_id, "group": group_id, **seen_by.parameters()}
        async with self._db.connection() as connection:
            rows = await self._db.rows(connection, Q.count_reconcile_findings, parameters)
        return {str(kind): int(count) for kind, count in rows}

    async def of_group(
        self,
        group_id: str,
        *,
        seen_by: SeenBy = SeenBy(),  # noqa: B008 - immutable
    ) -> GroupFindings | None:
        """How many findings the newest run of reconcile that succeeded has of a group; None: there was no run."""
        parameters = {"group": group_id, **seen_by.parameters()}
        async with self._db.connection() as connection:
            return await self._db.record(connection, GroupFindings, Q.findings_of_group, parameters)

    async def _run(self, run_id: str | None) -> SparkRun | None:
        if run_id is None:
            return await self._runs.newest("reconcile")
        found = await self._runs.run(run_id)
        if found.kind != "reconcile":
            raise unknown_run(run_id)
        return found


def _edge(cursor: str, run_id: str | None) -> tuple[str, int]:
    """The run and the number that the next page starts after: a run that ends meanwhile does not change the list."""
    found, after = decode_cursor(cursor, str, int)
    if run_id is not None and checked(run_id) != found:
        raise ProtocolError(
            Error.INVALID_REQUEST,
            "cursor: belongs to another run; start again without a cursor",
            fields={"field": "cursor"},
        )
    return str(found), int(after)
