"""How many offsets are removed under one lock: no request waits long for it, however slow the machine is."""

from __future__ import annotations

from dataclasses import dataclass

LOCK_SECONDS = 0.03
"""A batch that held its group's lock for longer is followed by a smaller one."""

FIRST_BATCH, SMALLEST_BATCH = 250, 50


@dataclass(slots=True)
class BatchSize:
    """How many offsets the next batch removes: as many as fit into LOCK_SECONDS, `limit` at most."""

    limit: int
    size: int = FIRST_BATCH

    def __post_init__(self) -> None:
        self.size = min(self.size, self.limit)

    def learn(self, held_seconds: float) -> None:
        """Adapt to how long the lock was held for the last batch."""
        if held_seconds > LOCK_SECONDS:
            self.size = max(self.size // 2, min(SMALLEST_BATCH, self.limit))
        elif held_seconds < LOCK_SECONDS / 4:
            self.size = min(self.size * 2, self.limit)
