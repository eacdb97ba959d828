"""The store of alerts: the only writer of rules, alerts and messages. Methods may raise COORDINATOR_NOT_AVAILABLE."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from psycopg.types.json import Jsonb

from groups.core.model.types import VerdictKind
from kcoord.database.paging import Visible
from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from offsets.alerts.types import AlertRow, Message, MessageRow, Outcomes, Rule, RuleSpec
from offsets.core.alerts import Alert, Decision, Finding, Notice
from offsets.core.types import Millis

Q = queries("offsets")

MOST_FOUND = 50_000
_FINDING = {"worst_first": [kind.value for kind in VerdictKind], "limit": MOST_FOUND}
"""Conditions that one check looks at, over all rules."""
_CHECK_LOCK = 0x6B636F_07


class AlertStore:
    """Statements about alerts. Those that take a connection run in the caller's transaction."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db

    async def rules(self, connection: Connection) -> list[Rule]:
        """All rules, by name."""
        return await self._db.records(connection, Rule, Q.alert_rules)

    async def rule(self, connection: Connection, rule_id: int) -> Rule | None:
        """A rule."""
        return await self._db.record(connection, Rule, Q.alert_rule, {"id": rule_id})

    async def id_named(self, connection: Connection, name: str) -> int | None:
        """The id of the rule with a name."""
        found: int | None = await self._db.value(connection, Q.alert_rule_named, {"name": name})
        return found

    async def count(self, connection: Connection) -> int:
        """How many rules there are."""
        found: int = await self._db.value(connection, Q.count_alert_rules)
        return found

    async def insert(self, connection: Connection, spec: RuleSpec, principal: str, now: Millis) -> int:
        """Store a rule; returns its id."""
        found: int = await self._db.value(connection, Q.insert_alert_rule, _columns(spec, principal, now))
        return found

    async def update(self, connection: Connection, rule_id: int, spec: RuleSpec, principal: str, now: Millis) -> None:
        """Change a rule."""
        await connection.execute(Q.update_alert_rule.encode(), {"id": rule_id, **_columns(spec, principal, now)})

    async def delete(self, connection: Connection, rule_id: int) -> None:
        """Delete a rule with its alerts; its messages stay."""
        await connection.execute(Q.delete_alerts_of_rule.encode(), {"id": rule_id})
        await connection.execute(Q.delete_alert_rule.encode(), {"id": rule_id})

    async def check_alone(self, connection: Connection) -> None:
        """Wait for other checks, and for changes of rules, until the transaction ends."""
        await connection.execute(Q.check_alerts_alone.encode(), {"key": _CHECK_LOCK})

    async def found(self, connection: Connection) -> list[Finding]:
        """The conditions that hold, the worst of a rule and group first."""
        return await self._db.records(connection, Finding, Q.groups_of_alert_rules, _FINDING)

    async def found_by(self, connection: Connection, spec: RuleSpec) -> list[Finding]:
        """The conditions of a rule that hold, in the same order; it need not be stored."""
        parameters = {**_FINDING, **_columns(spec, "", 0)}
        return await self._db.records(connection, Finding, Q.groups_of_alert_rule, parameters)

    async def groups_of(self, connection: Connection, spec: RuleSpec, visible: Visible) -> int:
        """How many groups that the caller may see a rule is about."""
        parameters = {**_columns(spec, "", 0), **visible.parameters("group")}
        found: int = await self._db.value(connection, Q.count_groups_of_alert_rule, parameters)
        return found

    async def unresolved(self, connection: Connection) -> list[Alert]:
        """Alerts that are open, and conditions that have not lasted long enough."""
        return await self._db.records(connection, Alert, Q.unresolved_alerts)

    async def judged_at(self, connection: Connection) -> Millis:
        """When groups were last judged by all checks (ms); 0: never by one of them."""
        runs = await self._db.rows(connection, Q.verdict_runs)
        return min((at for _, at in runs), default=0) if len(runs) > 1 else 0

    async def write(self, connection: Connection, decision: Decision, before: Sequence[Alert], now: Millis) -> None:
        """Store what a check decided; alerts that are as they were are not written."""
        was = set(before)
        fresh = [alert for alert in decision.kept if not alert.id]
        changed = [alert for alert in decision.kept if alert.id and alert not in was]
        if fresh:
            await connection.execute(Q.insert_alerts.encode(), _arrays(fresh, _NEW))
        if changed:
            await connection.execute(Q.update_alerts.encode(), _arrays(changed, _CHANGED))
        for statement, alerts in ((Q.resolve_alerts, decision.resolved), (Q.delete_alerts, decision.dropped)):
            if alerts:
                await connection.execute(statement.encode(), {"ids": [alert.id for alert in alerts], "now": now})

    async def post(
        self, connection: Connection, rule: Rule, notice: Notice, content: dict[str, Any], now: Millis
    ) -> None:
        """Put a message for each receiver of a rule into the outbox."""
        for receiver in rule.receivers:
            parameters = {"id": str(uuid.uuid4()), "rule_id": rule.id, "rule_name": rule.name, "receiver": receiver}
            parameters |= {"notice": notice.value, "content": Jsonb(content), "now": now}
            await connection.execute(Q.insert_alert_message.encode(), parameters)

    async def labels(self, connection: Connection, group_ids: Sequence[str]) -> dict[str, dict[str, str]]:
        """The labels of groups that have any, by group."""
        return dict(await self._db.rows(connection, Q.labels_of_alerts, {"group_ids": list(group_ids)}))

    async def claim(self, connection: Connection, now: Millis, again_at: Millis) -> Message | None:
        """Take the message that is due longest; nobody else does before `again_at` (ms)."""
        parameters = {"now": now, "again_at": again_at}
        return await self._db.record(connection, Message, Q.claim_alert_message, parameters)

    async def sent(self, connection: Connection, message_id: str, now: Millis) -> None:
        """Note that a message was taken."""
        await connection.execute(Q.alert_message_sent.encode(), {"id": message_id, "now": now})

    async def failed(self, connection: Connection, message_id: str, error: str, next_at: Millis | None) -> None:
        """Note why a message was not taken, and when it is sent again (ms; None: never)."""
        parameters = {"id": message_id, "error": error[:1_000], "next_at": next_at}
        await connection.execute(Q.alert_message_failed.encode(), parameters)

    async def alerts(
        self,
        connection: Connection,
        visible: Visible,
        before: tuple[Millis, int],
        limit: int,
        *,
        resolved: bool,
        group_id: str | None,
    ) -> list[AlertRow]:
        """Alerts on groups in `visible`, the latest first, after one of them."""
        parameters = {"before_at": before[0], "before_id": before[1], "limit": limit, "group_id": group_id}
        statement = Q.resolved_alerts if resolved else Q.open_alerts
        return await self._db.records(connection, AlertRow, statement, {**parameters, **visible.parameters("group")})

    async def alert(self, connection: Connection, alert_id: int) -> AlertRow | None:
        """An alert."""
        return await self._db.record(connection, AlertRow, Q.alert, {"id": alert_id})

    async def mute(self, connection: Connection, alert_id: int, until: Millis | None, principal: str) -> bool:
        """Mute an open alert until an instant (ms). `until` None: end the mute. Returns False without an open alert."""
        parameters = {"id": alert_id, "until": until, "principal": principal}
        return await self._db.value(connection, Q.mute_alert, parameters) is not None

    async def messages(self, connection: Connection, limit: int) -> list[MessageRow]:
        """The latest messages."""
        return await self._db.records(connection, MessageRow, Q.alert_messages, {"limit": limit})

    async def outcomes(self, connection: Connection) -> Outcomes:
        """How the messages that are kept have fared."""
        found = await self._db.record(connection, Outcomes, Q.alert_messages_by_outcome)
        assert found is not None
        return found

    async def open_by_rule(self, connection: Connection) -> dict[str, int]:
        """How many alerts of each rule are open, by its name."""
        return dict(await self._db.rows(connection, Q.count_open_alerts))

    async def trim(self, connection: Connection, before: Millis) -> None:
        """Delete what ended before an instant (ms)."""
        await connection.execute(Q.trim_alerts.encode(), {"before": before})


_NEW = ("rule_id", "group_id", "cause", "value", "since", "opened_at", "told_at")
_CHANGED = ("id", "cause", "value", "since", "opened_at", "over_since", "told_at")


def _arrays(alerts: Sequence[Alert], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [getattr(alert, name) for alert in alerts] for name in names}


def _columns(spec: RuleSpec, principal: str, now: Millis) -> dict[str, Any]:
    return {
        **asdict(spec),
        "verdicts": list(spec.verdicts),
        "receivers": list(spec.receivers),
        "principal": principal,
        "now": now,
    }
