"""Rules of alerts: what makes one valid, and the groups for which its condition holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from psycopg.types.json import Jsonb

from kcoord.access.rights import Principal
from kcoord.control.rest.labels import name_fault, value_fault
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.door.http.paths import check_group_id
from kcoord.door.http.problem import invalid
from kcoord.protocol.errors import ProtocolError
from offsets.alerts.receivers import Receiver
from offsets.alerts.types import PATTERNS, VERDICTS, AlertRuleView
from offsets.core.alerts import Finding

Q = queries("offsets")

LONGEST_MS = 30 * 86_400_000
"""The longest time that a condition has to last, and between reminders."""
LEAST_REMIND_MS = 60_000
MOST_FOUND = 50_000
"""Conditions that one check looks at, over all rules."""
_CHECK_LOCK = 0x6B636F_07


def check_rule(rule: AlertRuleView, receivers: Sequence[Receiver]) -> None:
    """Raise INVALID_REQUEST naming the first field that is wrong, and the remedy."""
    if not rule.name.strip() or len(rule.name) > 100 or not rule.name.isprintable():
        raise _invalid("name", "1 to 100 printable characters")
    if rule.pattern not in PATTERNS:
        raise _invalid("pattern", f"must be one of {', '.join(PATTERNS)}")
    if rule.pattern == "literal":
        check_group_id(rule.group_name)
    elif len(rule.group_name) > 255 or "\0" in rule.group_name:
        raise _invalid("group_name", "at most 255 characters; empty: all groups")
    name, _, value = rule.label.partition("=")
    if rule.label and (fault := name_fault(name) or value_fault(value)):
        raise _invalid("label", f"{fault}; write name=value, or name for any value")
    if unknown := [kind for kind in rule.verdicts if kind not in VERDICTS]:
        raise _invalid("verdicts", f"{unknown[0][:50]!r} is not one of {', '.join(VERDICTS)}")
    if not rule.verdicts and rule.min_lag is None and rule.min_time_lag_ms is None:
        raise _invalid("verdicts", "a rule needs a condition: name verdicts, or give min_lag or min_time_lag_ms")
    for field, least in (("min_lag", rule.min_lag), ("min_time_lag_ms", rule.min_time_lag_ms)):
        if least is not None and not 1 <= least < 2**63:
            raise _invalid(field, "must be at least 1")
    if not 0 <= rule.for_ms <= LONGEST_MS:
        raise _invalid("for_ms", f"must be from 0 to {LONGEST_MS} (ms)")
    if rule.remind_ms and not LEAST_REMIND_MS <= rule.remind_ms <= LONGEST_MS:
        raise _invalid("remind_ms", f"must be 0 (never), or from {LEAST_REMIND_MS} to {LONGEST_MS} (ms)")
    _check_receivers(rule.receivers, {receiver.name for receiver in receivers})


def _check_receivers(wanted: Sequence[str], known: set[str]) -> None:
    if not wanted:
        raise _invalid("receivers", "name at least one; GET /v1/alerts/receivers lists them")
    if len(set(wanted)) != len(wanted):
        raise _invalid("receivers", "one is named twice")
    if unknown := [name for name in wanted if name not in known]:
        there = f"the receivers are {', '.join(sorted(known))}" if known else "none was added yet"
        raise _invalid("receivers", f"{unknown[0][:64]!r} is not known; {there}")


def _invalid(field: str, detail: str) -> ProtocolError:
    return invalid(f"{field}: {detail}", field)


def visible_rules(rules: Sequence[AlertRuleView], principal: Principal) -> list[AlertRuleView]:
    """Those that do not name a group which the caller may not describe."""
    visible = principal.listed_groups
    return [rule for rule in rules if rule.pattern != "literal" or rule.group_name in visible]


async def all_rules(db: Database, connection: Connection) -> list[AlertRuleView]:
    """By name."""
    return await db.records(connection, AlertRuleView, Q.alert_rules)


async def rules_alone(db: Database, connection: Connection) -> list[AlertRuleView]:
    """The same, once no other check or change of rules runs; none does until the transaction ends."""
    await connection.execute(Q.check_alerts_alone.encode(), {"key": _CHECK_LOCK})
    return await all_rules(db, connection)


async def found(db: Database, connection: Connection, rule: AlertRuleView | None = None) -> list[Finding]:
    """The conditions that hold of all rules, or of one that need not be stored; the worst of a rule and group first."""
    parameters: dict[str, Any] = {"worst_first": VERDICTS, "limit": MOST_FOUND, "rule": rule and as_row(rule)}
    return await db.records(connection, Finding, Q.groups_of_alert_rules, parameters)


def as_row(rule: AlertRuleView, **stored: Any) -> Jsonb:
    """A rule as statements take it. `stored`: fields that differ."""
    return Jsonb({**msgspec.structs.asdict(rule), **stored})
