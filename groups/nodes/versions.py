"""Which releases may run side by side: an upgrade, or going back, over one minor release."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"(\d+)\.(\d+)")


def works_beside(one: str, other: str) -> bool:
    """Whether nodes of these releases share partitions. Releases that are not numbered are trusted."""
    first, second = _NUMBERS.match(one), _NUMBERS.match(other)
    if first is None or second is None:
        return True
    return first[1] == second[1] and abs(int(first[2]) - int(second[2])) <= 1
