"""What the state of a group means: a label, a colour and a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from frontend.ui.rows import GroupHeader, Millis


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
