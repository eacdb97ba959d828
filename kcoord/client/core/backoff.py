"""Waiting between attempts: exponential, bounded, with jitter."""

from __future__ import annotations

import random
from dataclasses import dataclass

RETRY_AFTER_LIMIT_MS = 30_000
"""Maximum wait honoured from a Retry-After header."""


@dataclass(slots=True)
class Backoff:
    """The delays of one series of attempts.

    Parameters: `initial_ms` first delay; `maximum_ms` largest; `jitter` the share by which a delay varies.
    Source: classic.md 11.1 (factor 2, jitter 0.2).
    """

    initial_ms: int
    maximum_ms: int
    jitter: float = 0.2
    attempts: int = 0

    def next_ms(self, retry_after_ms: int | None = None) -> float:
        """The delay before the next attempt, in ms; at least what the server asked for."""
        plain = min(self.initial_ms * 2.0 ** min(self.attempts, 30), float(self.maximum_ms))
        self.attempts += 1
        delay = plain * random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311 - not for secrets
        return max(delay, min(retry_after_ms or 0, RETRY_AFTER_LIMIT_MS))

    def reset(self) -> None:
        """An attempt succeeded."""
        self.attempts = 0
