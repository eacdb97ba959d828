"""Who can be told, of both sources: the file, and what people add, which Postgres has with its address encrypted.

The key is derived from Django's SECRET_KEY, so a backup alone tells no address, and processes with another key send
nothing to these receivers.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils.crypto import salted_hmac

from kcoord.access.audit.recording import Act, record
from kcoord.access.rights import Operation, Principal
from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.door.http.problem import RequestRefused, invalid
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.secret_tables import NAME, NAME_RULE, SecretTablesError
from kcoord.setting_table import RECEIVERS_FILE
from offsets.alerts.receivers import Receiver, SendError, Source, read_receivers, receiver_of, refuse_local
from offsets.alerts.rules import rules_alone, visible_rules
from offsets.alerts.types import Message
from offsets.core.alerts import Notice
from offsets.core.types import Millis

Q = queries("offsets")

MAX_STORED = 100
"""The most that people add, as many as a file may have."""
LONGEST_ADDRESS = 2_048
"""Characters of an address or a secret."""
LOST = "its address was encrypted with another KCOORD_SECRET_KEY: enter its address again, or use that key everywhere"
SHADOWS = "another of this name was added and is not used: the file has precedence"
IN_FILE = "receiver {!r} is in the file of receivers (" + RECEIVERS_FILE + "); change it there"


class ReceiverService:
    """Reads, changes and tests receivers. Every method may raise ProtocolError COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._path = runtime.config.str(RECEIVERS_FILE)

    async def all(self) -> Sequence[Receiver]:
        """By name. Raises INVALID_CONFIG if the file cannot be used."""
        async with self._db.connection() as connection:
            rows = await self._rows(connection)
        return await self._listed(rows)

    async def all_in(self, connection: Connection) -> Sequence[Receiver]:
        """The same, as a transaction sees it."""
        return await self._listed(await self._rows(connection))

    async def find(self, name: str) -> Receiver | None:
        """One of them. Raises SecretTablesError if the file cannot be used."""
        async with self._db.connection() as connection:
            rows = await self._rows(connection, name)
        return (await asyncio.to_thread(_merged, self._path, rows)).get(name)

    async def put(self, name: str, fields: Mapping[str, str], principal: Principal) -> Receiver:
        """Add a receiver, or replace one that was added. It takes `admin` on the cluster.

        `fields`: as in a table of the file. Raises INVALID_REQUEST naming the field, or with status 409 for a name of
        the file, INVALID_CONFIG, CLUSTER_AUTHORIZATION_FAILED.
        """
        principal.require_cluster(Operation.ADMIN)
        if not NAME.fullmatch(name):
            raise invalid(f"name: {NAME_RULE}", "name")
        receiver = await asyncio.to_thread(_given, name, fields)
        if await self._is_in_file(name):
            raise RequestRefused(409, IN_FILE.format(name))

        async def work(connection: Connection) -> None:
            await rules_alone(self._db, connection)
            kinds = {was: kind for was, kind, _ in await self._rows(connection)}
            if name not in kinds and len(kinds) >= MAX_STORED:
                raise invalid(f"{MAX_STORED} receivers were added already; delete one first")
            row = {"name": name, "kind": receiver.kind, "sealed": _seal(receiver), "principal": principal.name}
            now = await self._db.now_ms(connection)
            await connection.execute(Q.put_alert_receiver.encode(), {**row, "now": now})
            before = {"kind": kinds[name]} if name in kinds else None
            act = Act("receiver.change", "receiver", name, before, {"kind": receiver.kind}, principal=principal.name)
            await record(self._db, connection, act)

        await self._db.transaction(work)
        return receiver

    async def delete(self, name: str, principal: Principal) -> None:
        """Delete a receiver that was added. It takes `admin` on the cluster.

        Raises INVALID_REQUEST with status 404, or 409 if rules name it or only the file has it, INVALID_CONFIG,
        CLUSTER_AUTHORIZATION_FAILED.
        """
        principal.require_cluster(Operation.ADMIN)
        if not NAME.fullmatch(name):
            raise _unknown(name)
        is_in_file = await self._is_in_file(name)

        async def work(connection: Connection) -> None:
            rules = [rule for rule in await rules_alone(self._db, connection) if name in rule.receivers]
            kind = await self._db.value(connection, Q.delete_alert_receiver, {"name": name})
            if kind is None:
                raise RequestRefused(409, IN_FILE.format(name)) if is_in_file else _unknown(name)
            if rules and not is_in_file:
                seen = ", ".join(rule.name for rule in visible_rules(rules, principal)) or "that you may not see"
                raise RequestRefused(409, f"receiver {name!r} is named by rules, which have to change first: {seen}")
            act = Act("receiver.delete", "receiver", name, {"kind": kind}, principal=principal.name)
            await record(self._db, connection, act)

        await self._db.transaction(work)

    async def test(self, name: str, principal: Principal) -> str:
        """Send a test now; returns "" or why it was not taken. It takes `admin` on the cluster.

        Raises INVALID_REQUEST with status 404 for an unknown receiver, INVALID_CONFIG, CLUSTER_AUTHORIZATION_FAILED.
        """
        principal.require_cluster(Operation.ADMIN)
        found = next((receiver for receiver in await self.all() if receiver.name == name), None)
        if found is None:
            raise _unknown(name)

        async def work(connection: Connection) -> Millis:
            act = Act("alert.test", "receiver", name, None, {"receiver": name}, principal=principal.name)
            await record(self._db, connection, act)
            return await self._db.now_ms(connection)

        # Recorded before it is sent: who sends requests to receivers is in the audit whatever they answer.
        now = await self._db.transaction(work)
        content: dict[str, Any] = {"alerts": [], "alert_count": 0}
        try:
            await found.send(Message(str(uuid.uuid4()), None, "", name, Notice.TEST.value, content, now, 1))
        except SendError as error:
            return str(error)
        return ""

    async def _is_in_file(self, name: str) -> bool:
        return any(receiver.name == name for receiver in await self._listed([]))

    async def _rows(self, connection: Connection, name: str | None = None) -> Sequence[Any]:
        """Read each time: every process uses a change at once."""
        return await self._db.rows(connection, Q.alert_receivers, {"name": name})

    async def _listed(self, rows: Sequence[Any]) -> Sequence[Receiver]:
        try:
            found = await asyncio.to_thread(_merged, self._path, rows)
        except SecretTablesError as error:
            raise ProtocolError(Error.INVALID_CONFIG, str(error)) from error
        return [receiver for _, receiver in sorted(found.items())]


def _merged(path: str, rows: Sequence[Any]) -> Mapping[str, Receiver]:
    found = dict(read_receivers(path))
    for name, kind, sealed in rows:
        found[name] = replace(found[name], problem=SHADOWS) if name in found else _unseal(name, kind, sealed)
    return found


def _given(name: str, fields: Mapping[str, str]) -> Receiver:
    for field, value in fields.items():
        if len(value) > LONGEST_ADDRESS:
            raise invalid(f"{field}: at most {LONGEST_ADDRESS} characters", field)
    refuse_local(fields.get("url", ""))
    return receiver_of(name, fields, Source.DATABASE)


def _unknown(name: str) -> RequestRefused:
    return RequestRefused(404, f"there is no receiver {name[:64]!r}; GET /v1/alerts/receivers lists them")


def _seal(receiver: Receiver) -> str:
    from joserfc import jwe

    content = json.dumps([receiver.address, receiver.secret]).encode()
    return jwe.encrypt_compact({"alg": "dir", "enc": "A256GCM"}, content, _key(receiver.name, receiver.kind))


def _unseal(name: str, kind: str, sealed: str) -> Receiver:
    # Imported by the first receiver: most services have none in Postgres.
    from joserfc import jwe
    from joserfc.errors import JoseError

    try:
        content = jwe.decrypt_compact(sealed, _key(name, kind)).plaintext or b""
    except (JoseError, ValueError):
        return Receiver(name, kind, "", source=Source.DATABASE, problem=LOST)
    address, secret = json.loads(content)
    return Receiver(name, kind, address, secret, Source.DATABASE)


def _key(name: str, kind: str) -> Any:
    """A key for each receiver: what was encrypted for one cannot be given to another by moving it."""
    from joserfc.jwk import OctKey

    return OctKey.import_key(salted_hmac("offsets.alerts.stored", f"{kind}:{name}", algorithm="sha256").digest())
