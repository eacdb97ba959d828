"""What is wrong with a group, and since when: the rules of all verdicts, and their thresholds. Pure.

The statements in `offsets/sql/verdicts.sql` apply these rules to all groups at once; tests compare the two.

`stalled` follows the evaluation of Burrow (linkedin/Burrow, core/internal/evaluator/caching.go: STOP and STALL), with
what a coordinator knows beside the commits: a partition counts only while a member owns it, and only from when there
was something to read. So a slow committer is not judged by its pauses, and a consumer that stopped does not look
healthy because the lag of its last commit was small.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from groups.core.model.types import RANKS, VerdictKind
from offsets.core.types import Millis

STUCK_STATES = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
"""States that a group passes through."""

NAMED = 5
"""The maximum number of members or partitions that a verdict names."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From when something is wrong: the settings `verdict.…` and `lag.stale.ms`. Lengths in ms.

    `longest_session_ms`: `group.consumer.max.session.timeout.ms`. The session of a heartbeat that waits on the server
    is longer than that, because it begins when the wait ends.
    """

    stuck_ms: Millis
    late_percent: int
    longest_session_ms: Millis
    stalled_ms: Millis
    stalled_lag: int
    uncovered_ms: Millis
    flapping_rebalances: int
    flapping_window_ms: Millis
    expiring_ms: Millis
    stale_ms: Millis

    def at(self, now: Millis) -> Mapping[str, int]:
        """The instants (ms) and numbers that statements compare with, as of `now`."""
        return {
            "now": now,
            "stuck_before": now - self.stuck_ms,
            "late_percent": self.late_percent,
            "longest_session_ms": self.longest_session_ms,
            "stalled_before": now - self.stalled_ms,
            "stalled_lag": self.stalled_lag,
            "uncovered_before": now - self.uncovered_ms,
            "flapping_rebalances": self.flapping_rebalances,
            "flapping_after": now - self.flapping_window_ms,
            "expiring_until": now + self.expiring_ms,
            "stale_before": now - self.stale_ms,
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """Something that is wrong with a group. Instants in ms.

    `topic`: "" if it is not about a topic. `due_at`: when something happens by itself (members are removed, offsets
    expire); None: nothing does, or it is not known. `number`: of members (LATE), rebalances (FLAPPING), items
    (UNSETTLED, DEAD_LETTERS) or partitions (the other kinds with a topic), otherwise 0. `lag`: of partitions that are
    stalled or unattended. `names`: the first of these members or partitions; of UNSETTLED, of the members.
    """

    kind: VerdictKind
    since: Millis
    topic: str = ""
    due_at: Millis | None = None
    number: int = 0
    lag: int | None = None
    names: Sequence[str] = ()


FIRST_SEEN = (VerdictKind.FLAPPING, VerdictKind.STALLED, VerdictKind.UNCOVERED, VerdictKind.DISPUTED)
"""Kinds whose beginning cannot always be read from rows: they last since they were first seen, if that is earlier."""


def stuck(state: str, state_since: Millis, thresholds: Thresholds, now: Millis) -> Millis | None:
    """Since when a group is stuck in a state that it should pass through; None: it is not."""
    if state not in STUCK_STATES or state_since > now - thresholds.stuck_ms:
        return None
    return state_since


@dataclass(frozen=True, slots=True)
class StoredSession:
    """The session of a member as its row has it: armed at `armed_at`, ends at `deadline` (ms)."""

    armed_at: Millis
    deadline: Millis


def late(session: StoredSession, known_until: Millis, thresholds: Thresholds) -> Millis | None:
    """Since when a member is silent for so long that it has missed heartbeats; None: it has not, as far as is known.

    `known_until`: until then all servers have stored what they renewed in memory (ms). Members send a heartbeat each
    third of their session at the latest, and a row is at most a tenth of the session behind the last one
    (heartbeats-from-memory.md), so a member in time is never silent there for more than 13/30 of it. Thresholds
    begin at 45 %.
    """
    length = min(session.deadline - session.armed_at, thresholds.longest_session_ms)
    left = session.deadline - known_until
    return session.armed_at if left * 100 <= length * (100 - thresholds.late_percent) else None


def flapping(rebalances: Iterable[Millis], thresholds: Thresholds, now: Millis) -> Millis | None:
    """Since when a group flaps that began to rebalance at these instants; None: it does not."""
    recent = of_window(rebalances, thresholds, now)
    return min(recent) if len(recent) >= thresholds.flapping_rebalances else None


def of_window(rebalances: Iterable[Millis], thresholds: Thresholds, now: Millis) -> list[Millis]:
    """The instants of rebalances that count for `flapping`; their number is the group's score."""
    return [at for at in rebalances if at > now - thresholds.flapping_window_ms]


@dataclass(frozen=True, slots=True)
class OwnedPartition:
    """A partition that a member of a Stable group owns, and that has a watermark. Instants in ms.

    `position`: the next offset to read: the committed one, moved up to the start of the log; if nothing was committed,
    the end of the log when the group became Stable, or the first one known after that. `readable_since`: when the log
    was first seen to end beyond it. `committed_at`: None: never. `earlier`: what had been committed by
    `now - stalled_ms`, and when; None: unknown. `committed_offset` is as it was committed.
    """

    stable_since: Millis
    log_end_offset: int
    position: int
    readable_since: Millis
    committed_offset: int | None = None
    committed_at: Millis | None = None
    earlier: tuple[int, Millis] | None = None


def stalled(partition: OwnedPartition, thresholds: Thresholds, now: Millis) -> Millis | None:
    """Since when the owner of a partition makes no progress although there are records to read; None: it does.

    It has committed nothing for that long (Burrow's STOP), or the same offset again and again (STALL).
    """
    if partition.log_end_offset - partition.position < thresholds.stalled_lag:
        return None
    before = now - thresholds.stalled_ms
    idle_since = max(partition.stable_since, partition.readable_since)
    if idle_since > before:
        return None
    if partition.committed_at is None or partition.committed_at <= before:
        return max(idle_since, partition.committed_at or 0)
    if partition.earlier is None or partition.earlier[0] != partition.committed_offset:
        return None
    return max(idle_since, partition.earlier[1])


def uncovered(
    partitions: int, owned: int, state: str, state_since: Millis, thresholds: Thresholds, now: Millis
) -> bool:
    """Are there partitions of a subscribed topic that nobody owns, and not just because the group was rebalancing?"""
    return owned < partitions and state == "Stable" and state_since <= now - thresholds.uncovered_ms


def unattended(items: int, state: str, state_since: Millis, thresholds: Thresholds, now: Millis) -> Millis | None:
    """Since when a share group has had no members although items wait; None: it has members, or nothing waits."""
    waits = items > 0 and state == "Empty" and state_since <= now - thresholds.stalled_ms
    return state_since if waits else None


def unsettled(acquired_at: Millis, thresholds: Thresholds, now: Millis) -> Millis | None:
    """Since when a member has had items that it renews and does not settle; None: not for long."""
    return acquired_at if acquired_at <= now - thresholds.stalled_ms else None


def stale(sampled_at: Millis, thresholds: Thresholds, now: Millis) -> Millis | None:
    """Since when nothing was reported of a partition that a member owns; None: recently."""
    return sampled_at if sampled_at < now - thresholds.stale_ms else None


def disputed(lower_at: Millis | None, thresholds: Thresholds, now: Millis) -> Millis | None:
    """Since when an end is reported that is earlier than the one that counts; None: not lately.

    `lower_at`: when that was last reported (ms).
    """
    return lower_at if lower_at is not None and lower_at >= now - thresholds.stale_ms else None


def expiring(expires_at: Millis | None, thresholds: Thresholds, now: Millis) -> Millis | None:
    """When an offset expires, if that is soon. `expires_at`: `RetentionRule.fate`; None: it does not expire."""
    return expires_at if expires_at is not None and expires_at <= now + thresholds.expiring_ms else None


def worst_first(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The worst kind first, then what has lasted longest."""
    return sorted(verdicts, key=lambda verdict: (RANKS[verdict.kind], verdict.since, verdict.topic))


def with_beginnings(found: Iterable[Verdict], stored: Mapping[tuple[VerdictKind, str], Millis]) -> list[Verdict]:
    """Verdicts with their beginnings as stored, where these are earlier. `stored`: by kind and topic (ms)."""
    return [_begun(verdict, stored.get((verdict.kind, verdict.topic))) for verdict in found]


def _begun(verdict: Verdict, stored: Millis | None) -> Verdict:
    if verdict.kind not in FIRST_SEEN or stored is None or stored >= verdict.since:
        return verdict
    return Verdict(verdict.kind, stored, verdict.topic, verdict.due_at, verdict.number, verdict.lag, verdict.names)
