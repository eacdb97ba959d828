"""The end of the demo: its commits archived with Spark, and its offsets compared with them. Uses only the HTTP API."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

import httpx

from kcoord.tools.demo.service import DemoProblem, Say, Service

RUN_SECONDS = 600.0
"""The longest that a run may take; starting Spark alone takes ten seconds, on a busy machine many times that."""
POLL_SECONDS = 0.5
PROGRESS_SECONDS = 5.0
MOST_SHOWN = 5


def archive_and_reconcile(service: Service, group: str, say: Say) -> bool:
    """True if reconcile finds nothing in the group. Raises DemoProblem if a run cannot be started, or fails."""
    archived = _run(service, "archive", say)
    say(f"archived {archived['rows']} commits as Parquet in {_seconds(archived)}")
    reconciled = _run(service, "reconcile", say)
    path = f"reconcile/findings?run={reconciled['id']}&group={quote(group, safe='')}"
    findings = service.expect("GET", path)["findings"]
    say(f"reconcile compared {reconciled['rows']} commits in {_seconds(reconciled)}: {len(findings)} findings")
    for finding in findings[:MOST_SHOWN]:
        place = f"{finding['topic']} {finding['partition']}"
        say(f"  {finding['kind']} at {place}: expected {finding['expected']}, found {finding['found']}")
    return not findings


def _run(service: Service, kind: str, say: Say) -> Mapping[str, Any]:
    """A run that succeeded. Raises DemoProblem."""
    answer = service.request("POST", "archive/runs", {"kind": kind})
    if answer.status_code in (httpx.codes.CONFLICT, httpx.codes.FORBIDDEN):
        raise DemoProblem(f"{kind} cannot be started: {answer.json()['detail']}")
    if not answer.is_success:
        raise DemoProblem(f"{kind} cannot be started: {answer.status_code}: {answer.text[:500]}")
    run = answer.json()
    say(f"{kind} runs in Spark: {service.url}/archive/runs/{run['id']}")
    began = said_at = time.monotonic()
    ends_at = began + RUN_SECONDS
    while run["state"] in ("requested", "running"):
        if time.monotonic() > ends_at:
            raise DemoProblem(f"{kind} takes longer than {RUN_SECONDS:g} s; it is at {run['stage'] or 'its start'}")
        if time.monotonic() >= said_at + PROGRESS_SECONDS:
            said_at = time.monotonic()
            say(f"{kind}, {said_at - began:.0f} s: {_progress(run)}")
        time.sleep(POLL_SECONDS)
        run = service.expect("GET", f"archive/runs/{run['id']}")
    if run["state"] != "succeeded":
        raise DemoProblem(f"{kind} {run['state']}: {run['error']}; without SPARK=1 the demo needs no Spark")
    found: Mapping[str, Any] = run
    return found


def _progress(run: Mapping[str, Any]) -> str:
    done, total = run["slices"]["done"], run["slices"]["total"]
    return (run["stage"] or "its process starts") + (f", {done} of {total} slices" if total else "")


def _seconds(run: Mapping[str, Any]) -> str:
    began, ended = (datetime.fromisoformat(run[name]) for name in ("started_at", "ended_at"))
    return f"{(ended - began).total_seconds():.1f} s"
