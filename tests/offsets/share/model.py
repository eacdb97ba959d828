"""Items of one partition of a share group: acquire, settle, end. Pure: an instant in ms is a parameter.

It is the rules in as few words as possible: what the functions of the database must do.
Source: share.md 7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from offsets.core.types import Millis
from offsets.share.store import Rules

ACCEPT, GAP, RELEASE, REJECT, RENEW = "accept", "gap", "release", "reject", "renew"


class LockLost(Exception):
    """INVALID_RECORD_STATE: the member does not hold what it settles. `why`, and who holds some of it instead."""

    def __init__(self, why: str, held_by: str | None) -> None:
        super().__init__(why)
        self.why = why
        self.held_by = held_by


@dataclass(slots=True)
class Lock:
    """What one member acquired at once with one delivery count, as far as it is not settled."""

    member_id: str
    held: set[int]
    delivery_count: int
    until: Millis
    lock_ms: Millis


@dataclass(slots=True)
class Ended:
    """What became of a lock, or of parts of it: settled, expired or released."""

    member_id: str
    cause: str
    settled: dict[str, set[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Retry:
    """An item that is available again, not before an instant."""

    delivery_count: int
    not_before: Millis


@dataclass(frozen=True, slots=True)
class Dead:
    """An item that was given up, "rejected" or "limit"."""

    cause: str
    delivery_count: int


@dataclass(slots=True)
class Items:
    """A partition. What is from `start` below `next_offset` and nowhere else is finished: accepted, or a gap."""

    rules: Rules
    end_offset: int = 0
    start: int = 0
    next_offset: int = 0
    locks: dict[int, Lock] = field(default_factory=dict)
    ended: dict[int, Ended] = field(default_factory=dict)
    retries: dict[int, Retry] = field(default_factory=dict)
    dead: dict[int, Dead] = field(default_factory=dict)

    @property
    def locked(self) -> int:
        """Items that somebody has."""
        return sum(len(lock.held) for lock in self.locks.values())

    def take(self, most: int, now: Millis) -> dict[int, list[int]]:
        """Up to `most` items by delivery count: those that are due again first, in their order, then new ones.

        The caller stores what it gave (`give`).
        """
        self.expire(now)
        wanted = max(min(most, self.rules.most_locks - self.locked), 0)
        again = sorted(offset for offset, retry in self.retries.items() if retry.not_before <= now)[:wanted]
        taken: dict[int, list[int]] = {}
        for offset in again:
            taken.setdefault(self.retries.pop(offset).delivery_count + 1, []).append(offset)
        fresh = range(
            self.next_offset, max(self.next_offset, min(self.end_offset, self.next_offset + wanted - len(again)))
        )
        self.next_offset = max(self.next_offset, fresh.stop)
        if fresh:
            taken.setdefault(1, []).extend(fresh)
        return taken

    def give(
        self, lock_id: int, member_id: str, offsets: Iterable[int], delivery_count: int, lock_ms: Millis, now: Millis
    ) -> None:
        """The member has these items until the time of a lock is over."""
        self.locks[lock_id] = Lock(member_id, set(offsets), delivery_count, now + lock_ms, lock_ms)

    def settle(
        self,
        lock_id: int,
        member_id: str,
        parts: Mapping[str, set[int]],
        now: Millis,
        delay_ms: Millis | None = None,
        *,
        late: bool = False,
        remembers: bool = True,
    ) -> Millis | None:
        """accept, gap, release, reject and renew, of items of one lock. All of it or nothing. Raises `LockLost`.

        What this lock has settled in the same way before is left out. `late`: also if its time is over, and nobody has
        ended it. Returns until when the lock lasts, None: it is over.
        """
        lock, ended = self.locks.get(lock_id), self.ended.get(lock_id)
        parts = {kind: set(offsets) for kind, offsets in parts.items()}
        mine = lock is not None and lock.member_id == member_id
        if ended is not None and ended.member_id == member_id and not (lock and mine and _all(parts) <= lock.held):
            parts = {kind: offsets - ended.settled.get(_effect(kind), set()) for kind, offsets in parts.items()}
            if not _all(parts):
                return None if lock is None else lock.until
        why = None
        if lock is None:
            why = "unknown" if ended is None else ended.cause
        elif not mine:
            why = "other_member"
        elif lock.until <= now and not late:
            why = "expired"
        elif not _all(parts) <= lock.held:
            why = "not_held" if ended is None else "settled"
        if why is not None or lock is None:
            known = lock is not None or ended is not None
            raise LockLost(why or "unknown", self._holder(_all(parts), member_id) if known else None)
        self._apply(lock_id, lock, parts, now, delay_ms)
        if remembers and any(parts[kind] for kind in parts if kind != RENEW):
            entry = self.ended.setdefault(lock_id, Ended(member_id, "settled"))
            for kind in parts.keys() - {RENEW}:
                entry.settled.setdefault(_effect(kind), set()).update(parts[kind])
        return lock.until if lock_id in self.locks else None

    def _apply(
        self, lock_id: int, lock: Lock, parts: Mapping[str, set[int]], now: Millis, delay_ms: Millis | None
    ) -> None:
        for kind, offsets in parts.items():
            if kind == RENEW:
                lock.until = now + lock.lock_ms if offsets else lock.until
                continue
            lock.held -= offsets
            if kind == REJECT:
                self.dead.update(dict.fromkeys(offsets, Dead("rejected", lock.delivery_count)))
            elif kind == RELEASE:
                delay = backoff(self.rules, lock.delivery_count) if delay_ms is None else delay_ms
                self._return(offsets, lock.delivery_count, now + delay)
        if not lock.held:
            del self.locks[lock_id]

    def _holder(self, offsets: set[int], member_id: str) -> str | None:
        """The newest lock of another member that has some of these items."""
        others = (lock for _, lock in sorted(self.locks.items(), reverse=True) if lock.member_id != member_id)
        return next((lock.member_id for lock in others if lock.held & offsets), None)

    def expire(self, now: Millis) -> None:
        """The time of locks is over: what they hold is available again, or was delivered as often as allowed."""
        self._end([lock_id for lock_id, lock in self.locks.items() if lock.until <= now], "expired", now)

    def leave(self, members: Collection[str], now: Millis) -> None:
        """These members are gone: what they hold is available again."""
        self._end([lock_id for lock_id, lock in self.locks.items() if lock.member_id in members], "released", now)

    def operate(self, kind: str, offsets: set[int], now: Millis) -> int:
        """An operator releases or rejects items, no matter which member has them. Returns how many there were."""
        waiting = offsets & self.retries.keys()
        for offset in waiting:
            retry = self.retries.pop(offset)
            self._hand(kind, {offset}, retry.delivery_count, now)
        count = len(waiting)
        for lock_id, lock in list(self.locks.items()):
            part = lock.held & offsets
            count += len(part)
            lock.held -= part
            self._hand(kind, part, lock.delivery_count, now)
            if part and not lock.held:
                del self.locks[lock_id]
                self.ended.setdefault(lock_id, Ended(lock.member_id, "released")).cause = "released"
        return count

    def _hand(self, kind: str, offsets: set[int], delivery_count: int, now: Millis) -> None:
        if kind == RELEASE:
            self._return(offsets, delivery_count, now)
        else:
            self.dead.update(dict.fromkeys(offsets, Dead("rejected", delivery_count)))

    def replay(self, offsets: Iterable[int], now: Millis, *, reset_count: bool = True) -> None:
        """Dead letters are delivered again, as if they never were before, or once more."""
        for offset in offsets:
            count = min(self.dead.pop(offset).delivery_count, self.rules.delivery_limit - 1)
            self.retries[offset] = Retry(0 if reset_count else count, now)

    def begin(self, start: int) -> None:
        """An operator lets the partition begin again: nothing is locked or waits; dead letters before it stay."""
        self.start = self.next_offset = start
        self.locks.clear()
        self.retries.clear()
        self.dead = {offset: dead for offset, dead in self.dead.items() if offset < start}

    def _end(self, lock_ids: Iterable[int], cause: str, now: Millis) -> None:
        for lock_id in lock_ids:
            lock = self.locks.pop(lock_id)
            self._return(lock.held, lock.delivery_count, now)
            self.ended.setdefault(lock_id, Ended(lock.member_id, cause)).cause = cause

    def _return(self, offsets: Iterable[int], delivery_count: int, not_before: Millis) -> None:
        for offset in offsets:
            if delivery_count < self.rules.delivery_limit:
                self.retries[offset] = Retry(delivery_count, not_before)
            else:
                self.dead[offset] = Dead("limit", delivery_count)


def _all(parts: Mapping[str, set[int]]) -> set[int]:
    return set().union(*parts.values())


def _effect(kind: str) -> str:
    """A gap is accepted."""
    return ACCEPT if kind == GAP else kind


def backoff(rules: Rules, delivery_count: int) -> Millis:
    """After how long an item with this delivery count is due again."""
    factor: int = rules.backoff_multiplier ** (delivery_count - 1)
    return min(rules.backoff_ms * factor, rules.backoff_max_ms)
