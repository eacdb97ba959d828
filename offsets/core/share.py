"""Items of one partition of a share group: acquire, settle, expire. Pure: an instant in ms is a parameter.

It is the rules in as few words as possible: what the functions of the database must do, which tests compare with it.
Source: share.md 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from offsets.core.types import Millis


class LockLost(Exception):
    """INVALID_RECORD_STATE: the member does not hold what it settles."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings of a group: how long a lock lasts, how often an item is delivered, how many are locked at once."""

    lock_ms: Millis = 30_000
    delivery_limit: int = 5
    most_locks: int = 2_000


@dataclass(slots=True)
class Lock:
    """What one member acquired at once with one delivery count, as far as it is not settled."""

    member_id: str
    held: set[int]
    delivery_count: int
    until: Millis


@dataclass(frozen=True, slots=True)
class Retry:
    """An item that is available again, not before an instant."""

    delivery_count: int
    not_before: Millis


@dataclass(slots=True)
class Items:
    """A partition. What is below `next_offset` and nowhere else is finished: accepted, or a gap.

    `dead`: why an item was given up, "rejected" or "limit".
    """

    rules: Rules
    end_offset: int = 0
    next_offset: int = 0
    locks: dict[int, Lock] = field(default_factory=dict)
    retries: dict[int, Retry] = field(default_factory=dict)
    dead: dict[int, str] = field(default_factory=dict)

    @property
    def locked(self) -> int:
        """Items that somebody has."""
        return sum(len(lock.held) for lock in self.locks.values())

    def take(self, most: int, now: Millis) -> dict[int, list[int]]:
        """Up to `most` items by delivery count: those that are due again first, in their order, then new ones.

        The limit of locks counts locks, not what lies between them. The caller stores what it gave (`give`).
        """
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

    def give(self, lock_id: int, member_id: str, offsets: Iterable[int], delivery_count: int, now: Millis) -> None:
        """The member has these items until the time of a lock is over."""
        self.locks[lock_id] = Lock(member_id, set(offsets), delivery_count, now + self.rules.lock_ms)

    def settle(
        self, lock_id: int, member_id: str, parts: Mapping[str, set[int]], now: Millis, delay_ms: Millis = 0
    ) -> None:
        """accept, gap, release, reject and renew, of items of one lock. All of it or nothing. Raises `LockLost`."""
        lock = self.locks.get(lock_id)
        named = set().union(*parts.values())
        if lock is None or lock.member_id != member_id or not named <= lock.held:
            raise LockLost
        for kind, offsets in parts.items():
            if kind == "renew":
                lock.until = now + self.rules.lock_ms if offsets else lock.until
                continue
            lock.held -= offsets
            if kind == "reject":
                self.dead.update(dict.fromkeys(offsets, "rejected"))
            elif kind == "release":
                self._return(offsets, lock.delivery_count, now + delay_ms)
        if not lock.held:
            del self.locks[lock_id]

    def expire(self, now: Millis) -> None:
        """The time of locks is over: what they hold is available again, or was delivered as often as allowed."""
        for lock_id, lock in list(self.locks.items()):
            if lock.until <= now:
                del self.locks[lock_id]
                self._return(lock.held, lock.delivery_count, now)

    def _return(self, offsets: Iterable[int], delivery_count: int, not_before: Millis) -> None:
        for offset in offsets:
            if delivery_count < self.rules.delivery_limit:
                self.retries[offset] = Retry(delivery_count, not_before)
            else:
                self.dead[offset] = "limit"
