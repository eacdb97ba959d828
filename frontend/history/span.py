"""A span of the past, and the steps that it is drawn in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from frontend.history.ticks import DAY, HOUR, MINUTE, TIME_STEPS
from frontend.rows import Millis
from frontend.wording import iso

PRESETS: Mapping[str, Millis] = {"1h": HOUR, "6h": 6 * HOUR, "24h": DAY, "7d": 7 * DAY}
LABELS: Mapping[str, str] = {"1h": "1 h", "6h": "6 h", "24h": "24 h", "7d": "7 d"}
USUAL = "24h"
SHORTEST, LONGEST = 1_000, 31 * DAY
MOST_STEPS = 170


@dataclass(frozen=True, slots=True)
class Span:
    """The time [first, last) in ms. `preset`: it ends now and is so long; "" for one that was chosen."""

    first: Millis
    last: Millis
    preset: str = ""

    @property
    def step_ms(self) -> Millis:
        """The distance of two points of a plot: round, so that there are at most `MOST_STEPS` of them."""
        return next(step for step in TIME_STEPS if step * MOST_STEPS >= self.last - self.first)

    @property
    def steps(self) -> int:
        """How many steps cover it."""
        return -(-(self.last - self.first) // self.step_ms)

    @property
    def fields(self) -> tuple[Millis, Millis]:
        """Its bounds in a form: one that ends now is shown in whole minutes."""
        if not self.preset:
            return self.first, self.last
        return self.first // MINUTE * MINUTE, -(-self.last // MINUTE) * MINUTE

    @property
    def query(self) -> str:
        """It as a query of a URL; the same instants for a page that knows no presets."""
        return urlencode({"from": iso(self.first), "to": iso(self.last)})
