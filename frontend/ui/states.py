"""States as pages show them, of groups, runs of Spark jobs and hand-overs: a label, a colour and a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from frontend.ui.rows import GroupHeader, Millis
from frontend.ui.wording import plural
from offsets.runs.service import SparkRun


@dataclass(frozen=True, slots=True)
class State:
    """A state as pages show it. `tone` names a colour of the style sheet; colour is never the only sign."""

    name: str
    label: str
    tone: str
    meaning: str


STATES: tuple[State, ...] = (
    State("Stable", "Stable", "good", "Members hold their partitions and send heartbeats."),
    State(
        "PreparingRebalance",
        "Preparing rebalance",
        "warn",
        "A rebalance has begun: the coordinator waits for the members to join again.",
    ),
    State(
        "CompletingRebalance",
        "Completing rebalance",
        "busy",
        "All members have joined: the coordinator waits for the leader's assignment.",
    ),
    State("Assigning", "Assigning", "warn", "The group changed: the coordinator computes a new target assignment."),
    State("Reconciling", "Reconciling", "busy", "Members give up and take over partitions until all have theirs."),
    State("Empty", "Empty", "idle", "No members. Committed offsets are kept until they expire."),
    State("Dead", "Dead", "bad", "The group is being removed; its members are told to start over."),
)
"""In the order in which pages list them."""

BY_NAME = {state.name: state for state in STATES}


HELD = State("Held", "Held", "warn", "No member can join until the hold ends.")


def is_held(held_until: Millis | None, now: Millis) -> bool:
    """An operator keeps members out of the group until then."""
    return held_until is not None and held_until > now


def state(name: str, *, held: bool = False) -> State:
    """A state by its protocol name; one unknown to this page keeps its name and is marked as unknown.

    `held`: the group is held at the moment, which its label, tone and meaning then say.
    """
    found = BY_NAME.get(name) or State(name, name, "idle", "This version does not know the state.")
    return State(name, f"{found.label}, held", "warn", f"{found.meaning} {HELD.meaning}") if held else found


def generation_word(header: GroupHeader) -> str:
    """What the group's number counts; the consumer protocol has a different name for it."""
    return "Generation" if header.type == "classic" else "Group epoch"


LEVELS = (0, 100, 10_000, 1_000_000)
"""A cell has the level of the last of these that its lag is beyond; level 0: it has no lag."""


def level(lag: int) -> int:
    """How hot a lag is: 0 to 4."""
    return sum(lag > bound for bound in LEVELS)


RUN_KINDS: Mapping[str, tuple[str, str]] = {
    "archive": ("Archive", "Publishes the new rows of the journal to the archive."),
    "reconcile": ("Reconcile", "Compares committed offsets with archive and journal. It changes nothing."),
    "restore": ("Restore", "Plans the offsets of a group as of an instant in the past."),
    "report": ("Report", "Computes commits, rewinds, idle groups and rebalances by day from the archive."),
    "import": ("Import", "Imports offsets recorded elsewhere."),
}
"""What each kind of run is called, and what it does."""

RUN_STATES: Mapping[str, State] = {
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
    return RUN_STATES.get(run.state) or State(run.state, run.state, "idle", "")


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
