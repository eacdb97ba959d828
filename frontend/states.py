"""What a group's and a member's state means: a label, a colour and a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from frontend.partitions import names
from frontend.queries import GroupPage
from frontend.rows import GroupHeader, Member, Millis
from frontend.wording import Due, member_name, plural


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


def explain(page: GroupPage) -> str:
    """One sentence: what the group is doing and what it waits for. For consumer groups: `frontend.consumer.states`."""
    header, counts = page.header, page.counts
    if page.members_hidden:
        return state(header.state).meaning
    if header.type == "share" and not header.is_held(page.now):
        return _share(header, counts.members)
    match header.state:
        case "Empty" if header.is_held(page.now):
            kept = plural(page.totals.committed, "committed offset")
            return f"No members, and none can join while the group is held. {kept} kept."
        case "PreparingRebalance":
            return _preparing(page)
        case "CompletingRebalance":
            leader = member_name(header.leader_id, names(page)) if header.leader_id else "the leader"
            return (
                f"{plural(counts.members, 'member')} joined generation {header.generation_id:,}; the coordinator waits "
                f"for {leader} to assign the partitions."
            )
        case "Stable":
            who = "One member works" if counts.members == 1 else f"{counts.members:,} members work"
            return (
                f"{who} on generation {header.generation_id:,}. A member that sends no heartbeat until its session "
                "ends loses its partitions to the others."
            )
        case "Empty" if counts.pending_ids:
            return f"No members yet; {plural(counts.pending_ids, 'member id')} given out and about to join."
        case "Empty" if page.totals.committed:
            return f"No members. {plural(page.totals.committed, 'committed offset')} kept for the next member."
        case other:
            return state(other).meaning


def _share(header: GroupHeader, members: int) -> str:
    if not members:
        return "No members. A share group has no committed offsets, and stays until it is deleted."
    who = "One member works" if members == 1 else f"{members:,} members share the work"
    return (
        f"{who} at group epoch {header.generation_id:,}. A partition may have several members; one that sends no "
        "heartbeat until its session ends is removed."
    )


def _preparing(page: GroupPage) -> str:
    header, counts = page.header, page.counts
    if header.join_delay_ms is not None:
        return (
            f"The group was empty. {plural(counts.members, 'member')} joined; the coordinator waits for more "
            "before it assigns partitions."
        )
    late, known = [member.member_id for member in page.members if not member.awaiting_join], names(page)
    missing = [member_name(member_id, known) for member_id in late[:MISSING_NAMED]]
    others = counts.members - counts.joined - len(missing)
    named = ", ".join(missing) + (f" and {others:,} more" if others > 0 and missing else "")
    return (
        f"A rebalance has begun. {counts.joined:,} of {plural(counts.members, 'member')} joined again; the coordinator "
        f"waits for {named or 'the others'} to join."
    )


def wait_ends(page: GroupPage) -> Millis | None:
    """The instant until which the group waits as `explain` says; None if it does not wait, or the instant is past.

    The same deadlines are among those of `next_timer`, and pages write both with `when`.
    """
    waits = {"PreparingRebalance": page.header.join_deadline, "CompletingRebalance": page.header.sync_deadline}
    deadline = waits.get(page.header.state)
    return deadline if deadline is not None and deadline > page.now else None


MISSING_NAMED = 3
"""The maximum number of members named that a rebalance waits for."""

LATE_MS = 5_000
"""A timer overdue by more is late: no process handles the group, so the service's timers are not running."""


@dataclass(frozen=True, slots=True)
class NextTimer:
    """The next event that happens automatically; `late` when it should have happened long ago."""

    at: Millis
    what: Due
    late: bool


MEMBER_TIMERS = {
    "session": ("session of {member} ends", "session of {member} should have ended"),
    "rebalance": (
        "{member} is removed if it has not given up its partitions",
        "{member} should have been removed: it has not given up its partitions",
    ),
    "join": (
        "{member} is removed if it has not joined again",
        "{member} should have been removed: it has not joined again",
    ),
    "sync": ("{member} is removed if it has not synced", "{member} should have been removed: it has not synced"),
}


def next_timer(page: GroupPage) -> NextTimer | None:
    """The earliest deadline of the group, as text; None if it has none. The deadlines are those of the core."""
    header = page.header
    timers: list[tuple[Millis, str, str]] = []
    if header.join_deadline is not None and header.join_delay_ms is not None:
        timers.append((header.join_deadline, "the first rebalance begins", "the first rebalance should have begun"))
    elif header.join_deadline is not None:
        timers.append((header.join_deadline, *_removal("members that have not joined")))
    if header.sync_deadline is not None:
        timers.append((header.sync_deadline, *_removal("members that have not synced")))
    if page.earliest_timer is not None:
        member = member_name(page.earliest_timer.member_id, names(page))
        coming, overdue = (words.format(member=member) for words in MEMBER_TIMERS[page.earliest_timer.kind])
        timers.append((page.earliest_timer.deadline, coming, overdue))
    if header.held_until is not None and header.is_held(page.now):
        timers.append((header.held_until, "the hold ends and members can join", "the hold should have ended"))
    if page.counts.pending_deadline is not None:
        unused = "an unused member id is forgotten", "an unused member id should have been forgotten"
        timers.append((page.counts.pending_deadline, *unused))
    if not timers:
        return None
    at, coming, overdue = min(timers)
    return NextTimer(at, Due(coming, overdue), late=at < page.now - LATE_MS)


def _removal(who: str) -> tuple[str, str]:
    return f"{who} are removed", f"{who} should have been removed"


ACTIVE = State("active", "Active", "good", "It sends heartbeats in time.")
LATE = State("late", "Late", "warn", "It misses heartbeats: it loses its partitions when its session ends.")
OVERDUE = State("overdue", "Overdue", "bad", "Its session has expired; it is removed at the next check.")


def member_state(member: Member, group_state: str, now: Millis, *, is_late: bool = False) -> State:
    """What a member of a classic group is doing."""
    if member.session_deadline is not None and member.session_deadline <= now:
        return OVERDUE
    if is_late:
        return LATE
    if group_state == "PreparingRebalance":
        if member.awaiting_join:
            return State("joined", "Joined", "busy", "It has joined and waits for the others.")
        return State("not-joined", "Not joined yet", "warn", "The rebalance waits for it to join again.")
    if group_state == "CompletingRebalance":
        if member.awaiting_sync:
            return State("syncing", "Syncing", "busy", "It waits for the leader's assignment.")
        return State("joined", "Joined", "warn", "It has joined and has not asked for its assignment yet.")
    if member.pending_sync:
        return State("owes-sync", "Not synced yet", "warn", "It has not fetched its assignment yet.")
    return ACTIVE
