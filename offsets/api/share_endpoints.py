"""The descriptions of acquire and settle.

Source: http-api.md 2, "acquire, settle".
"""

from __future__ import annotations

from kcoord.http.serving import Endpoint
from kcoord.protocol.errors import Error
from offsets.api import share_wire

ACQUIRE = Endpoint(
    "POST",
    "/v1/groups/{group_id}/acquire",
    "acquireItems",
    "Acquire items of a share group",
    request=share_wire.AcquireRequest,
    response=share_wire.AcquireResponse,
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
)

SETTLE = Endpoint(
    "POST",
    "/v1/groups/{group_id}/settle",
    "settleItems",
    "Settle items of a share group",
    request=share_wire.SettleRequest,
    response=share_wire.SettleResponse,
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
)
