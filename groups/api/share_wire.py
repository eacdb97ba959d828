"""The JSON of the share heartbeat. Absent means the same as null: unchanged. Source: http-api.md 2; share.md 2.1."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from groups.api.wire import Items, Request
from kcoord.http.types import ClientId, Int32, MemberId, TopicName


class ShareHeartbeatRequest(Request, frozen=True):
    """ShareGroupHeartbeat, version 1. `member_epoch` 0 joins, -1 leaves.

    The member makes its `member_id`: any text of 1 to 36 characters. A `client_id` that is left out stays unchanged.
    """

    member_id: MemberId
    member_epoch: Int32
    rack_id: Annotated[str, Meta(max_length=255)] | None = None
    client_id: ClientId = ""
    subscribed_topic_names: Annotated[list[TopicName], Items] | None = None
