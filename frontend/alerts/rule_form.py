"""The form of a rule: what it shows, and what it says when it is sent. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.http import QueryDict

from frontend.alerts.words import VERDICTS
from offsets.alerts.rules import LEAST_REMIND_MS, LONGEST_MS
from offsets.alerts.types import Rule, RuleSpec

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
UNITS = {"d": DAY, "day": DAY, "days": DAY, "h": HOUR, "": MINUTE, "min": MINUTE, "m": MINUTE, "s": 1_000, "ms": 1}
_LENGTH = re.compile(r"([0-9]{1,12})\s*([a-z]*)")
_COUNT = re.compile(r"[0-9]{1,18}")
NOT_A_LENGTH = "Write a length such as 5 min, 90 s or 4 h; a number alone is minutes."
TOO_LONG = f"At most {LONGEST_MS // DAY} days."
TOO_OFTEN = f"At least {LEAST_REMIND_MS // MINUTE} min; empty: only once."
NOT_A_COUNT = "Write a whole number of records."
COMMON = ("uncovered", "unattended", "stalled", "stuck")
"""What a new rule watches for, unless its author says otherwise: what never is as it should be."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the fields of the form have, as people write it."""

    name: str = ""
    pattern: str = "prefix"
    group_name: str = ""
    verdicts: Sequence[str] = COMMON
    min_lag: str = ""
    min_time_lag: str = ""
    lasting: str = "5 min"
    remind: str = "4 h"
    send_resolved: bool = True
    receivers: Sequence[str] = ()
    enabled: bool = True
    label: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """What a form says. `spec` None: something is wrong with the fields of `problems`."""

    spec: RuleSpec | None
    problems: Mapping[str, str] = field(default_factory=dict)


def shown(rule: Rule) -> Given:
    """The form of a stored rule."""
    return Given(
        rule.name,
        rule.pattern,
        rule.group_name,
        tuple(rule.verdicts),
        "" if rule.min_lag is None else str(rule.min_lag),
        "" if rule.min_time_lag_ms is None else length(rule.min_time_lag_ms),
        length(rule.for_ms),
        length(rule.remind_ms) if rule.remind_ms else "",
        rule.send_resolved,
        tuple(rule.receivers),
        rule.enabled,
        rule.label,
    )


def sent(post: QueryDict) -> Given:
    """The form as it was sent."""
    return Given(
        post.get("name", "").strip(),
        post.get("pattern", ""),
        post.get("group_name", "").strip(),
        tuple(name for name in VERDICTS if name in post.getlist("verdicts")),
        post.get("min_lag", "").strip(),
        post.get("min_time_lag_ms", "").strip(),
        post.get("for_ms", "").strip(),
        post.get("remind_ms", "").strip(),
        bool(post.get("send_resolved")),
        tuple(dict.fromkeys(post.getlist("receivers"))),
        bool(post.get("enabled")),
        post.get("label", "").strip(),
    )


def read(given: Given) -> Read:
    """What a form says. What the service refuses as well is left to it."""
    problems: dict[str, str] = {}

    def counted(name: str, written: str) -> int | None:
        plain = written.replace(",", "").replace(" ", "")
        if not plain:
            return None
        if not _COUNT.fullmatch(plain):
            problems[name] = NOT_A_COUNT
            return None
        return int(plain)

    def lasting(name: str, written: str) -> int | None:
        found = milliseconds(written) if written else None
        if written and found is None:
            problems[name] = NOT_A_LENGTH
        return found

    for_ms, remind_ms = lasting("for_ms", given.lasting) or 0, lasting("remind_ms", given.remind) or 0
    if for_ms > LONGEST_MS:
        problems["for_ms"] = TOO_LONG
    if remind_ms > LONGEST_MS:
        problems["remind_ms"] = TOO_LONG
    if 0 < remind_ms < LEAST_REMIND_MS:
        problems["remind_ms"] = TOO_OFTEN
    spec = RuleSpec(
        given.name,
        given.pattern,
        given.group_name,
        given.verdicts,
        counted("min_lag", given.min_lag),
        lasting("min_time_lag_ms", given.min_time_lag),
        for_ms,
        remind_ms,
        given.send_resolved,
        given.receivers,
        given.enabled,
        given.label,
    )
    return Read(None if problems else spec, problems)


def milliseconds(written: str) -> int | None:
    """The length in ms of text such as `5 min` or `90 s`. None: the text is not a length, or exceeds a year."""
    match = _LENGTH.fullmatch(written.lower())
    if match is None or match[2] not in UNITS:
        return None
    found = int(match[1]) * UNITS[match[2]]
    return found if found <= 365 * DAY else None


def length(ms: int) -> str:
    """A length as the form shows it, exactly: `5 min`, `90 s`, `4 h`."""
    for unit in ("h", "min", "s"):
        if ms % UNITS[unit] == 0 and ms:
            return f"{ms // UNITS[unit]} {unit}"
    return f"{ms} ms" if ms else "0 s"
