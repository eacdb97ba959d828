"""Pins of a group: offsets that retention keeps.

They exist whether or not the group does. Reading requires `describe` on the group, changing requires `alter-offsets`;
changing the pin of a topic also requires `describe` on it.
"""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest.group_views import NAMED, NamedGroupView
from kcoord.access.rights import Permission, Resource
from kcoord.control.rest.answers import Answer, NextCursor, shown
from kcoord.control.rest.fields import PageQuery, StrictSerializer, Text
from kcoord.control.rest.schema import GROUP_ID, describe
from kcoord.protocol.errors import Error
from offsets.commits.retention.pins import MAX_PINS, PinService, PinView

MAX_REASON = 1_000


class NewPin(StrictSerializer):
    """What to keep, and why."""

    topic = Text(
        required=False,
        allow_null=True,
        default=None,
        max_length=249,
        help_text="null: all topics of the group, including future ones.",
    )
    reason = Text(
        required=False, allow_blank=True, default="", max_length=MAX_REASON, help_text="Why; shown with the pin."
    )


class PinnedQuery(StrictSerializer):
    """Selects a pin."""

    topic = Text(required=False, max_length=249, help_text="Without it: the pin of all topics.")


class PinPage(Answer):
    """A page of pins by topic, the pin of all topics first."""

    group_id: str
    pins: list[PinView]
    next_cursor: NextCursor


_CHANGES = (
    *NAMED,
    Error.GROUP_AUTHORIZATION_FAILED,
    Error.TOPIC_AUTHORIZATION_FAILED,
    Error.INVALID_TOPIC_EXCEPTION,
)
_EXAMPLE = {"topic": "orders", "reason": "kept for the audit in May"}


class GroupPinsView(NamedGroupView):
    """`/v1/groups/{group_id}/pins`."""

    @describe(
        "listPins",
        "List the pins of a group",
        tag="offsets",
        takes=Permission.DESCRIBE_GROUP,
        path=[GROUP_ID],
        query=PageQuery,
        response=PinPage,
        errors=NAMED,
        description="Topics that the caller may not describe are left out.",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """A page of pins."""
        query = self.query(PageQuery)
        visible = self.visible(Resource.TOPIC)
        page = self.service(lambda runtime: runtime.get(PinService).pins(self.group_id, **query, visible=visible))
        return self.listed(PinPage, "pins", page, group_id=self.group_id)

    @describe(
        "createPin",
        "Pin a topic of a group, or the group",
        tag="offsets",
        takes=Permission.ALTER_GROUP,
        audit="offsets.pin",
        path=[GROUP_ID],
        request=NewPin,
        response=PinView,
        errors=_CHANGES,
        description="Takes `describe` on the topic. Pinned offsets do not expire, and retention does not remove a "
        "group with a pin; both can still be deleted. Neither the group nor the topic has to exist. An existing pin "
        f"is returned unchanged. A group has at most {MAX_PINS:,} pins.",
        examples=[OpenApiExample("The offsets of one topic", _EXAMPLE, request_only=True)],
    )
    def post(self, request: Request, group_id: str) -> Response:
        """Pin."""
        self.query()
        given = self.given(NewPin)
        self.require(self.group_id)
        if given["topic"] is not None:
            self.principal.require_described(given["topic"])
        name = self.principal.name
        pin = self.service(
            lambda runtime: runtime.get(PinService).pin(
                self.group_id, given["topic"], principal=name, reason=given["reason"]
            )
        )
        return Response(shown(PinView, pin))

    @describe(
        "deletePin",
        "Remove a pin",
        tag="offsets",
        takes=Permission.ALTER_GROUP,
        audit="offsets.unpin",
        path=[GROUP_ID],
        query=PinnedQuery,
        response=None,
        status=204,
        errors=_CHANGES,
        description="Offsets that have expired meanwhile are removed by the next run of retention. Removing a pin that "
        "does not exist has no effect.",
    )
    def delete(self, request: Request, group_id: str) -> Response:
        """Remove a pin."""
        query = self.query(PinnedQuery)
        self.require(self.group_id)
        if query.get("topic") is not None:
            self.principal.require_described(query["topic"])
        name = self.principal.name
        self.service(lambda runtime: runtime.get(PinService).unpin(self.group_id, query.get("topic"), principal=name))
        return Response(status=204)
