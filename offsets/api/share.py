"""Acquire and settle over HTTP.

Source: http-api.md 2, "acquire, settle"; share.md 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from uuid import UUID

import msgspec

from groups.catalogue.topics import TopicService, unknown_topic
from kcoord.access.rights import Operation
from kcoord.http.problem import invalid
from kcoord.http.serving import Call, serve
from kcoord.http.types import rfc3339
from kcoord.metrics import SHARE_ACKNOWLEDGED, SHARE_ACQUIRED, commands
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.quotas.budgets import Budget, Metering
from offsets.api import share_endpoints, share_wire
from offsets.api.share_wire import Settlement
from offsets.share.service import ItemService
from offsets.share.store import Acquired, ItemRequest, Outcome

KINDS = ("accept", "gap", "release", "reject", "renew")

_ACKNOWLEDGED = {kind: SHARE_ACKNOWLEDGED.labels(kind) for kind in KINDS}


@serve(share_endpoints.ACQUIRE, waits=True, is_hot=True, metering=Metering(Budget.COMMITS))
async def acquire(call: Call[share_wire.AcquireRequest]) -> share_wire.AcquireResponse:
    """ShareFetch, without the records."""
    body = call.body
    call.principal.require_group(Operation.READ, call.group_id)
    _check(body.settle, "settle")
    asked = ItemRequest(
        group_id=call.group_id,
        member_id=body.member_id,
        settle=msgspec.json.encode(body.settle) if body.settle else None,
        locks=[item.lock for item in body.settle],
        member_epoch=body.member_epoch,
        most=body.max_records,
        lock_ms=body.lock_ms or 0,
        ends=await _ends(call, body.ends),
    )
    try:
        reply = await call.runtime.get(ItemService).acquire(
            asked, call.principal, min(body.max_wait_ms, call.runtime.max_wait_ms)
        )
    except ProtocolError as refusal:
        commands("acquire", refusal.error.name).inc()
        raise
    commands("acquire", Error.NONE.name).inc()
    SHARE_ACQUIRED.inc(sum(_size(lock.offsets) for lock in reply.locks))
    member = reply.admitted
    assert member is not None
    return share_wire.AcquireResponse(
        session_expires_at=rfc3339(member.session_deadline),
        settled=_settled(body.settle, reply.settled),
        locks=[_lock(lock, member.names[lock.topic_id]) for lock in reply.locks],
        lock_ms=member.lock_ms,
    )


@serve(share_endpoints.SETTLE, is_hot=True, metering=Metering(Budget.COMMITS))
async def settle(call: Call[share_wire.SettleRequest]) -> share_wire.SettleResponse:
    """ShareAcknowledge."""
    call.principal.require_group(Operation.READ, call.group_id)
    items = call.body.items
    _check(items, "items")
    if not items:
        return share_wire.SettleResponse([])
    member_id, locks = call.body.member_id, [item.lock for item in items]
    asked = ItemRequest(call.group_id, member_id, msgspec.json.encode(items), locks)
    try:
        outcomes = await call.runtime.get(ItemService).settle(asked)
    except ProtocolError as refusal:
        commands("settle", refusal.error.name).inc()
        raise
    commands("settle", Error.NONE.name).inc()
    return share_wire.SettleResponse(_settled(items, outcomes))


def _check(items: Sequence[Settlement], field: str) -> None:
    """Raise INVALID_REQUEST for an entry that settles nothing, or an offset twice."""
    for place, item in enumerate(items):
        where = f"{field}[{place}]"
        named: list[tuple[int, int]] = []
        for kind in KINDS:
            for first, last in getattr(item, kind):
                if first > last:
                    raise invalid(f"{where}.{kind}: [{first}, {last}] ends before it begins", f"{where}.{kind}")
                named.append((first, last))
        if not named:
            raise invalid(f"{where}: settles nothing; name offsets in one of {', '.join(KINDS)}", where)
        named.sort()
        for (_, last), (first, _) in pairwise(named):
            if first <= last:
                raise invalid(f"{where}: offset {first} is settled twice; name it once", where)


async def _ends(call: Call[share_wire.AcquireRequest], ends: Sequence[share_wire.End]) -> dict[tuple[UUID, int], int]:
    """Raises UNKNOWN_TOPIC_OR_PARTITION for a topic that does not exist."""
    if not ends:
        return {}
    view = await call.runtime.get(TopicService).find(names={end.topic for end in ends})
    found: dict[tuple[UUID, int], int] = {}
    for end in ends:
        topic = view.by_name.get(end.topic)
        if topic is None:
            raise unknown_topic(end.topic)
        key = UUID(topic.topic_id), end.partition
        found[key] = max(end.end_offset, found.get(key, 0))
    return found


def _settled(items: Sequence[Settlement], outcomes: Sequence[Outcome]) -> list[share_wire.Settled]:
    found = []
    for item, outcome in zip(items, outcomes, strict=True):
        error = Error.NONE if outcome.why is None else Error.INVALID_RECORD_STATE
        until = None if outcome.why else rfc3339(outcome.until)
        if error is Error.NONE:
            for kind in KINDS:
                if offsets := getattr(item, kind):
                    _ACKNOWLEDGED[kind].inc(_size(offsets))
        found.append(share_wire.Settled(item.lock, error.code, error.name, until, outcome.why, outcome.held_by))
    return found


def _size(ranges: Sequence[tuple[int, int]]) -> int:
    return sum(last - first + 1 for first, last in ranges)


def _lock(lock: Acquired, topic: str) -> share_wire.HeldLock:
    until = rfc3339(lock.until)
    assert until is not None
    return share_wire.HeldLock(
        lock=lock.lock,
        topic=topic,
        topic_id=str(lock.topic_id),
        partition=lock.partition,
        offsets=lock.offsets,
        delivery_count=lock.delivery_count,
        locked_until=until,
        last_error=lock.last_error,
    )
