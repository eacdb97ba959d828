"""What makes a rule of alerts valid."""

from __future__ import annotations

from collections.abc import Sequence

from groups.core.model.types import VerdictKind
from kcoord.control.rest.labels import name_fault, value_fault
from kcoord.door.http.paths import check_group_id
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.setting_table import RECEIVERS_FILE
from offsets.alerts.receivers import Receiver
from offsets.alerts.types import RuleSpec

PATTERNS = ("literal", "prefix")
LONGEST_MS = 30 * 86_400_000
"""The longest time that a condition has to last, and between reminders."""
LEAST_REMIND_MS = 60_000


def check_spec(spec: RuleSpec, receivers: Sequence[Receiver]) -> None:
    """Raise INVALID_REQUEST naming the first field that is wrong, and the remedy."""
    if not spec.name.strip() or len(spec.name) > 100 or not spec.name.isprintable():
        raise _invalid("name", "1 to 100 printable characters")
    if spec.pattern not in PATTERNS:
        raise _invalid("pattern", f"must be one of {', '.join(PATTERNS)}")
    if spec.pattern == "literal":
        check_group_id(spec.group_name)
    elif len(spec.group_name) > 255 or "\0" in spec.group_name:
        raise _invalid("group_name", "at most 255 characters; empty: all groups")
    if fault := _label_fault(spec.label):
        raise _invalid("label", f"{fault}; write name=value, or name for any value")
    known = [kind.value for kind in VerdictKind]
    unknown = [kind for kind in spec.verdicts if kind not in known]
    if unknown:
        raise _invalid("verdicts", f"{unknown[0][:50]!r} is not one of {', '.join(known)}")
    if not spec.verdicts and spec.min_lag is None and spec.min_time_lag_ms is None:
        raise _invalid("verdicts", "a rule needs a condition: name verdicts, or give min_lag or min_time_lag_ms")
    for field, value in (("min_lag", spec.min_lag), ("min_time_lag_ms", spec.min_time_lag_ms)):
        if value is not None and not 1 <= value < 2**63:
            raise _invalid(field, "must be at least 1")
    if not 0 <= spec.for_ms <= LONGEST_MS:
        raise _invalid("for_ms", f"must be from 0 to {LONGEST_MS} (ms)")
    if spec.remind_ms and not LEAST_REMIND_MS <= spec.remind_ms <= LONGEST_MS:
        raise _invalid("remind_ms", f"must be 0 (never), or from {LEAST_REMIND_MS} to {LONGEST_MS} (ms)")
    _check_receivers(spec.receivers, {receiver.name for receiver in receivers})


def _label_fault(label: str) -> str:
    name, _, value = label.partition("=")
    return (name_fault(name) or value_fault(value)) if label else ""


def _check_receivers(wanted: Sequence[str], known: set[str]) -> None:
    if not wanted:
        raise _invalid("receivers", "name at least one; GET /v1/alerts/receivers lists them")
    if len(set(wanted)) != len(wanted):
        raise _invalid("receivers", "one is named twice")
    unknown = [name for name in wanted if name not in known]
    if unknown:
        names = ", ".join(sorted(known))
        there = f"the receivers are {names}" if known else f"none is configured ({RECEIVERS_FILE})"
        raise _invalid("receivers", f"{unknown[0][:64]!r} is not known; {there}")


def _invalid(field: str, detail: str) -> ProtocolError:
    return ProtocolError(Error.INVALID_REQUEST, f"{field}: {detail}", fields={"field": field})
