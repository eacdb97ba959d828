"""The archive: runs of Spark jobs, one run with its log, and what reconcile found."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend.pages.archive.jobs import LastRuns, last_runs, schedules
from frontend.pages.archive.reports import report_parts, run_url
from frontend.ui import commands as as_command
from frontend.ui import reads as shared_reads
from frontend.ui.commands import service_url
from frontend.ui.form import Refusal, actor, attempt, done
from frontend.ui.page import Absent, BadAddress, Link, Pace, address, choice, form_page, group_url, page, show, text
from frontend.ui.reads import names_in_groups
from frontend.ui.rows import Millis, Names
from frontend.ui.states import RUN_KINDS, State, found_state, run_state
from frontend.ui.table import all_rows, csv_of, rows_of
from frontend.ui.viewer import RUN, SEE_LOG, SEE_RUNS, Action, Viewer, action, missing, require, viewer_of
from frontend.ui.wording import duration, member_name, plural
from frontend.ui.zones import instant
from kcoord.database.paging import MAX_LIMIT, Page
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.spark_packages import SparkState, spark_packages
from offsets.runs.findings import FindingFilter, FindingReads, FindingView
from offsets.runs.run_process import LogTail
from offsets.runs.service import KINDS as ALL_KINDS
from offsets.runs.service import STARTABLE, SparkRun, SparkRuns

T = TypeVar("T")
PAGE_SIZE = 50
BUSY, QUIET = Pace(every_ms=2_000, gap_ms=1_000), Pace(every_ms=15_000, gap_ms=5_000)


@page
def archive(request: HttpRequest) -> HttpResponse:
    """All runs, newest first, one page at a time."""
    require(request, SEE_RUNS)
    kind = choice(request, "kind", ALL_KINDS)
    cursor = text(request, "after") or None
    listed, going_on, last, now = _readable(lambda runtime: _overview(runtime, kind or None, cursor))
    path = settings.KCOORD.str("archive.path")
    lacking = missing(viewer_of(request), RUN)
    packages = spark_packages()
    may_start = bool(path) and packages.may_start
    has_run = any(one.newest for one in last.values())
    context = {
        "now": now,
        "path": path,
        "lines": [_line(run, now) for run in listed.items],
        "open_lines": [_line(run, now) for run in going_on if run.kind not in STARTABLE],
        "jobs": _jobs(last, now, lacking, may_start=may_start) if path or has_run else [],
        "kinds": _kinds(request, kind),
        "kind": RUN_KINDS[kind][0] if kind else "",
        "kind_name": kind,
        "may_start": may_start,
        "packages": packages,
        "lacking": lacking,
        "newest_url": address(request, after=None) if cursor else None,
        "older_url": address(request, after=listed.next_cursor) if listed.next_cursor else None,
        "stream": reverse("frontend:live"),
        "pace": BUSY if going_on or packages.state is SparkState.INSTALLING else QUIET,
    }
    return show(request, "pages/archive/archive", context, section="archive", title="Archive")


def _jobs(found: Mapping[str, LastRuns], now: int, lacking: str, *, may_start: bool) -> list[Mapping[str, Any]]:
    """The jobs that can be started. `start` None: not now; `schedule`: when one starts by itself, in words."""
    when, jobs = schedules(), list[Mapping[str, Any]]()
    for kind, last in found.items():
        label, meaning = RUN_KINDS[kind]
        runs = {"running": last.running, "failed": last.failed, "done": last.done}
        lines = {name: run and _line(run, now) for name, run in runs.items()}
        start = Action("Run…", _start_url(kind), lacking) if may_start and last.running is None else None
        jobs.append(
            {"kind": kind, "label": label, "meaning": meaning, **lines}
            | {"schedule": when.get(kind, ()), "start": start}
        )
    return jobs


def _start_url(kind: str) -> str:
    return f"{reverse('frontend:start-run')}?kind={kind}"


def _line(run: SparkRun, now: int) -> RunLine:
    return run_line(run, now, run_url(run.id))


def _kinds(request: HttpRequest, chosen: str) -> list[Link]:
    named = [("", "All"), *((kind, RUN_KINDS[kind][0]) for kind in ALL_KINDS)]
    return [Link(label, address(request, kind=kind, after=None), kind == chosen) for kind, label in named]


def _readable(work: Any) -> Any:
    """The page that `work` reads. Raises BadAddress for a cursor of another list."""
    try:
        return bridge.call(work)
    except ProtocolError as error:
        if error.error is Error.INVALID_REQUEST and getattr(error, "status", 400) == 400:
            raise BadAddress(error.detail) from error
        raise


async def _overview(
    runtime: Runtime, kind: str | None, cursor: str | None
) -> tuple[Page[SparkRun], Sequence[SparkRun], Mapping[str, LastRuns], int]:
    """A page of the runs, those that go on, the last ones by job, and when that was."""
    runs = runtime.get(SparkRuns)
    listed, newest, last, now = await asyncio.gather(
        runs.runs(kind=kind, cursor=cursor, limit=PAGE_SIZE),
        runs.runs(limit=PAGE_SIZE),
        last_runs(runs),
        shared_reads.now(runtime.db),
    )
    return listed, [run for run in newest.items if run.is_open], last, now


@page
def run_page(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """One run: its progress, what it did, its log."""
    require(request, SEE_RUNS)
    viewer = viewer_of(request)
    log_missing = missing(viewer, SEE_LOG)
    run, tail, now = _run(run_id)
    context = {
        "now": now,
        "line": _line(run, now),
        "meaning": RUN_KINDS.get(run.kind, ("", ""))[1],
        "facts": result_facts(run),
        "log": None if log_missing else tail,  # a log may name any group and topic
        "log_missing": log_missing,
        "cancel": action(viewer, "Cancel…", f"{run_url(run.id)}/cancel", RUN) if run.is_open else None,
        "findings_url": _findings_url(run) if run.kind == "reconcile" and run.findings else "",
        "stream": reverse("frontend:live") if run.is_open else "",
        "pace": BUSY if run.is_open else QUIET,
        **report_parts(request, run),
    }
    return show(request, "pages/archive/run", context, section="archive", title=context["line"].kind)


def _run(run_id: UUID) -> tuple[SparkRun, LogTail | None, int]:
    async def read(runtime: Runtime) -> tuple[SparkRun, LogTail | None, int]:
        runs = runtime.get(SparkRuns)
        run = await runs.run(str(run_id))
        return run, await runs.log_tail(run), await shared_reads.now(runtime.db)

    return _of_run(lambda: bridge.call(read))


def _of_run(read: Callable[[], T]) -> T:
    """What is read of a run. Raises Absent if there is no such run."""
    try:
        return read()
    except ProtocolError as error:
        if getattr(error, "status", 0) == 404:
            told = "There is no such run; the Archive page lists all of them."
            raise Absent("No such run", told, "archive") from error
        raise


def _findings_url(run: SparkRun) -> str:
    return f"{reverse('frontend:findings')}?run={run.id}"


@form_page("run.start")
def start_run(request: HttpRequest) -> HttpResponse:
    """Start a run, after a page that says what it does."""
    require(request, RUN)
    kind = choice(request, "kind", STARTABLE) or STARTABLE[0]
    refusal = Refusal()
    if request.method == "POST":
        started, refusal = attempt(lambda runtime: runtime.get(SparkRuns).start(kind, principal=actor(request)))
        if started is not None:
            return done(request, f"{RUN_KINDS[kind][0]} has been started.", run_url(started.id))
    now, path = bridge.call(lambda runtime: shared_reads.now(runtime.db)), settings.KCOORD.str("archive.path")
    label, meaning = RUN_KINDS[kind]
    context = {
        "now": now,
        "path": path,
        "packages": spark_packages(),
        "label": label,
        "meaning": meaning,
        "refusal": refusal,
        "commands": [as_command.request(service_url(request), "Start the run", "POST", "archive/runs", {"kind": kind})],
    }
    return show(request, "pages/archive/start_run", context, section="archive", status=refusal.status)


@form_page("run.cancel")
def cancel_run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """End a run, after a page that says what that means."""
    require(request, RUN)
    refusal = Refusal()
    if request.method == "POST":
        asked = str(run_id)
        cancelled, refusal = attempt(lambda runtime: runtime.get(SparkRuns).cancel(asked, principal=actor(request)))
        if cancelled is not None:
            return done(request, "The run is being cancelled.", run_url(asked))
    run, _, now = _run(run_id)
    cancel = as_command.request(service_url(request), "Cancel the run", "POST", f"archive/runs/{run.id}/cancel")
    context = {"now": now, "line": _line(run, now), "refusal": refusal, "commands": [cancel] if run.is_open else []}
    return show(request, "pages/archive/cancel_run", context, section="archive", status=refusal.status)


@page
def findings(request: HttpRequest) -> HttpResponse:
    """Findings of one reconcile run, by group, topic and partition."""
    kind, group_id, run_id = choice(request, "kind", FINDINGS), text(request, "group"), text(request, "run") or None
    cursor = text(request, "after") or None
    wanted = wanted_findings(request)
    viewer, seen_by = viewer_of(request), viewer_of(request).seen_by

    async def read(
        runtime: Runtime,
    ) -> tuple[SparkRun | None, Page[FindingView], dict[str, int], Mapping[str, Names], int]:
        reads = runtime.get(FindingReads)
        run, listed = await reads.findings(wanted, run_id=run_id, cursor=cursor, limit=PAGE_SIZE, seen_by=seen_by)
        counts = await reads.counts(run.id, group_id or None, seen_by=seen_by) if run else {}
        return run, listed, counts, await _names(runtime, viewer, listed.items), await shared_reads.now(runtime.db)

    run, listed, counts, names, now = _of_run(lambda: _readable(read))
    asked = {"run": run.id if run else "", "kind": kind, "group": group_id}
    context = {
        "now": now,
        "line": run and _line(run, now) if viewer.sees_cluster else None,
        "lines": [finding_line(finding, names.get(finding.group_id, {})) for finding in listed.items],
        "kind": kind,
        "group_id": group_id,
        "run_id": run_id or "",
        "kinds": [(name, f"{label} ({counts.get(name, 0):,})") for name, (label, _, _) in FINDINGS.items()],
        "filtered": bool(kind or group_id),
        "clear_url": _findings_url(run) if run else reverse("frontend:findings"),
        "csv_url": f"{reverse('frontend:findings-csv')}?{urlencode({k: v for k, v in asked.items() if v})}",
        "summary": _summary(run, counts, bool(group_id) or not viewer.sees_all),
        "newest_url": address(request, after=None) if cursor else None,
        "older_url": address(request, after=listed.next_cursor) if listed.next_cursor else None,
    }
    return show(request, "pages/archive/findings", context, section="archive", title="Findings")


async def _names(runtime: Runtime, viewer: Viewer, found: Iterable[FindingView]) -> Mapping[str, Names]:
    """What the members are called that findings name, by group; some of them are gone."""
    named: dict[str, list[str]] = {}
    for finding in found:
        named.setdefault(finding.group_id, []).extend(members_of(finding))
    async with runtime.db.connection() as connection:
        return await names_in_groups(runtime.db, connection, viewer, named, gone=True)


def wanted_findings(request: HttpRequest) -> FindingFilter:
    """What the URL asks for. Raises BadAddress."""
    kind = choice(request, "kind", FINDINGS)
    return FindingFilter([kind] if kind else None, text(request, "group") or None)


def _summary(run: SparkRun | None, counts: dict[str, int], in_part: bool) -> str:
    """`in_part`: of one group, or what the viewer may see."""
    if run is None:
        return "No run of reconcile has succeeded yet"
    stored = sum(counts.values())
    if in_part or not run.findings or run.findings <= stored:
        return plural(stored, "finding")
    if not stored:
        return plural(run.findings, "finding")
    return f"{plural(run.findings, 'finding')}, the first {stored:,} of them here"


@page
def runs_csv(request: HttpRequest) -> HttpResponseBase:
    """All runs, newest first, of the kind that the page shows."""
    require(request, SEE_RUNS)
    kind = choice(request, "kind", ALL_KINDS) or None
    columns = """
        run_id=id kind state @requested_at requested_by @started_at @ended_at rows days files bytes findings error
    """
    found = rows_of(lambda runtime, cursor: runtime.get(SparkRuns).runs(kind=kind, cursor=cursor, limit=MAX_LIMIT))
    return csv_of("runs", columns, found)


@page
def findings_csv(request: HttpRequest) -> HttpResponseBase:
    """The findings of a run that match the filters of the page."""
    wanted, run_id, seen_by = wanted_findings(request), text(request, "run") or None, viewer_of(request).seen_by

    async def read(runtime: Runtime, cursor: str | None) -> tuple[Sequence[FindingView], str | None]:
        reads = runtime.get(FindingReads)
        # A cursor names its run: the file has the findings of one, whatever succeeds meanwhile.
        named = None if cursor else run_id
        _, found = await reads.findings(wanted, run_id=named, cursor=cursor, limit=MAX_LIMIT, seen_by=seen_by)
        return found.items, found.next_cursor

    found = _of_run(lambda: all_rows(read))
    rows = ({**asdict(one), "evidence": json.dumps(dict(one.evidence))} for one in found)
    return csv_of("findings", "number kind group_id topic partition expected found evidence", rows)


FINDINGS: Mapping[str, tuple[str, str, str]] = {
    "missing_in_view": ("Missing offset", "bad", "An offset is in the journal but not committed."),
    "missing_in_journal": ("Missing in journal", "bad", "An offset is committed but not in the journal."),
    "surplus_in_view": ("Surplus offset", "bad", "An offset is committed but removed according to the journal."),
    "other_offset": ("Other offset", "bad", "The committed offset differs from the journal."),
    "other_metadata": ("Other metadata", "warn", "The offset is right, but its metadata differs."),
    "rewind": ("Rewind", "warn", "A commit is lower than the previous one, without a reset."),
    "beyond_log_end": ("Beyond log end", "bad", "A commit is past the end of the log."),
    "below_log_start": ("Below log start", "warn", "A commit is before the first record in the log."),
    "topic_gone": ("Topic gone", "warn", "An offset is committed on a topic that does not exist."),
    "partition_gone": ("Partition gone", "warn", "An offset is committed on a partition that the topic does not have."),
    "two_members": ("Two members", "bad", "Two members of one generation committed on the partition."),
    "fenced_generation": ("Fenced generation", "bad", "A commit from an ended generation was accepted."),
    "time_backwards": ("Time backwards", "warn", "A later line of the journal has an earlier time."),
    "item_lost": ("Item lost", "bad", "Items of a share group are neither finished nor given up, nor to be delivered."),
    "item_twice": ("Item twice", "bad", "Items of a share group were finished twice, or are still to be delivered."),
}
"""What each kind of finding is called, its tone, and what it means."""


LONGEST_METADATA = 40
"""Characters of a commit's metadata in the evidence of a finding; its commits have all of it."""
_MEMBERS = ("members", "member_ids")
_FIRST = ("journal_ids",)
"""Evidence that any finding may have, listed before the rest."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run as text. `percent`: progress of the stage, None if unknown. `found`: a warning about what it found."""

    run: SparkRun
    kind: str
    state: State
    url: str
    duration: str
    percent: int | None
    found: State | None = None

    @property
    def began(self) -> Millis:
        """When the run began or, if it has not begun, when it was requested."""
        return self.run.started_at or self.run.requested_at


def run_line(run: SparkRun, now: Millis, url: str) -> RunLine:
    """A run as lists and its own page show it."""
    state = run_state(run)
    length = ""
    if run.started_at is not None:
        length = duration(max(0, (now if run.is_open else run.ended_at or run.started_at) - run.started_at))
    percent = 100 * run.slices_done // run.slices_total if run.is_open and run.slices_total else None
    return RunLine(run, RUN_KINDS.get(run.kind, (run.kind, ""))[0], state, url, length, percent, found_state(run))


def finding_line(finding: FindingView, names: Names) -> tuple[FindingView, State, str, str]:
    """A finding with its kind, its evidence, and the commits. `names`: those of members of its group that are known."""
    label, tone, meaning = FINDINGS.get(finding.kind, (finding.kind, "idle", ""))
    key = urlencode({"topic": finding.topic, "partition": finding.partition})
    commits = f"{group_url(finding.group_id)}/commits?{key}"
    return finding, State(finding.kind, label, tone, meaning), evidence(finding, names), commits


def members_of(finding: FindingView) -> list[str]:
    """The ids of the members that the evidence names."""
    return [str(one) for name in _MEMBERS for one in _listed(finding.evidence.get(name))]


def evidence(finding: FindingView, names: Names) -> str:
    """The evidence for a finding: `journal 4, 5 · members a, b · at 2026-01-31 …`. Empty parts are omitted."""
    keys = sorted(finding.evidence, key=lambda key: (key not in _FIRST, key))
    said = [_said(key, finding.evidence[key], names) for key in keys if finding.evidence[key] not in (None, [], "", {})]
    return " · ".join(said)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _said(name: str, value: Any, names: Names) -> str:
    values = _listed(value)
    if name == "journal_ids":
        return f"journal {', '.join(map(str, values))}"
    if name in _MEMBERS:
        known = ", ".join(member_name(str(one), names) for one in values)
        return f"{'member' if len(values) == 1 else 'members'} {known}"
    if name in ("instants", "at"):
        return f"at {', '.join(instant(one) for one in values if isinstance(one, int))}"
    if name == "metadata" and len(values) == 2:
        return f"metadata {_quoted(values[0])} in the journal, {_quoted(values[1])} committed"
    if name == "line" and isinstance(value, dict):
        return _json_line(value)
    return f"{name.replace('_', ' ')} {', '.join(map(_plain, values))}"


def _json_line(line: Mapping[str, Any]) -> str:
    """What the last line of the journal says, which a repair would write."""
    offset, at, metadata = (line.get(name) for name in ("committed_offset", "at", "metadata"))
    said = "no offset" if offset is None else f"offset {offset:,}"
    written = f" of {instant(at)}" if isinstance(at, int) else ""
    return f"last line{written}: {said}" + (f", metadata {_quoted(metadata)}" if metadata else "")


def _quoted(text: Any) -> str:
    shown = "" if text is None else str(text)
    return f"“{shown if len(shown) <= LONGEST_METADATA else shown[:LONGEST_METADATA] + '…'}”"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def result_facts(run: SparkRun) -> list[tuple[str, str]]:
    """The scalar values of a run's result, as text; lists are counted."""
    found = []
    for name, value in (run.result or {}).items():
        if isinstance(value, bool):
            found.append((_label(name), "yes" if value else "no"))
        elif isinstance(value, int) and name.endswith(("_at", "_since")):
            found.append((_label(name), instant(value)))
        elif isinstance(value, int):
            found.append((_label(name), f"{value:,}"))
        elif isinstance(value, str | float):
            found.append((_label(name), str(value)))
        elif isinstance(value, list) and value:
            found.append((_label(name), plural(len(value), "entry", "entries")))
    return found


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()
