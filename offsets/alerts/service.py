"""Alerts: rules that are changed, alerts that are listed and muted, and what receivers can be told at once.

A rule for one group takes `admin` on that group or on the cluster, one for groups with a prefix `admin` on the cluster.
Everybody sees the alerts of the groups that they may describe.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

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
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.secret_tables import SecretTablesError
from kcoord.setting_table import RECEIVERS_FILE
from offsets.alerts import wording
from offsets.alerts.receivers import Receiver, SendError, read_receivers
from offsets.alerts.rules import check_spec
from offsets.alerts.store import AlertStore
from offsets.alerts.types import AlertRow, Message, MessageRow, Outcomes, Preview, Rule, RuleSpec
from offsets.core.alerts import AlertRule, Notice, decide
from offsets.core.types import Millis

_SPEC = [field.name for field in fields(RuleSpec)]
MAX_RULES = 500
"""The most rules: each check compares all of them."""


class AlertRefused(ProtocolError):
    """INVALID_REQUEST with status 404: there is no such rule or alert."""

    def __init__(self, detail: str) -> None:
        super().__init__(Error.INVALID_REQUEST, detail)
        self.status = 404


class AlertService:
    """Reads and changes rules and alerts. Every method may raise ProtocolError COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._store = runtime.get(AlertStore)
        self._file = runtime.config.str(RECEIVERS_FILE)

    async def rules(self, visible: Visible = EVERYTHING) -> list[Rule]:
        """The rules by name; those for a group that is not in `visible` are left out."""
        async with self._db.connection() as connection:
            found = await self._store.rules(connection)
        return [rule for rule in found if _is_visible(rule, visible)]

    async def rule(self, rule_id: int, visible: Visible = EVERYTHING) -> Rule:
        """A rule. Raises INVALID_REQUEST with status 404, also for one that `rules` leaves out."""
        async with self._db.connection() as connection:
            found = await self._store.rule(connection, rule_id)
        return _found(found if found is not None and _is_visible(found, visible) else None, rule_id)

    async def preview(self, spec: RuleSpec, visible: Visible) -> Preview:
        """What a rule would do now, of the groups that the caller may see. Raises INVALID_REQUEST naming the field."""
        check_spec(spec, await self.receivers())
        async with self._db.snapshot() as connection:
            groups = await self._store.groups_of(connection, spec, visible)
            found = await self._store.found_by(connection, spec)
            now = await self._db.now_ms(connection)
        rule = AlertRule(0, spec.for_ms)
        decision = decide([rule], [one for one in found if one.group_id in visible], [], now, settle_ms=0, judged_at=0)
        opened = [alert.group_id for alert in decision.kept if alert.opened_at is not None]
        return Preview(groups, sorted(opened), len(decision.kept) - len(opened), spec.for_ms)

    async def create(self, spec: RuleSpec, principal: Principal) -> Rule:
        """Store a rule; the next check applies it.

        Raises INVALID_REQUEST naming the field, CLUSTER_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED.
        """
        _require(principal, spec.pattern, spec.group_name)
        check_spec(spec, await self.receivers())

        async def work(connection: Connection) -> int:
            await self._store.check_alone(connection)
            await self._check_name(connection, spec.name, None)
            if await self._store.count(connection) >= MAX_RULES:
                raise ProtocolError(Error.INVALID_REQUEST, f"there are {MAX_RULES} rules already; delete one first")
            rule_id = await self._store.insert(connection, spec, principal.name, await self._db.now_ms(connection))
            act = Act("alert.rule", "alert-rule", spec.name, None, asdict(spec), principal=principal.name)
            await record(self._db, connection, act)
            return rule_id

        return await self.rule(await self._db.transaction(work))

    async def update(self, rule_id: int, spec: RuleSpec, principal: Principal) -> Rule:
        """Replace a rule; its open alerts go on. Raises as `create` does, and INVALID_REQUEST with status 404."""
        return await self.change(rule_id, asdict(spec), principal)

    async def change(self, rule_id: int, given: Mapping[str, Any], principal: Principal) -> Rule:
        """Replace these fields of a rule. Raises as `update` does."""
        receivers = await self.receivers()

        async def work(connection: Connection) -> None:
            await self._store.check_alone(connection)
            was = _changeable(await self._store.rule(connection, rule_id), rule_id, principal)
            before = {name: getattr(was, name) for name in _SPEC}
            spec = RuleSpec(**{**before, **given})
            _require(principal, spec.pattern, spec.group_name)
            check_spec(spec, receivers)
            await self._check_name(connection, spec.name, rule_id)
            await self._store.update(connection, rule_id, spec, principal.name, await self._db.now_ms(connection))
            act = Act("alert.rule", "alert-rule", spec.name, before, asdict(spec), principal=principal.name)
            await record(self._db, connection, act)

        await self._db.transaction(work)
        return await self.rule(rule_id)

    async def delete(self, rule_id: int, principal: Principal) -> None:
        """Delete a rule with its alerts. Raises INVALID_REQUEST with status 404, and as `create` for lack of rights."""

        async def work(connection: Connection) -> None:
            await self._store.check_alone(connection)
            was = _changeable(await self._store.rule(connection, rule_id), rule_id, principal)
            await self._store.delete(connection, rule_id)
            before = {"pattern": was.pattern, "group_name": was.group_name, "receivers": list(was.receivers)}
            act = Act("alert.delete", "alert-rule", was.name, before, None, principal=principal.name)
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
        before = (INT64_MAX, INT64_MAX) if cursor is None else decode_cursor(cursor, int, int)
        place = int(before[0]), int(before[1])
        async with self._db.connection() as connection:
            found = await self._store.alerts(
                connection, visible, place, limit + 1, resolved=resolved, group_id=group_id
            )
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
            found = await self._store.alert(connection, alert_id)
            if found is None or not principal.may_group(Operation.DESCRIBE, found.group_id):
                raise AlertRefused(f"there is no alert {alert_id}; GET /v1/alerts lists them")
            _require(principal, "literal", found.group_id)
            until = await self._db.now_ms(connection) + duration_ms if duration_ms else None
            if not await self._store.mute(connection, alert_id, until, principal.name if until else ""):
                raise AlertRefused(f"alert {alert_id} is resolved")
            after = {"rule": found.rule_name, "muted_until": until}
            before = {"rule": found.rule_name, "muted_until": found.muted_until}
            act = Act("alert.mute", "group", found.group_id, before, after, principal=principal.name)
            await record(self._db, connection, act)
            changed = await self._store.alert(connection, alert_id)
            assert changed is not None
            return changed

        return await self._db.transaction(work)

    async def messages(self, limit: int = DEFAULT_LIMIT) -> list[MessageRow]:
        """The latest messages, the newest first."""
        async with self._db.connection() as connection:
            return await self._store.messages(connection, limit)

    async def outcomes(self) -> Outcomes:
        """How the messages that are kept have fared."""
        async with self._db.connection() as connection:
            return await self._store.outcomes(connection)

    async def open_by_rule(self) -> Mapping[str, int]:
        """How many alerts of each rule are open, by its name."""
        async with self._db.connection() as connection:
            return await self._store.open_by_rule(connection)

    async def receivers(self) -> Sequence[Receiver]:
        """Who can be told, by name. Raises INVALID_CONFIG if the file cannot be used."""
        return [found for _, found in sorted((await self._read()).items())]

    async def test(self, receiver: str, principal: Principal) -> str:
        """Send a test now; returns "" or why it was not taken. It takes `admin` on the cluster.

        Raises INVALID_REQUEST with status 404 for an unknown receiver, CLUSTER_AUTHORIZATION_FAILED.
        """
        principal.require_cluster(Operation.ADMIN)
        found = (await self._read()).get(receiver)
        if found is None:
            raise AlertRefused(f"there is no receiver {receiver[:64]!r}; GET /v1/alerts/receivers lists them")
        message = await self._test_message(receiver, principal)
        try:
            title, text, body = wording.title(message), wording.text(message), wording.body(message)
            await found.send(message.id, title, text, body, bad=False)
        except SendError as error:
            return str(error)
        return ""

    async def _test_message(self, receiver: str, principal: Principal) -> Message:
        """Recorded before it is sent: who sends requests to receivers is in the audit whatever they answer."""

        async def work(connection: Connection) -> Millis:
            act = Act("alert.test", "receiver", receiver, None, {"receiver": receiver}, principal=principal.name)
            await record(self._db, connection, act)
            return await self._db.now_ms(connection)

        now = await self._db.transaction(work)
        content: dict[str, Any] = {"alerts": [], "alert_count": 0}
        return Message(str(uuid.uuid4()), None, "", receiver, Notice.TEST.value, content, now, 1)

    async def _read(self) -> Mapping[str, Receiver]:
        try:
            return await asyncio.to_thread(read_receivers, self._file)
        except SecretTablesError as error:
            raise ProtocolError(Error.INVALID_CONFIG, str(error)) from error

    async def _check_name(self, connection: Connection, name: str, own_id: int | None) -> None:
        if await self._store.id_named(connection, name) not in (None, own_id):
            raise ProtocolError(
                Error.INVALID_REQUEST, f"name: there is a rule {name!r} already", fields={"field": "name"}
            )


def _is_visible(rule: Rule, visible: Visible) -> bool:
    return rule.pattern != "literal" or rule.group_name in visible


def may_change(principal: Principal, pattern: str, group_name: str) -> bool:
    """Whether the caller may make, change or delete a rule for these groups."""
    own = pattern == "literal" and principal.may_group(Operation.ADMIN, group_name)
    return own or principal.may_cluster(Operation.ADMIN)


def _require(principal: Principal, pattern: str, group_name: str) -> None:
    if may_change(principal, pattern, group_name):
        return
    if pattern == "literal":
        principal.require_group(Operation.ADMIN, group_name)
    principal.require_cluster(Operation.ADMIN)


def _changeable(rule: Rule | None, rule_id: int, principal: Principal) -> Rule:
    """The rule, if the caller may change it. Who may not see rules cannot tell whether there is one."""
    if rule is not None and not _is_visible(rule, principal.listed_groups):
        rule = None
    if rule is not None and may_change(principal, rule.pattern, rule.group_name):
        return rule
    if rule is not None or not principal.may_cluster(Operation.DESCRIBE):
        principal.require_cluster(Operation.ADMIN)
    return _found(None, rule_id)


def _found(rule: Rule | None, rule_id: int) -> Rule:
    if rule is None:
        raise AlertRefused(f"there is no alert rule {rule_id}; GET /v1/alerts/rules lists them")
    return rule
