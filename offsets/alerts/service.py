"""Alerts: rules that are changed, and alerts that are listed and muted.

A rule for one group takes `admin` on that group or on the cluster, one for groups with a prefix `admin` on the cluster.
Everybody sees the alerts of the groups that they may describe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from kcoord.access.audit.recording import Act, record
from kcoord.access.rights import Operation, Principal
from kcoord.database.paging import (
    DEFAULT_LIMIT,
    EVERYTHING,
    INT64_MAX,
    Page,
    Visible,
    cut,
    decode_cursor,
    encode_cursor,
)
from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.door.http.problem import RequestRefused, invalid
from kcoord.process.runtime import Runtime
from offsets.alerts.rules import all_rules, as_row, check_rule, found, rules_alone, visible_rules
from offsets.alerts.stored import ReceiverService
from offsets.alerts.types import AlertRow, AlertRuleView, MessageView, Outcomes, Preview, given_of
from offsets.core.alerts import decide
from offsets.core.types import Millis

Q = queries("offsets")

MAX_RULES = 500
"""The most rules: each check compares all of them."""


class AlertService:
    """Reads and changes rules and alerts. Every method may raise ProtocolError COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._receivers = runtime.get(ReceiverService)

    async def rules(self, principal: Principal) -> list[AlertRuleView]:
        """The rules that the caller may see, by name.

        With `describe` on the cluster all but those for a group that is denied to the caller, without it those that
        the caller may change.
        """
        async with self._db.connection() as connection:
            found = visible_rules(await all_rules(self._db, connection), principal)
        sees_all = principal.may_cluster(Operation.DESCRIBE)
        return [rule for rule in found if sees_all or _may_change(principal, rule.pattern, rule.group_name)]

    async def rule(self, rule_id: int, principal: Principal) -> AlertRuleView:
        """One of them. Raises INVALID_REQUEST with status 404."""
        return _found(await self.rules(principal), rule_id)

    async def preview(self, given: Mapping[str, Any], visible: Visible) -> Preview:
        """What a rule with the fields `GIVEN` would do now, of the groups that the caller may see.

        Raises INVALID_REQUEST naming the field.
        """
        rule = _new(given)
        check_rule(rule, await self._receivers.all())
        async with self._db.snapshot() as connection:
            asked = {"rule": as_row(rule), **visible.parameters("group")}
            groups = await self._db.value(connection, Q.count_groups_of_alert_rule, asked)
            holding = [one for one in await found(self._db, connection, rule) if one.group_id in visible]
            now = await self._db.now_ms(connection)
        decision = decide([rule], holding, [], now, settle_ms=0, judged_at=0)
        opened = [alert.group_id for alert in decision.kept if alert.opened_at is not None]
        return Preview(groups, sorted(opened), len(decision.kept) - len(opened), rule.for_ms)

    async def store(self, given: Mapping[str, Any], principal: Principal, rule_id: int | None = None) -> AlertRuleView:
        """Store a rule with the fields `GIVEN`, or replace some of one; its open alerts go on. The next check uses it.

        Raises INVALID_REQUEST naming the field, or with status 404, CLUSTER_AUTHORIZATION_FAILED,
        GROUP_AUTHORIZATION_FAILED.
        """
        if rule_id is None:
            _require(principal, given["pattern"], given["group_name"])

        async def work(connection: Connection) -> AlertRuleView:
            rules = await rules_alone(self._db, connection)
            was = None if rule_id is None else _changeable(rules, rule_id, principal)
            rule = _new(given) if was is None else msgspec.structs.replace(was, **given)
            _require(principal, rule.pattern, rule.group_name)
            check_rule(rule, await self._receivers.all_in(connection))
            if any(one.name == rule.name and one.id != rule.id for one in rules):
                raise invalid(f"name: there is a rule {rule.name!r} already", "name")
            if was is None and len(rules) >= MAX_RULES:
                raise invalid(f"there are {MAX_RULES} rules already; delete one first")
            row = as_row(rule, updated_at=await self._db.now_ms(connection), updated_by=principal.name)
            statement = Q.insert_alert_rule if was is None else Q.update_alert_rule
            stored = await self._db.record(connection, AlertRuleView, statement, {"id": rule_id, "rule": row})
            assert stored is not None
            before, after = was and given_of(was), given_of(rule)
            act = Act("alert.rule", "alert-rule", rule.name, before, after, principal=principal.name)
            await record(self._db, connection, act)
            return stored

        return await self._db.transaction(work)

    async def delete(self, rule_id: int, principal: Principal) -> None:
        """Delete a rule with its alerts. Raises INVALID_REQUEST with status 404, and as `store` for lack of rights."""

        async def work(connection: Connection) -> None:
            was = _changeable(await rules_alone(self._db, connection), rule_id, principal)
            await connection.execute(Q.delete_alert_rule.encode(), {"id": rule_id})
            before = {"pattern": was.pattern, "group_name": was.group_name, "receivers": was.receivers}
            act = Act("alert.delete", "alert-rule", was.name, before, principal=principal.name)
            await record(self._db, connection, act)

        await self._db.transaction(work)

    async def alerts(
        self,
        visible: Visible = EVERYTHING,
        *,
        resolved: bool = False,
        group_id: str | None = None,
        cursor: str | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Page[AlertRow]:
        """A page of the open alerts, or of the resolved ones, on groups in `visible`, the latest first.

        `group_id`: only of this group. Raises INVALID_REQUEST for a bad cursor.
        """
        at, alert_id = (INT64_MAX, INT64_MAX) if cursor is None else decode_cursor(cursor, int, int)
        place = {"before_at": at, "before_id": alert_id, "limit": limit + 1, "group_id": group_id}
        statement = Q.resolved_alerts if resolved else Q.open_alerts
        async with self._db.connection() as connection:
            found = await self._db.records(connection, AlertRow, statement, {**place, **visible.parameters("group")})
        rows, more = cut(found, limit)
        if not more:
            return Page(rows, None)
        last = rows[-1]
        return Page(rows, encode_cursor((last.resolved_at if resolved else last.opened_at) or 0, last.id))

    async def mute(self, alert_id: int, duration_ms: Millis, principal: Principal) -> AlertRow:
        """Tell nobody of an open alert for a while (ms); 0 ends that. It takes `admin` on the group or the cluster.

        Raises INVALID_REQUEST with status 404: there is no such alert, or it is resolved.
        """

        async def work(connection: Connection) -> AlertRow:
            found = await self._db.record(connection, AlertRow, Q.alert, {"id": alert_id})
            if found is None or not principal.may_group(Operation.DESCRIBE, found.group_id):
                raise RequestRefused(404, f"there is no alert {alert_id}; GET /v1/alerts lists them")
            _require(principal, "literal", found.group_id)
            until = await self._db.now_ms(connection) + duration_ms if duration_ms else None
            by = principal.name if until else ""
            mute = {"id": alert_id, "until": until, "principal": by}
            if await self._db.value(connection, Q.mute_alert, mute) is None:
                raise RequestRefused(404, f"alert {alert_id} is resolved")
            before, after = ({"rule": found.rule_name, "muted_until": at} for at in (found.muted_until, until))
            act = Act("alert.mute", "group", found.group_id, before, after, principal=principal.name)
            await record(self._db, connection, act)
            return replace(found, muted_until=until, muted_by=by)

        return await self._db.transaction(work)

    async def messages(self, limit: int = DEFAULT_LIMIT) -> list[MessageView]:
        """The latest messages, the newest first."""
        async with self._db.connection() as connection:
            return await self._db.records(connection, MessageView, Q.alert_messages, {"limit": limit})

    async def outcomes(self) -> Outcomes:
        """How the messages that are kept have fared."""
        async with self._db.connection() as connection:
            found = await self._db.record(connection, Outcomes, Q.alert_messages_by_outcome)
        assert found is not None
        return found

    async def open_by_rule(self) -> Mapping[str, int]:
        """How many alerts of each rule are open, by its name."""
        async with self._db.connection() as connection:
            return dict(await self._db.rows(connection, Q.count_open_alerts))


def _may_change(principal: Principal, pattern: str, group_name: str) -> bool:
    own = pattern == "literal" and principal.may_group(Operation.ADMIN, group_name)
    return own or principal.may_cluster(Operation.ADMIN)


def _require(principal: Principal, pattern: str, group_name: str) -> None:
    if not _may_change(principal, pattern, group_name):
        if pattern == "literal":
            principal.require_group(Operation.ADMIN, group_name)
        principal.require_cluster(Operation.ADMIN)


def _new(given: Mapping[str, Any]) -> AlertRuleView:
    return AlertRuleView(id=0, **given, updated_at=0, updated_by="")


def _changeable(rules: Sequence[AlertRuleView], rule_id: int, principal: Principal) -> AlertRuleView:
    """The rule, if the caller may change it. Who may not see rules cannot tell whether there is one."""
    rules = visible_rules(rules, principal)
    rule = next((rule for rule in rules if rule.id == rule_id), None)
    if rule is not None and _may_change(principal, rule.pattern, rule.group_name):
        return rule
    if rule is not None or not principal.may_cluster(Operation.DESCRIBE):
        principal.require_cluster(Operation.ADMIN)
    return _found([], rule_id)


def _found(rules: Sequence[AlertRuleView], rule_id: int) -> AlertRuleView:
    for rule in rules:
        if rule.id == rule_id:
            return rule
    raise RequestRefused(404, f"there is no alert rule {rule_id}; GET /v1/alerts/rules lists them")
