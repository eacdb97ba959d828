"""The kinds of verdicts on a group: what needs the attention of its operators. Pure.

The rules are in `offsets.core.verdicts`, since most of them also take offsets and lag.
"""

from __future__ import annotations

from enum import Enum


class VerdictKind(str, Enum):
    """What can be wrong with a group; the worst comes first."""

    UNCOVERED = "uncovered"
    UNATTENDED = "unattended"
    STALLED = "stalled"
    UNSETTLED = "unsettled"
    STUCK = "stuck"
    LATE = "late"
    EXPIRING = "expiring"
    DEAD_LETTERS = "dead-letters"
    FLAPPING = "flapping"
    DISPUTED = "disputed"
    STALE = "stale"


RANKS = {kind: rank for rank, kind in enumerate(VerdictKind)}
"""0 is the worst."""
