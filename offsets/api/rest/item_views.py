"""Items, dead letters and offsets of share groups, for operators (http-api.md 4; share.md 7.8).

Reading takes `describe` on the group, and leaves out topics that the caller may not describe. Changes take
`alter-offsets` on the group and `describe` on the topics; to forget a topic takes `delete`. Where a group begins is
altered and forgotten for topics that the caller may `read`.
"""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest.group_views import NAMED, NamedGroupView
from kcoord.access.rights import Permission, Resource
from kcoord.control.rest.answers import shown
from kcoord.control.rest.schema import GROUP_ID, describe
from kcoord.protocol.errors import Error
from offsets.api.rest import item_serializers as s
from offsets.share.operators import Chosen, ItemOperators

_CHANGES = (*NAMED, Error.GROUP_AUTHORIZATION_FAILED, Error.TOPIC_AUTHORIZATION_FAILED)
_ITEMS = (*_CHANGES, Error.UNKNOWN_TOPIC_OR_PARTITION)
_RESETS = (*NAMED, Error.GROUP_AUTHORIZATION_FAILED, Error.NON_EMPTY_GROUP)


class ItemsView(NamedGroupView):
    """`/v1/groups/{group_id}/items`."""

    @describe(
        "listItems",
        "List items of a share group that were given out and are not finished",
        tag="items",
        takes=Permission.DESCRIBE_GROUP,
        path=[GROUP_ID],
        query=s.ItemQuery,
        response=s.ItemPage,
        errors=NAMED,
        description="Who has which items, how often they were delivered, and why they failed. Topics that the caller "
        "may not describe are left out.",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """A page of items."""
        query = self.query(s.ItemQuery)
        visible = self.visible(Resource.TOPIC)
        page = self.service(lambda runtime: runtime.get(ItemOperators).items(self.group_id, **query, visible=visible))
        return self.listed(s.ItemPage, "items", page, group_id=self.group_id)


class _OperateView(NamedGroupView):
    """Release or reject items."""

    def operate(self, kind: str) -> int:
        """How many items there were."""
        self.query()
        self.require(self.group_id)
        given = self.given(s.ItemsToOperate)
        chosen = [
            Chosen(entry["topic"], entry["partition"], [(first, last) for first, last in entry["offsets"]])
            for entry in given["items"]
        ]
        principal = self.principal
        for topic in {entry.topic for entry in chosen}:
            principal.require_described(topic)
        return self.service(
            lambda runtime: runtime.get(ItemOperators).operate(self.group_id, kind, chosen, principal, given["error"])
        )


class ReleaseItemsView(_OperateView):
    """`/v1/groups/{group_id}/items/release`."""

    @describe(
        "releaseItems",
        "Make items available again, no matter which member has them",
        tag="items",
        takes=Permission.ALTER_GROUP,
        audit="items.release",
        path=[GROUP_ID],
        request=s.ItemsToOperate,
        response=s.ReleasedItems,
        errors=_ITEMS,
        description="Locks end, and delays do, too. Who holds such a lock cannot settle it any more, so stop a worker "
        "that hangs before you release what it has. Offsets in no lock and no retry are ignored.",
    )
    def post(self, request: Request, group_id: str) -> Response:
        """Release."""
        return Response(shown(s.ReleasedItems, {"released": self.operate("release")}))


class RejectItemsView(_OperateView):
    """`/v1/groups/{group_id}/items/reject`."""

    @describe(
        "rejectItems",
        "Make dead letters of items, no matter which member has them",
        tag="items",
        takes=Permission.ALTER_GROUP,
        audit="items.reject",
        path=[GROUP_ID],
        request=s.ItemsToOperate,
        response=s.RejectedItems,
        errors=_ITEMS,
        description="Who holds them cannot settle them any more. Offsets in no lock and no retry are ignored.",
    )
    def post(self, request: Request, group_id: str) -> Response:
        """Reject."""
        return Response(shown(s.RejectedItems, {"rejected": self.operate("reject")}))


class DeadLettersView(NamedGroupView):
    """`/v1/groups/{group_id}/dead-letters`."""

    @describe(
        "listDeadLetters",
        "List the dead letters of a share group",
        tag="items",
        takes=Permission.DESCRIBE_GROUP,
        path=[GROUP_ID],
        query=s.DeadLetterQuery,
        response=s.DeadLetterPage,
        errors=NAMED,
        description="Items that were rejected, or delivered as often as allowed. They stay until they are replayed or "
        "discarded. Topics that the caller may not describe are left out.",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """A page of dead letters."""
        query = self.query(s.DeadLetterQuery)
        visible = self.visible(Resource.TOPIC)
        page = self.service(
            lambda runtime: runtime.get(ItemOperators).dead_letters(self.group_id, **query, visible=visible)
        )
        return self.listed(s.DeadLetterPage, "dead_letters", page, group_id=self.group_id)


class ReplayDeadLettersView(NamedGroupView):
    """`/v1/groups/{group_id}/dead-letters/replay`."""

    @describe(
        "replayDeadLetters",
        "Deliver dead letters again",
        tag="items",
        takes=Permission.ALTER_GROUP,
        audit="dead-letters.replay",
        path=[GROUP_ID],
        request=s.DeadLettersToReplay,
        response=s.ReplayedDeadLetters,
        errors=_CHANGES,
        description="Those that do not exist any more are ignored, so that a replay that is sent again does nothing.",
    )
    def post(self, request: Request, group_id: str) -> Response:
        """Replay."""
        self.query()
        self.require(self.group_id)
        given, principal = self.given(s.DeadLettersToReplay), self.principal
        replayed = self.service(
            lambda runtime: runtime.get(ItemOperators).replay(
                self.group_id, given["ids"], principal, reset_count=given["reset_count"]
            )
        )
        return Response(shown(s.ReplayedDeadLetters, {"replayed": replayed}))


class DiscardDeadLettersView(NamedGroupView):
    """`/v1/groups/{group_id}/dead-letters/discard`."""

    @describe(
        "discardDeadLetters",
        "Remove dead letters for good",
        tag="items",
        takes=Permission.ALTER_GROUP,
        audit="dead-letters.discard",
        path=[GROUP_ID],
        request=s.DeadLettersToDiscard,
        response=s.DiscardedDeadLetters,
        errors=_CHANGES,
        description="Those that do not exist any more are ignored. The items are finished.",
    )
    def post(self, request: Request, group_id: str) -> Response:
        """Discard."""
        self.query()
        self.require(self.group_id)
        given, principal = self.given(s.DeadLettersToDiscard), self.principal
        discarded = self.service(
            lambda runtime: runtime.get(ItemOperators).discard(self.group_id, given["ids"], principal)
        )
        return Response(shown(s.DiscardedDeadLetters, {"discarded": discarded}))


class ShareOffsetsView(NamedGroupView):
    """`/v1/groups/{group_id}/share-offsets`."""

    @describe(
        "getShareOffsets",
        "Get how far a share group is",
        tag="items",
        takes=Permission.DESCRIBE_GROUP,
        path=[GROUP_ID],
        response=s.ShareOffsets,
        errors=NAMED,
        description="DescribeShareGroupOffsets, with the numbers of items in each state. Topics that the caller may "
        "not describe are left out.",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """All partitions."""
        self.query()
        visible = self.visible(Resource.TOPIC)
        found = self.service(lambda runtime: runtime.get(ItemOperators).offsets(self.group_id, visible))
        known = [partition.lag for partition in found if partition.lag is not None]
        lag = sum(known) if known else None
        return Response(shown(s.ShareOffsets, {"group_id": self.group_id, "partitions": found, "lag": lag}))

    @describe(
        "alterShareOffsets",
        "Let partitions of a share group begin again at an offset",
        tag="items",
        takes=Permission.ALTER_GROUP,
        audit="share-offsets.alter",
        path=[GROUP_ID],
        request=s.ShareOffsetsToAlter,
        response=s.AlteredShareOffsets,
        errors=_RESETS,
        description="AlterShareGroupOffsets: only while the group has no members; it is created if it does not "
        "exist. Locks and retries of these partitions end, and so do dead letters from the new start on.",
    )
    def post(self, request: Request, group_id: str) -> Response:
        """Alter."""
        self.query()
        self.require(self.group_id)
        starts = {
            (entry["topic"], entry["partition"]): entry["start_offset"]
            for entry in self.given(s.ShareOffsetsToAlter)["partitions"]
        }
        principal = self.principal
        results = self.service(lambda runtime: runtime.get(ItemOperators).alter(self.group_id, starts, principal))
        entries = [
            {"topic": topic, "partition": number, **_result(error)} for (topic, number), error in results.items()
        ]
        return Response(shown(s.AlteredShareOffsets, {"partitions": entries}))

    @describe(
        "deleteShareOffsets",
        "Let a share group forget topics",
        tag="items",
        takes=Permission.DELETE_GROUP,
        audit="share-offsets.delete",
        path=[GROUP_ID],
        query=s.ForgottenQuery,
        response=s.ForgottenTopics,
        errors=_RESETS,
        description="DeleteShareGroupOffsets: only while the group has no members. All items of the topic go, "
        "dead letters, too; a member that names it next starts again.",
    )
    def delete(self, request: Request, group_id: str) -> Response:
        """Forget."""
        topics = list(dict.fromkeys(self.query(s.ForgottenQuery)["topic"]))
        self.require(self.group_id)
        principal = self.principal
        results = self.service(lambda runtime: runtime.get(ItemOperators).delete(self.group_id, topics, principal))
        entries = [{"topic": topic, **_result(error)} for topic, error in results.items()]
        return Response(shown(s.ForgottenTopics, {"topics": entries}))


def _result(error: Error) -> dict[str, Any]:
    return {"error_code": error.code, "error": error.name}
