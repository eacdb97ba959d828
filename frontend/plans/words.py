"""What a plan resets offsets to, in a few words. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, tzinfo

from frontend.offsets.reset_form import CHOICES
from frontend.wording import elided, number, plural, wall, zone_name

_LABELS = {choice.strategy.value: choice.label for choice in CHOICES}


def new_offsets(strategy: str, parameters: Mapping[str, object], zone: tzinfo = UTC) -> tuple[str, str]:
    """The strategy for people, and its parameter: `Backwards`, `100 records`; "" if it has no parameter to show.

    `parameters`: those of the plan that the person may see. `zone`: of its instant.
    """
    label = _LABELS.get(strategy, strategy)
    if (by := parameters.get("by")) is not None:
        records = int(str(by))
        return "Backwards" if records < 0 else "Forwards", plural(abs(records), "record")
    if (offset := parameters.get("offset")) is not None:
        return label, number(int(str(offset)))
    if (at := parameters.get("at")) is not None:
        return label, f"{wall(int(str(at)), zone)} {zone_name(zone, int(str(at)))}"
    return label, elided(str(parameters.get("duration") or parameters.get("from_group") or ""))
