"""What the checks found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Violation:
    """A promise that was broken: which, when (seconds of the history), and what was seen."""

    promise: str
    t: float
    text: str


@dataclass
class Report:
    """How often each promise was checked, what broke it, and measured figures."""

    checks: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def check(self, promise: str, holds: bool, t: float, text: str) -> None:
        """Count a check, and a violation unless it holds."""
        self.checks[promise] += 1
        if not holds:
            self.violations.append(Violation(promise, t, text))

    def broken(self) -> set[str]:
        """The promises that were broken."""
        return {violation.promise for violation in self.violations}
