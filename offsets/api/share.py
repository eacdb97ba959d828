"""Acquire and settle over HTTP.

Source: http-api.md 2, "acquire, settle"; share.md 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta

from groups.topics import TopicService, unknown_topic
from kcoord.access.quotas.budgets import Budget, Metering
from kcoord.access.rights import Operation, Permission
from kcoord.door.http.problem import invalid
from kcoord.door.http.serving import Call, Endpoint, serve
from kcoord.door.http.types import INT32_MAX, Expiry, Int32, MemberId, Millis32, ResultName, TopicName, rfc3339
from kcoord.metrics import SHARE_ACKNOWLEDGED, SHARE_ACQUIRED, commands
from kcoord.protocol.errors import Error, ProtocolError
from offsets.api.wire import Items, Request, Response
from offsets.share.service import ItemService
from offsets.share.store import Acquired, ItemRequest, Outcome

MOST_AT_ONCE = 10_000
"""Items that one request acquires at most."""
LARGEST_OFFSET = 10**18 - 1

Offset = Annotated[int, Meta(ge=0, le=LARGEST_OFFSET)]
LockId = Annotated[int, Meta(ge=0, le=LARGEST_OFFSET)]
Ranges = Annotated[list[tuple[Offset, Offset]], Items]
"""First and last offsets, both included."""


class Settlement(Request, frozen=True, omit_defaults=True):
    """What becomes of items of one lock. Each range is named once. `delay_ms`: of what is released, null: back-off."""

    lock: LockId
    accept: Ranges = []
    gap: Ranges = []
    release: Ranges = []
    reject: Ranges = []
    renew: Ranges = []
    delay_ms: Millis32 | None = None
    error: Annotated[str, Meta(max_length=2_000)] | None = None


class End(Request, frozen=True):
    """How far a partition goes: the offset after its last item."""

    topic: TopicName
    partition: Annotated[int, Meta(ge=0, le=INT32_MAX)]
    end_offset: Offset


class AcquireRequest(Request, frozen=True):
    """Up to `max_records` items of the partitions assigned to a member. `settle` is carried out first."""

    member_id: MemberId
    member_epoch: Int32
    max_records: Annotated[int, Meta(ge=1, le=MOST_AT_ONCE)] = 10
    max_wait_ms: Millis32 = 0
    lock_ms: Annotated[int, Meta(ge=1, le=INT32_MAX)] | None = None
    settle: Annotated[list[Settlement], Items] = []
    ends: Annotated[list[End], Items] = []


class Settled(Response, frozen=True):
    """The result of one entry. `locked_until` null: nothing is left of the lock.

    `why` and `held_by` belong to INVALID_RECORD_STATE: what became of the lock, and who has some of the items now.
    """

    lock: int
    error_code: Int32
    error: ResultName
    locked_until: Expiry | None
    why: str | None
    held_by: str | None


class HeldLock(Response, frozen=True):
    """Items that the member has until `locked_until`. `last_error`: what the attempt before said."""

    lock: int
    topic: str
    topic_id: str
    partition: Int32
    offsets: list[tuple[int, int]]
    delivery_count: Int32
    locked_until: Expiry
    last_error: str | None


class AcquireResponse(Response, frozen=True):
    """What was settled, in the order of the request, and what was acquired, for `lock_ms` unless it is renewed."""

    session_expires_at: Expiry | None
    settled: list[Settled]
    locks: list[HeldLock]
    lock_ms: Int32
    error_code: Int32 = 0


class SettleRequest(Request, frozen=True):
    """What becomes of items that the member holds."""

    member_id: MemberId
    items: Annotated[list[Settlement], Items]


class SettleResponse(Response, frozen=True):
    """A result for each entry, in the order of the request."""

    items: list[Settled]
    error_code: Int32 = 0


ACQUIRE = Endpoint(
    "POST",
    "/v1/groups/{group_id}/acquire",
    "acquireItems",
    "Acquire items of a share group",
    request=AcquireRequest,
    response=AcquireResponse,
    errors=(
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.INVALID_GROUP_ID,
        Error.GROUP_ID_NOT_FOUND,
        Error.UNKNOWN_MEMBER_ID,
        Error.FENCED_MEMBER_EPOCH,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
    ),
    description="Items are offsets of the partitions that are assigned to the member. Each lock is held by this member "
    "alone until `locked_until`; settle its items before. `settle` is carried out first, as by settle. `ends` reports "
    "how far partitions go; a reported watermark counts, too. With `max_wait_ms` the request is held while there is "
    "nothing to acquire. No session is renewed.",
    takes=Permission.READ_GROUP,
)

SETTLE = Endpoint(
    "POST",
    "/v1/groups/{group_id}/settle",
    "settleItems",
    "Settle items of a share group",
    request=SettleRequest,
    response=SettleResponse,
    errors=(
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.INVALID_GROUP_ID,
        Error.GROUP_ID_NOT_FOUND,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
    ),
    description="Each entry is settled as a whole or not at all, and has an `error_code` of its own: "
    "INVALID_RECORD_STATE if the member does not hold the items, with `why` and `held_by`. If there is no response, "
    "send the request again: what a lock has settled in the same way in the last ten minutes is settled again with "
    "success.",
    takes=Permission.READ_GROUP,
)


KINDS = ("accept", "gap", "release", "reject", "renew")

_ACKNOWLEDGED = {kind: SHARE_ACKNOWLEDGED.labels(kind) for kind in KINDS}


@serve(ACQUIRE, waits=True, is_hot=True, metering=Metering(Budget.COMMITS))
async def acquire(call: Call[AcquireRequest]) -> AcquireResponse:
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
    return AcquireResponse(
        session_expires_at=rfc3339(member.session_deadline),
        settled=_settled(body.settle, reply.settled),
        locks=[_lock(lock, member.names[lock.topic_id]) for lock in reply.locks],
        lock_ms=member.lock_ms,
    )


@serve(SETTLE, is_hot=True, metering=Metering(Budget.COMMITS))
async def settle(call: Call[SettleRequest]) -> SettleResponse:
    """ShareAcknowledge."""
    call.principal.require_group(Operation.READ, call.group_id)
    items = call.body.items
    _check(items, "items")
    if not items:
        return SettleResponse([])
    member_id, locks = call.body.member_id, [item.lock for item in items]
    asked = ItemRequest(call.group_id, member_id, msgspec.json.encode(items), locks)
    try:
        outcomes = await call.runtime.get(ItemService).settle(asked)
    except ProtocolError as refusal:
        commands("settle", refusal.error.name).inc()
        raise
    commands("settle", Error.NONE.name).inc()
    return SettleResponse(_settled(items, outcomes))


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


async def _ends(call: Call[AcquireRequest], ends: Sequence[End]) -> dict[tuple[UUID, int], int]:
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


def _settled(items: Sequence[Settlement], outcomes: Sequence[Outcome]) -> list[Settled]:
    found = []
    for item, outcome in zip(items, outcomes, strict=True):
        error = Error.NONE if outcome.why is None else Error.INVALID_RECORD_STATE
        until = None if outcome.why else rfc3339(outcome.until)
        if error is Error.NONE:
            for kind in KINDS:
                if offsets := getattr(item, kind):
                    _ACKNOWLEDGED[kind].inc(_size(offsets))
        found.append(Settled(item.lock, error.code, error.name, until, outcome.why, outcome.held_by))
    return found


def _size(ranges: Sequence[tuple[int, int]]) -> int:
    return sum(last - first + 1 for first, last in ranges)


def _lock(lock: Acquired, topic: str) -> HeldLock:
    until = rfc3339(lock.until)
    assert until is not None
    return HeldLock(
        lock=lock.lock,
        topic=topic,
        topic_id=str(lock.topic_id),
        partition=lock.partition,
        offsets=lock.offsets,
        delivery_count=lock.delivery_count,
        locked_until=until,
        last_error=lock.last_error,
    )
