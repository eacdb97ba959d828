"""What is risky about an offset plan, in words."""

from __future__ import annotations

from dataclasses import dataclass

from frontend.wording import plural
from offsets.core.plan_types import PlanHeader, PlanState

NO_LAG = "No watermark was known, or there is no offset before or after"
OWN_POLICY = "start where their own reset policy says, at the beginning or at the end of the log"


@dataclass(frozen=True, slots=True)
class Risk:
    """What happens if the plan is applied. `act`: the button's action that avoids it, with its label; "" if none."""

    text: str
    act: str = ""
    label: str = ""


def at_risk(plan: PlanHeader) -> int:
    """Partitions after whose change members do not read on from a committed offset."""
    return sum(int(str(plan.totals[name] or 0)) for name in ("removed", "outside"))


def risks(plan: PlanHeader, *, whole: bool = True) -> list[Risk]:
    """What is risky about a plan that is not applied, the worst first. `whole`: its totals are of all its topics."""
    if plan.state is not PlanState.PLANNED:
        return []
    removed, unknown, outside = (int(str(plan.totals[name] or 0)) for name in ("removed", "unknown", "outside"))
    told = []
    if removed:
        of = plural(removed, "partition")
        if whole and removed == plan.totals["partitions"]:
            of = f"all {of} of the plan" if removed > 1 else "the only partition of the plan"
        told.append(Risk(f"The committed offset of {of} will be removed: members {OWN_POLICY}."))
    if unknown:
        missing = f"For {plural(unknown, 'partition')} the commit history does not reach back to that time."
        meaning = "Nothing is known about them then; that does not mean that nothing was committed."
        told.append(Risk(f"{missing} {meaning}", "keep", f"Keep {'its offset' if unknown == 1 else 'their offsets'}"))
    if outside:
        where = "offset of 1 partition is" if outside == 1 else f"offsets of {plural(outside, 'partition')} are"
        told.append(Risk(f"The new {where} outside the log: members {OWN_POLICY}.", "clamp", "Clamp to the log"))
    return told
