"""Groups that change their protocol, for tests of both directions."""

from __future__ import annotations

from groups.core.model.events import EventKind, events_of
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.classic_client import (
    ALL,
    join_classic,
    sync_classic,
)
from tests.groups.core.consumer.world import World


def classic(made: World, instance_id: str | None = "i1", plan: dict[str, list[int]] | None = None) -> str:
    """A Stable classic group of one member that has foo 0 to 5; its id."""
    joined = join_classic(made, "", ("foo",), instance_id=instance_id)
    if joined.reply is not None and joined.error is Error.MEMBER_ID_REQUIRED:
        joined = join_classic(made, joined.reply.member_id, ("foo",), instance_id=instance_id)
    member_id: str = joined.reply.member_id
    assert sync_classic(made, member_id, 1, {member_id: plan or {"foo": ALL}}, instance_id).error is Error.NONE
    return member_id


def kinds(made: World, *wanted: EventKind) -> list[EventKind]:
    assert made.last is not None
    return [event.kind for event in events_of(None, made.last.records) if event.kind in wanted]
