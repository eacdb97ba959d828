"""Writing records of the audit, in the transaction of the act that they are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kcoord.access.audit.encoding import canonical, clean
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.requests import current
from kcoord.requests.current import Caller

Q = queries("kcoord")

LONGEST_REASON = 1_000
LONGEST_NAME = 500


@dataclass(frozen=True, slots=True)
class Act:
    """What was done, or was refused.

    `act`: one of `kcoord.access.audit.acts`. `resource`, `name`: what it is about. `before`, `after`: values that JSON
    has, None: it did not exist. `error`: why it was refused, by the name of the error; "" if it was done. `count`: how
    often. `principal`: who does it, where the service was told by name; "": the caller.
    """

    act: str
    resource: str
    name: str = ""
    before: object = None
    after: object = None
    reason: str = ""
    error: str = ""
    count: int = 1
    principal: str = ""


def parameters(act: Act, caller: Caller | None = None, clock: int | None = None) -> dict[str, Any]:
    """Those of the statement `append_audit`. `clock` in ms, None: that of the database."""
    who = caller or current.caller()
    return {
        "clock": clock,
        "kind": who.kind.value,
        "principal": clean(act.principal or who.name)[:LONGEST_NAME],
        "principal_id": who.identifier if act.principal in ("", who.name) else "",
        "address": clean(who.address)[:LONGEST_NAME],
        "request_id": clean(who.request_id)[:LONGEST_NAME],
        "door": who.door.value,
        "act": act.act,
        "resource": act.resource,
        "name": clean(act.name)[:LONGEST_NAME],
        "before": canonical(act.before),
        "after": canonical(act.after),
        "reason": clean(act.reason)[:LONGEST_REASON],
        "result": "refused" if act.error else "done",
        "error": clean(act.error)[:LONGEST_NAME],
        "count": act.count,
    }


async def record(db: Database, connection: Connection, act: Act, caller: Caller | None = None) -> None:
    """Record an act in the caller's transaction: it is in the audit if and only if that commits."""
    await connection.execute(Q.append_audit.encode(), parameters(act, caller, db.clock.override_ms))


def record_here(act: Act, caller: Caller | None = None) -> None:
    """As `record`, on Django's connection. Call it within `transaction.atomic`."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(Q.append_audit, parameters(act, caller))
