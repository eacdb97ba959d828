"""The JSON of acquire and settle, field by field.

Source: http-api.md 2, "acquire, settle"; share.md 7.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from kcoord.http.types import INT32_MAX, Expiry, Int32, MemberId, Millis32, ResultName, TopicName
from offsets.api.wire import Items, Request, Response

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
