"""The tasks of alerts: the check of all rules, and the sending of messages. Celery beat calls both.

A check and what it tells are one transaction: a message exists if and only if the alert changed. Messages are sent
afterwards, at least once: a worker that dies while it sends leaves the message to the next one, with the same id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from kcoord.database.pool import Connection
from kcoord.process.runtime import Runtime
from kcoord.secret_tables import SecretTablesError
from kcoord.setting_table import LINK_URL, RECEIVERS_FILE
from offsets.alerts import wording
from offsets.alerts.receivers import AT_ONCE, TIMEOUT_SECONDS, Receiver, SendError, read_receivers
from offsets.alerts.store import AlertStore
from offsets.alerts.types import Message
from offsets.core.alerts import Alert, Notice, decide, next_attempt
from offsets.core.days import DAY_MS
from offsets.core.types import Millis

log = structlog.get_logger(__name__)

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
        self._store = runtime.get(AlertStore)
        self._settle_ms = runtime.config.int("alerts.settle.ms")
        self._file = runtime.config.str(RECEIVERS_FILE)
        self._link_url = runtime.config.str(LINK_URL)
        self._is_sending = False
        self._kept_ms = runtime.config.int("offsets.journal.retention.days") * DAY_MS

    async def check(self) -> int:
        """Compare all rules with the groups, and put what receivers are told into the outbox; returns how much."""
        return await self._db.transaction(self._check)

    async def _check(self, connection: Connection) -> int:
        await self._store.check_alone(connection)
        now = await self._db.now_ms(connection)
        rules = {rule.id: rule for rule in await self._store.rules(connection)}
        before = await self._store.unresolved(connection)
        decision = decide(
            [rule.deciding for rule in rules.values() if rule.enabled],
            await self._store.found(connection),
            before,
            now,
            settle_ms=self._settle_ms,
            judged_at=await self._store.judged_at(connection),
        )
        await self._store.write(connection, decision, before, now)
        for (rule_id, notice), alerts in decision.notices.items():
            named = [alert.group_id for alert in alerts[: wording.MOST_ALERTS]]
            labels = await self._store.labels(connection, named)
            content = wording.content(rules[rule_id], alerts, self._link_url, labels)
            await self._store.post(connection, rules[rule_id], notice, content, now)
        await self._store.trim(connection, now - self._kept_ms)
        told = sum(len(alerts) for alerts in decision.notices.values())
        if told:
            log.info("alerts_told", **_counts(decision.notices))
        return told

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
            message = await self._claim()
            if message is None:
                break
            sent += await self._send(message)
        return sent

    async def _claim(self) -> Message | None:
        async def work(connection: Connection) -> Message | None:
            now = await self._db.now_ms(connection)
            return await self._store.claim(connection, now, now + CLAIM_MS)

        return await self._db.transaction(work)

    async def _send(self, message: Message) -> bool:
        try:
            receiver = await self._receiver(message.receiver)
            bad = message.notice != Notice.RESOLVED.value
            title, text, body = wording.title(message), wording.text(message), wording.body(message)
            await receiver.send(message.id, title, text, body, bad=bad)
        except (SendError, SecretTablesError) as error:
            await self._note_failure(message, str(error))
            return False

        async def note(connection: Connection) -> None:
            await self._store.sent(connection, message.id, await self._db.now_ms(connection))

        await self._db.transaction(note)
        return True

    async def _note_failure(self, message: Message, why: str) -> None:
        async def note(connection: Connection) -> Millis | None:
            next_at = next_attempt(message.attempts, await self._db.now_ms(connection))
            await self._store.failed(connection, message.id, why, next_at)
            return next_at

        next_at = await self._db.transaction(note)
        level = log.error if next_at is None else log.warning
        level("alert_not_sent", receiver=message.receiver, rule=message.rule_name, why=why, again_at=next_at)

    async def _receiver(self, name: str) -> Receiver:
        """Read for each message: a mended file is used at once. Raises SendError, SecretTablesError."""
        found = (await asyncio.to_thread(read_receivers, self._file)).get(name)
        if found is None:
            raise SendError(f"there is no receiver {name!r} in the file of receivers")
        return found


def _counts(notices: Mapping[tuple[int, Notice], Sequence[Alert]]) -> dict[str, int]:
    counts = {notice.value: 0 for notice in Notice if notice is not Notice.TEST}
    for (_, notice), alerts in notices.items():
        counts[notice.value] += len(alerts)
    return counts
