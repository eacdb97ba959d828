"""A group's events as text. Kinds, causes and details are those of `groups.core.model.events`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from frontend.ui.rows import Event, Millis
from frontend.ui.wording import duration, member_name, plural
from frontend.ui.zones import instant
from groups.core.model.events import EventKind
from groups.core.model.types import Cause


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the timeline. `tone` as for states; `note` is text that the client or the coordinator added.

    `folded`: the lines that it stands for, the newest of which has its id and time.
    """

    id: int
    at: Millis
    kind: str
    tone: str
    text: str
    note: str
    member_id: str | None
    generation_id: int
    folded: tuple[Line, ...] = ()


CAUSES: Mapping[str, str] = {
    Cause.GROUP_CREATED.value: "the first member joined",
    Cause.MEMBER_JOINED.value: "{member} joined",
    Cause.MEMBER_LEFT.value: "{member} left",
    Cause.MEMBER_KICKED.value: "{member} was removed by an operator",
    Cause.SESSION_EXPIRED.value: "{member} sent no heartbeat in time",
    Cause.JOIN_TIMED_OUT.value: "{member} did not join again in time",
    Cause.SYNC_TIMED_OUT.value: "{member} did not sync in time",
    Cause.REBALANCE_TIMED_OUT.value: "{member} did not give up its partitions in time",
    Cause.GROUP_FULL.value: "{member} was refused: the group is full",
    Cause.LEADER_REJOINED.value: "the leader {member} joined again",
    Cause.STATIC_MEMBER_REPLACED.value: "{member} took over a static member with other protocols",
    Cause.PROTOCOLS_CHANGED.value: "{member} changed its subscription or protocols",
    Cause.SUBSCRIPTION_CHANGED.value: "{member} changed its subscription",
    Cause.TOPICS_CHANGED.value: "subscribed topics changed",
    Cause.REGEXES_RESOLVED.value: "subscribed patterns match different topics",
}
"""Why a member was removed, a rebalance started or an epoch began. Every `Cause` has its text; a test checks that."""

SAY_REMOVED = (Cause.MEMBER_KICKED.value, Cause.GROUP_FULL.value)
"""Causes whose text already says that the member is gone."""

Sentence = Callable[[Event, str, Mapping[str, Any]], str]


def _joined(event: Event, member: str, detail: Mapping[str, Any]) -> str:
    came_from = str(detail.get("client_host", ""))
    named = event.names.get(event.member_id or "", "").endswith(came_from)
    host = f" from {came_from}" if came_from and not named else ""
    static = f" as static member {detail['instance_id']}" if detail.get("instance_id") else ""
    return f"{member} joined{static}{host}"


def _expired(event: Event, member: str, detail: Mapping[str, Any]) -> str:
    if "session_timeout_ms" in detail:
        return f"{member} expired after {duration(int(detail['session_timeout_ms']))} without a heartbeat"
    return f"{member} expired: no heartbeat until its session ended"


def _removed(event: Event, member: str, detail: Mapping[str, Any]) -> str:
    if detail.get("principal"):
        return f"{member} was removed by {detail['principal']}"
    cause = str(detail.get("cause", ""))
    if cause not in CAUSES:
        return f"{member} was removed"
    return CAUSES[cause].format(member=member) + ("" if cause in SAY_REMOVED else " and was removed")


def _replaced(event: Event, member: str, detail: Mapping[str, Any]) -> str:
    old = member_name(str(detail.get("old_member_id", "")), event.names)
    return f"{member} replaced {old} as static member {detail.get('instance_id', '')}".rstrip()


def _took(detail: Mapping[str, Any]) -> str:
    return f", took {duration(int(detail['duration_ms']))}" if "duration_ms" in detail else ""


def _completed(event: Event, member: str, detail: Mapping[str, Any]) -> str:
    members = _counted(detail, "member")
    leader = f"; {member_name(str(detail['leader']), event.names)} leads" if detail.get("leader") else ""
    return f"Generation {event.generation_id:,}: {members} joined{_took(detail)}{leader}"


def _assigned(event: Event, member: str, detail: Mapping[str, Any]) -> str:
    members = _counted(detail, "member")
    return f"Generation {event.generation_id:,} is stable: partitions assigned to {members}{_took(detail)}"


def why(event: Event) -> str:
    """Why a rebalance, or an epoch of a consumer group, began: `m5 joined`."""
    return _why(event.detail, _member(event))


def _member(event: Event) -> str:
    return member_name(event.member_id, event.names) if event.member_id else "a member"


def _why(detail: Mapping[str, Any], member: str) -> str:
    cause = str(detail.get("cause", ""))
    return CAUSES.get(cause, cause.replace("_", " ") or "no cause given").format(member=member)


def _target(event: Event, member: str, detail: Mapping[str, Any]) -> str:
    members = _counted(detail, "member")
    assignor = f" by {detail['assignor']}" if detail.get("assignor") else ""
    return f"New target{assignor}: partitions change for {members}"


def _offsets(did: str) -> Sentence:
    def sentence(event: Event, member: str, detail: Mapping[str, Any]) -> str:
        topics = [str(topic) for topic in detail.get("topics", ())]
        of = f" of {', '.join(topics)}" if topics else ""
        return f"Offsets {did}: {_counted(detail, 'partition')}{of}{_by(detail)}"

    return sentence


def _pinned(event: Event, member: str, detail: Mapping[str, Any]) -> str:
    of = f"Topic {detail['topic']}" if detail.get("topic") else "The group"
    return f"{of} pinned{_by(detail)}"


def _pin_removed(event: Event, member: str, detail: Mapping[str, Any]) -> str:
    of = f"topic {detail['topic']}" if detail.get("topic") else "the group"
    return f"Pin of {of} removed{_by(detail)}"


def _held(event: Event, member: str, detail: Mapping[str, Any]) -> str:
    until = f" until {instant(int(detail['until']))}" if "until" in detail else ""
    members = _counted(detail, "member")
    return f"Group held{until}: {members} removed, no member can join{_by(detail)}"


def _released(event: Event, member: str, detail: Mapping[str, Any]) -> str:
    return f"Hold ended{_by(detail)}: members can join" if detail.get("principal") else "Hold expired: members can join"


def _configured(event: Event, member: str, detail: Mapping[str, Any]) -> str:
    changes = ", ".join(f"{name} {old} → {new}" for name, (old, new) in dict(detail.get("settings", {})).items())
    return f"Settings changed{': ' if changes else ''}{changes}{_by(detail)}"


def _labelled(event: Event, member: str, detail: Mapping[str, Any]) -> str:
    changes = ", ".join(
        f"{name} removed" if new is None else f"{name}={new}"
        for name, (_, new) in dict(detail.get("labels", {})).items()
    )
    return f"Labels changed{': ' if changes else ''}{changes}{_by(detail)}"


def _aborted(event: Event, member: str, detail: Mapping[str, Any]) -> str:
    name = f" {detail['transactional_id']}" if detail.get("transactional_id") else ""
    why = "another producer took over" if detail.get("cause") == "fenced" else "it was open for too long"
    return f"Transaction{name} aborted, {why}: {plural(int(detail.get('partitions', 0)), 'pending offset')} dropped"


def _rearmed(event: Event, member: str, detail: Mapping[str, Any]) -> str:
    count = int(detail.get("members", 0))
    whose = "The session of its member starts" if count == 1 else f"The sessions of {plural(count, 'member')} start"
    return f"{whose if count else 'Sessions start'} over in full: for a while nobody could renew them"


def _counted(detail: Mapping[str, Any], what: str) -> str:
    return plural(int(detail.get(f"{what}s", 0)), what)


def _by(detail: Mapping[str, Any]) -> str:
    return f", by {detail['principal']}" if detail.get("principal") else ""


SENTENCES: Mapping[str, tuple[str, Sentence]] = {
    EventKind.GROUP_CREATED.value: ("idle", lambda *_: "Group created"),
    EventKind.MEMBER_JOINED.value: ("busy", _joined),
    EventKind.MEMBER_LEFT.value: ("idle", lambda _, member, detail: f"{member} left"),
    EventKind.MEMBER_EXPIRED.value: ("bad", _expired),
    EventKind.MEMBER_REMOVED.value: ("bad", _removed),
    EventKind.MEMBER_REPLACED.value: ("busy", _replaced),
    EventKind.REBALANCE_STARTED.value: ("warn", lambda event, *_: f"Rebalance started: {why(event)}"),
    EventKind.REBALANCE_COMPLETED.value: ("busy", _completed),
    EventKind.ASSIGNMENT_STORED.value: ("good", _assigned),
    EventKind.GROUP_EMPTIED.value: ("idle", lambda *_: "The last member left: the group is empty"),
    EventKind.GROUP_UNLOADED.value: ("bad", lambda *_: "Group unloaded: its timers are dropped"),
    EventKind.GROUP_DELETED.value: ("bad", lambda *_: "Group deleted with its offsets"),
    EventKind.GROUP_CONVERTED.value: (
        "warn",
        lambda _, member, detail: f"Group now uses the {detail.get('protocol', 'other')} protocol",
    ),
    EventKind.MEMBER_DEPARTED.value: (
        "idle",
        lambda _, member, detail: f"{member} left temporarily and keeps its partitions",
    ),
    EventKind.GROUP_EPOCH_BUMPED.value: ("warn", lambda event, *_: f"Epoch {event.generation_id:,}: {why(event)}"),
    EventKind.TARGET_COMPUTED.value: ("busy", _target),
    EventKind.TARGET_FAILED.value: (
        "bad",
        lambda _, member, detail: f"The assignor {detail.get('assignor', '')}".rstrip()
        + " failed: the group keeps its target",
    ),
    EventKind.MEMBER_RECONCILED.value: (
        "good",
        lambda _, member, detail: f"{member} has its target assignment: {_counted(detail, 'partition')}",
    ),
    EventKind.REGEXES_RESOLVED.value: (
        "busy",
        lambda _, member, detail: f"Subscribed patterns match {_counted(detail, 'topic')}",
    ),
    EventKind.OFFSETS_RESET.value: ("warn", _offsets("set")),
    EventKind.OFFSETS_RESTORED.value: ("warn", _offsets("restored")),
    EventKind.OFFSETS_DELETED.value: ("warn", _offsets("deleted")),
    EventKind.OFFSETS_EXPIRED.value: ("idle", _offsets("expired")),
    EventKind.RETENTION_PINNED.value: ("busy", _pinned),
    EventKind.RETENTION_UNPINNED.value: ("idle", _pin_removed),
    EventKind.GROUP_HELD.value: ("warn", _held),
    EventKind.HOLD_RELEASED.value: ("good", _released),
    EventKind.CONFIG_CHANGED.value: ("busy", _configured),
    EventKind.LABELS_CHANGED.value: ("idle", _labelled),
    EventKind.TRANSACTION_ABORTED.value: ("bad", _aborted),
    EventKind.DEADLINES_REARMED.value: ("busy", _rearmed),
}
"""Tone and sentence of every `EventKind`; a test checks that none is missing."""


def line(event: Event) -> Line:
    """An event as text. A kind unknown to this page is shown by its name."""
    member = _member(event)
    tone, sentence = SENTENCES.get(event.kind, ("idle", _unknown))
    return Line(
        id=event.id,
        at=event.at,
        kind=event.kind,
        tone=tone,
        text=sentence(event, member, event.detail),
        note=str(event.detail.get("reason", "")),
        member_id=event.member_id,
        generation_id=event.generation_id,
    )


def lines(events: Iterable[Event]) -> tuple[Line, ...]:
    """Events as text, in the same order."""
    return tuple(line(event) for event in events)


FLAPS = 3
"""How many times a member joins and goes until its events are one line."""
GOINGS: Mapping[str, str] = {
    EventKind.MEMBER_LEFT.value: "left",
    EventKind.MEMBER_EXPIRED.value: "expired",
    EventKind.MEMBER_REMOVED.value: "was removed",
}
CONSEQUENCES = frozenset(
    kind.value
    for kind in (
        EventKind.REBALANCE_STARTED,
        EventKind.REBALANCE_COMPLETED,
        EventKind.ASSIGNMENT_STORED,
        EventKind.GROUP_EMPTIED,
        EventKind.GROUP_EPOCH_BUMPED,
        EventKind.TARGET_COMPUTED,
        EventKind.MEMBER_RECONCILED,
    )
)
"""What follows when a member joins or goes. Anything else stays visible among the lines."""


def folded(events: Iterable[Event]) -> tuple[Line, ...]:
    """Events as text, in the same order, where one line stands for a member that joined and went again and again.

    A member has another id each time: those of the same name, which is its client and host, count as one.
    """
    found: list[Line] = []
    run: list[Event] = []
    whose = ""
    for event in events:
        moves = _moves(event)
        name = member_of(event) if moves else whose
        if not (moves or event.kind in CONSEQUENCES) or (whose and name != whose):
            found.extend(_folded(run, whose))
            run, whose = [], ""
        if moves or event.kind in CONSEQUENCES:
            run.append(event)
            whose = name
        else:
            found.append(line(event))
    return (*found, *_folded(run, whose))


def member_of(event: Event) -> str:
    """The client and host of the member, or its id if they are not known; "": no member, or a hidden one."""
    return event.names.get(event.member_id, event.member_id) if event.member_id else ""


def _moves(event: Event) -> bool:
    return event.member_id is not None and (event.kind == EventKind.MEMBER_JOINED.value or event.kind in GOINGS)


def _folded(run: Sequence[Event], name: str) -> tuple[Line, ...]:
    """`run`: the newest first; what is older than the first that the member did is no consequence of it."""
    end = max((number for number, event in enumerate(run, 1) if _moves(event)), default=0)
    run, before = run[:end], lines(run[end:])
    found = lines(run)
    joined = sum(event.kind == EventKind.MEMBER_JOINED.value for event in run)
    goings = [event.kind for event in run if event.kind in GOINGS]
    if min(joined, len(goings)) < FLAPS:
        return found + before
    went = " or ".join(word for kind, word in GOINGS.items() if kind in goings)
    text = f"{joined:,} × {name} joined and {went}"
    if joined != len(goings):
        text = f"{name} joined {joined:,} times and {went} {len(goings):,} times"
    return (replace(found[0], kind="", tone="warn", text=text, note="", member_id=None, folded=found), *before)


def _unknown(event: Event, member: str, detail: Mapping[str, Any]) -> str:
    about = f": {member}" if event.member_id else ""
    return event.kind.replace("_", " ").capitalize() + about
