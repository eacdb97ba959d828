"""The tasks of alerts: the check of all rules, and the sending of messages. Celery beat calls both.

A check and what it tells are one transaction: a message exists if and only if the alert changed. Messages are sent
afterwards, at least once: a worker that dies while it sends leaves the message to the next one, with the same id.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields

import structlog
from psycopg.types.json import Jsonb

from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.secret_tables import SecretTablesError
from kcoord.setting_table import LINK_URL
from offsets.alerts import wording
from offsets.alerts.receivers import AT_ONCE, TIMEOUT_SECONDS, Receiver, SendError
from offsets.alerts.rules import found, rules_alone
from offsets.alerts.stored import ReceiverService
from offsets.alerts.types import AlertRuleView, Message
from offsets.core.alerts import Alert, Decision, Notice, decide, next_attempt
from offsets.core.days import DAY_MS
from offsets.core.types import Millis

log = structlog.get_logger(__name__)

Q = queries("offsets")

MOST_SENT = 100
"""The most messages that one run sends, so that it ends; the next run continues."""
CLAIM_MS: Millis = 60_000
"""How long a message belongs to the worker that sends it: longer than a receiver may take."""
assert TIMEOUT_SECONDS * 3_000 < CLAIM_MS


class AlertChecks:
    """Checks rules and sends messages.

    Methods may raise COORDINATOR_NOT_AVAILABLE; what was done until then is kept.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._settle_ms = runtime.config.int("alerts.settle.ms")
        self._receivers = runtime.get(ReceiverService)
        self._link_url = runtime.config.str(LINK_URL)
        self._is_sending = False
        self._kept_ms = runtime.config.int("offsets.journal.retention.days") * DAY_MS

    async def check(self) -> int:
        """Compare all rules with the groups, and put what receivers are told into the outbox; returns how much."""
        return await self._db.transaction(self._check)

    async def _check(self, connection: Connection) -> int:
        rules = {rule.id: rule for rule in await rules_alone(self._db, connection) if rule.enabled}
        now = await self._db.now_ms(connection)
        before = await self._db.records(connection, Alert, Q.unresolved_alerts)
        runs = await self._db.rows(connection, Q.verdict_runs)
        decision = decide(
            rules.values(),
            await found(self._db, connection),
            before,
            now,
            settle_ms=self._settle_ms,
            judged_at=min(at for _, at in runs) if len(runs) > 1 else 0,  # not before every check ran once
        )
        await self._write(connection, decision, set(before))
        told: Counter[str] = Counter({notice.value: 0 for notice in Notice if notice is not Notice.TEST})
        for (rule_id, notice), alerts in decision.notices.items():
            await self._post(connection, rules[rule_id], notice, alerts, now)
            told[notice.value] += len(alerts)
        await connection.execute(Q.trim_alerts.encode(), {"before": now - self._kept_ms})
        if told.total():
            log.info("alerts_told", **told)
        return told.total()

    async def _write(self, connection: Connection, decision: Decision, before: Collection[Alert]) -> None:
        """Store what a check decided; alerts that are as they were are not written."""
        changed = [alert for alert in decision.kept if alert not in before]
        for statement, alerts in (
            (Q.insert_alerts, [alert for alert in changed if not alert.id]),
            (Q.update_alerts, [alert for alert in changed if alert.id]),
            (Q.resolve_alerts, decision.resolved),
            (Q.delete_alerts, decision.dropped),
        ):
            if alerts:
                columns = {one.name: [getattr(alert, one.name) for alert in alerts] for one in fields(Alert)}
                await connection.execute(statement.encode(), {**columns, "now": decision.now})

    async def _post(
        self, connection: Connection, rule: AlertRuleView, notice: Notice, alerts: Sequence[Alert], now: Millis
    ) -> None:
        """Put a message for each receiver of a rule into the outbox."""
        named = [alert.group_id for alert in alerts[: wording.MOST_ALERTS]]
        labels: dict[str, Mapping[str, str]] = dict(
            await self._db.rows(connection, Q.labels_of_alerts, {"group_ids": named})
        )
        content = Jsonb(wording.content(rule, alerts, self._link_url, labels))
        message = {"rule_id": rule.id, "rule_name": rule.name, "notice": notice.value, "content": content, "now": now}
        await connection.execute(Q.insert_alert_messages.encode(), {**message, "receivers": rule.receivers})

    async def send(self) -> int:
        """Send the messages that are due, several at a time; returns how many were taken.

        Nothing while another run of this process sends: its caller holds a thread of the worker, and slow receivers
        must not hold them all.
        """
        if self._is_sending:
            return 0
        self._is_sending = True
        try:
            return sum(await asyncio.gather(*(self._send_some() for _ in range(AT_ONCE))))
        finally:
            self._is_sending = False

    async def _send_some(self) -> int:
        sent = 0
        for _ in range(MOST_SENT // AT_ONCE):
            message = await self._db.transaction(self._claim)
            if message is None:
                break
            sent += await self._send(message)
        return sent

    async def _claim(self, connection: Connection) -> Message | None:
        now = await self._db.now_ms(connection)
        parameters = {"now": now, "again_at": now + CLAIM_MS}
        return await self._db.record(connection, Message, Q.claim_alert_message, parameters)

    async def _send(self, message: Message) -> bool:
        why: str | None = None
        try:
            await (await self._receiver(message.receiver)).send(message)
        except (SendError, SecretTablesError) as error:
            why = str(error)

        async def note(connection: Connection) -> Millis | None:
            now = await self._db.now_ms(connection)
            next_at = None if why is None else next_attempt(message.attempts, now)
            outcome = {"sent_at": now if why is None else None, "next_at": next_at, "error": (why or "")[:1_000]}
            await connection.execute(Q.note_alert_message.encode(), {"id": message.id, **outcome})
            return next_at

        next_at = await self._db.transaction(note)
        if why is not None:
            level = log.error if next_at is None else log.warning
            level("alert_not_sent", receiver=message.receiver, rule=message.rule_name, why=why, again_at=next_at)
        return why is None

    async def _receiver(self, name: str) -> Receiver:
        """Read for each message: what was corrected is used at once. Raises SendError, SecretTablesError."""
        found = await self._receivers.find(name)
        if found is None:
            raise SendError(f"there is no receiver {name!r}")
        return found
