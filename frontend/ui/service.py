"""What the service does by itself, as text: runs of Spark jobs and hand-overs of coordinator partitions."""

from __future__ import annotations

from collections.abc import Mapping

from frontend.ui.states import State
from frontend.ui.wording import plural
from offsets.runs.service import SparkRun

KINDS: Mapping[str, tuple[str, str]] = {
    "archive": ("Archive", "Publishes the new rows of the journal to the archive."),
    "reconcile": ("Reconcile", "Compares committed offsets with archive and journal. It changes nothing."),
    "restore": ("Restore", "Plans the offsets of a group as of an instant in the past."),
    "report": ("Report", "Computes commits, rewinds, idle groups and rebalances by day from the archive."),
    "import": ("Import", "Imports offsets recorded elsewhere."),
}
"""What each kind of run is called, and what it does."""

STATES: Mapping[str, State] = {
    "requested": State("requested", "Starting", "busy", "Its process is starting."),
    "running": State("running", "Running", "busy", "Its process is running and sends heartbeats."),
    "succeeded": State("succeeded", "Succeeded", "good", "It completed."),
    "failed": State("failed", "Failed", "bad", "It failed; see its error."),
    "cancelled": State("cancelled", "Cancelled", "idle", "It was cancelled and published nothing after that."),
    "lost": State(
        "lost", "Lost", "bad", "Its process ended without recording a result, for example after a power failure."
    ),
}

DONE_WITH_FINDINGS = State("succeeded", "Succeeded", "idle", "It completed; what it found is counted beside it.")


def run_state(run: SparkRun) -> State:
    """Whether a run did its work. What it found is another matter: `found_state`."""
    if run.state == "succeeded" and run.findings:
        return DONE_WITH_FINDINGS
    return STATES.get(run.state) or State(run.state, run.state, "idle", "")


def found_state(run: SparkRun) -> State | None:
    """What a run found, as a warning; None: nothing, or it does not look for anything."""
    if not run.findings:
        return None
    return State("findings", plural(run.findings, "finding"), "warn", "Committed offsets and commits do not agree.")


REASONS: Mapping[str, tuple[str, str]] = {
    "taken": ("Nobody owned it", "A node took what had no owner."),
    "lapsed": (
        "Lease ran out",
        "The owner did not renew its lease: it died, froze, or lost its connection to Postgres.",
    ),
    "stopped": ("Stopped", "The owner stopped and named its successors."),
    "balanced": ("Balanced", "The owner gave it away so that all nodes own about the same number."),
}
"""What each reason of a hand-over is called, and what it means. Every reason has its text; a test checks that."""
