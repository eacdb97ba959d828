"""Events of a group folded into episodes: one for each rebalance, or each epoch of a consumer group. Pure.

An episode of a classic group has two phases: members join, then the leader assigns. In one of a consumer group a target
is computed, then members reconcile with it. Members that come and go belong to the next episode that begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from frontend.ui.events import why
from frontend.ui.rows import Event, Millis
from groups.core.model.events import EventKind as Kind
from groups.core.model.types import Cause

HOUR_MS = 3_600_000

_GONE = (Kind.MEMBER_LEFT, Kind.MEMBER_EXPIRED, Kind.MEMBER_REMOVED)
_ENDS = (Kind.GROUP_EMPTIED, Kind.GROUP_DELETED, Kind.GROUP_UNLOADED, Kind.GROUP_CONVERTED)
KINDS = tuple(
    kind.value
    for kind in (
        *_GONE,
        *_ENDS,
        Kind.GROUP_CREATED,
        Kind.MEMBER_JOINED,
        Kind.GROUP_HELD,
        Kind.REBALANCE_STARTED,
        Kind.REBALANCE_COMPLETED,
        Kind.ASSIGNMENT_STORED,
        Kind.GROUP_EPOCH_BUMPED,
        Kind.TARGET_COMPUTED,
        Kind.TARGET_FAILED,
        Kind.MEMBER_RECONCILED,
    )
)
"""The kinds of events that episodes are made of."""


_COUNTED = {
    kind.value
    for kind in (
        Kind.GROUP_CREATED,
        Kind.GROUP_HELD,
        Kind.REBALANCE_COMPLETED,
        Kind.GROUP_EMPTIED,
        Kind.GROUP_DELETED,
        Kind.GROUP_CONVERTED,
    )
}
"""Kinds after which the number of members is known, whatever it was before."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of an episode. `name` is joining, assigning, computing or reconciling."""

    name: str
    length_ms: Millis


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an episode ended. `tone` as for states."""

    tone: str
    label: str


STABLE, EMPTY = Outcome("good", "stable"), Outcome("idle", "empty")
RUNNING, FAILED = Outcome("busy", "under way"), Outcome("bad", "assignor failed")
_OVER = {
    Kind.GROUP_EMPTIED: EMPTY,
    Kind.GROUP_DELETED: Outcome("bad", "group deleted"),
    Kind.GROUP_UNLOADED: Outcome("bad", "group unloaded"),
    Kind.GROUP_CONVERTED: Outcome("warn", "group converted"),
}


@dataclass(frozen=True, slots=True)
class Episode:
    """A rebalance. `id`: the event that began it; `last_id`: the last one that belongs to it.

    `began` and `ended` in ms; `ended` None: it is under way. `trigger`: why, `reason`: as the client put it, "" if it
    did not say. `before` and `after`: members when it began and when it ended; None: not known. `joined` and `gone`:
    members that came and went since the episode before it. `word`: what `generation_id` counts, generation or epoch.
    """

    id: int
    began: Millis
    generation_id: int
    cause: str
    trigger: str
    reason: str
    phases: tuple[Phase, ...] = ()
    ended: Millis | None = None
    outcome: Outcome = RUNNING
    before: int | None = None
    after: int | None = None
    joined: int = 0
    gone: int = 0
    last_id: int = 0
    word: str = "generation"

    def length_ms(self, now: Millis) -> Millis:
        """How long it took, or has been under way."""
        return max((now if self.ended is None else self.ended) - self.began, 0)


COLUMNS = """
    @began_at=began @ended_at=ended length_ms generation=generation_id trigger reason members_before=before
    members_after=after outcome=outcome.label
"""
"""Of episodes in files, as `frontend.ui.table.files` takes them. Their length depends on when it is."""


def episodes(events: Sequence[Event], *, settled: bool, members: int | None = None) -> list[Episode]:
    """The episodes of these events, which are given oldest first; episodes too.

    `settled`: the group waits for nobody after the last event, so that the last episode is over. `members`: how many
    there are then; None: not known.
    """
    first = None if members is None else _members_before(events, members)
    fold = _Fold(members=first, before=first)
    for event in events:
        fold.add(event)
    return fold.finish(settled=settled)


def _members_before(events: Sequence[Event], members: int) -> int | None:
    """How many members there were before these events; None if that cannot be told."""
    for event in events:
        if event.kind in _COUNTED:
            return None
        if event.kind == Kind.MEMBER_JOINED.value:
            members -= 1
        elif event.kind in {kind.value for kind in _GONE}:
            members += 1
    return max(members, 0)


@dataclass(slots=True)
class _Fold:
    """What the events so far say."""

    found: list[Episode] = field(default_factory=list)
    open: Episode | None = None
    phase_since: Millis = 0
    last: Millis = 0
    members: int | None = None
    before: int | None = None
    joined: int = 0
    gone: int = 0
    reconciled: set[str] = field(default_factory=set)

    def add(self, event: Event) -> None:
        """Take one more event into account; a kind that is unknown or of no interest is skipped."""
        try:
            kind = Kind(event.kind)
        except ValueError:
            return
        if kind is Kind.GROUP_CREATED:
            self.members, self.before, self.joined, self.gone = 0, 0, 0, 0
        elif kind is Kind.MEMBER_JOINED:
            self._moved(joined=1)
        elif kind in _GONE:
            self._moved(gone=1)
        elif kind is Kind.GROUP_HELD:
            self._moved(gone=int(event.detail.get("members", 0)))
        elif kind in (Kind.REBALANCE_STARTED, Kind.GROUP_EPOCH_BUMPED):
            self._begin(event)
        elif kind in _ENDS:
            if kind in (Kind.GROUP_EMPTIED, Kind.GROUP_DELETED):
                self.members = 0
            self._end(event.at, _OVER[kind])
        elif self.open is not None:
            self._progress(kind, event, self.open)
        if self.open is not None:
            self.open = replace(self.open, last_id=event.id)
        elif self.found and self.found[-1].ended == event.at:
            self.found[-1] = replace(self.found[-1], last_id=event.id)

    def finish(self, *, settled: bool) -> list[Episode]:
        """All episodes; the last one is under way unless it ended or the group is settled."""
        if self.open is not None and settled:
            self._end(self.last, STABLE)
        if self.open is not None:
            self.found.append(self._counted(self.open))
        return self.found

    def _moved(self, *, joined: int = 0, gone: int = 0) -> None:
        self.joined += joined
        self.gone += gone
        if self.members is not None:
            self.members = max(self.members + joined - gone, 0)

    def _begin(self, event: Event) -> None:
        if self.open is not None:
            self._end(event.at, self._overtaken(event))
        self.open = Episode(
            id=event.id,
            began=event.at,
            generation_id=event.generation_id,
            cause=str(event.detail.get("cause", "")),
            trigger=why(event),
            reason=str(event.detail.get("reason", "")),
            before=self.before,
            word="epoch" if event.kind == Kind.GROUP_EPOCH_BUMPED.value else "generation",
        )
        self.phase_since = self.last = event.at
        self.reconciled = set()

    def _overtaken(self, event: Event) -> Outcome:
        """The outcome of an episode that was open when another one began."""
        if event.kind == Kind.REBALANCE_STARTED.value:
            return Outcome("warn", "started over")
        known = self.members is not None
        return Outcome(
            "warn" if known else "idle", f"{'overtaken' if known else 'followed'} by epoch {event.generation_id:,}"
        )

    def _progress(self, kind: Kind, event: Event, current: Episode) -> None:
        match kind:
            case Kind.REBALANCE_COMPLETED:
                self._phase("joining", event.at)
                self.members = int(event.detail.get("members", 0))
                self.open = replace(self.open or current, generation_id=event.generation_id)
            case Kind.ASSIGNMENT_STORED:
                self._phase("assigning", event.at)
                self._end(event.at, STABLE)
            case Kind.TARGET_COMPUTED:
                self._phase("computing", event.at)
            case Kind.TARGET_FAILED:
                self.open = replace(current, outcome=FAILED)
            case Kind.MEMBER_RECONCILED if event.member_id is not None:
                if event.detail.get("member_epoch") != current.generation_id:
                    return
                self.reconciled.add(event.member_id)
                self.last = event.at
                if self.members is not None and len(self.reconciled) >= self.members:
                    self._end(event.at, STABLE)

    def _phase(self, name: str, until: Millis) -> None:
        assert self.open is not None, "only an open episode has phases"
        phase = Phase(name, max(until - self.phase_since, 0))
        self.open = replace(self.open, phases=(*self.open.phases, phase))
        self.phase_since = self.last = until

    def _end(self, at: Millis, outcome: Outcome) -> None:
        if self.open is None:
            return
        if self.open.phases and self.open.phases[-1].name == "computing":
            self._phase("reconciling", at)
        ended = self._counted(self.open)
        kept = FAILED if ended.outcome is FAILED and outcome is STABLE else outcome
        self.found.append(replace(ended, ended=at, outcome=kept))
        self.open, self.before, self.joined, self.gone = None, self.members, 0, 0

    def _counted(self, episode: Episode) -> Episode:
        return replace(episode, after=self.members, joined=self.joined, gone=self.gone)


CAUSES = {
    "joined": ("a member joined", (Cause.GROUP_CREATED, Cause.MEMBER_JOINED, Cause.LEADER_REJOINED)),
    "left": ("a member left", (Cause.MEMBER_LEFT,)),
    "expired": (
        "a member was too late",
        (Cause.SESSION_EXPIRED, Cause.JOIN_TIMED_OUT, Cause.SYNC_TIMED_OUT, Cause.REBALANCE_TIMED_OUT),
    ),
    "changed": (
        "a subscription or topic changed",
        (
            Cause.STATIC_MEMBER_REPLACED,
            Cause.PROTOCOLS_CHANGED,
            Cause.SUBSCRIPTION_CHANGED,
            Cause.TOPICS_CHANGED,
            Cause.REGEXES_RESOLVED,
        ),
    ),
    "removed": ("a member was removed", (Cause.MEMBER_KICKED, Cause.GROUP_FULL)),
}
"""What triggers rebalances, in groups: name -> label and causes. Every `Cause` is in one; a test checks that."""


@dataclass(frozen=True, slots=True)
class Unrest:
    """The last hour: how often the group rebalanced, and for how long it had no stable assignment (ms)."""

    count: int
    length_ms: Millis


def unrest(found: Sequence[Episode], now: Millis) -> Unrest:
    """How restless the group was in the hour before `now`."""
    recent = [episode for episode in found if (episode.ended or now) > now - HOUR_MS]
    lengths = [(episode.ended or now) - max(episode.began, now - HOUR_MS) for episode in recent]
    return Unrest(len(recent), sum(max(length, 0) for length in lengths))
