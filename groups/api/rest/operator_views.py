"""What operators do to the members of a group (http-api.md 4). All of it requires `kick` on the group."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest import operator_serializers as s
from groups.api.rest.group_views import NAMED, NamedGroupView
from groups.core.model.replies import Done, HoldReply
from groups.engine.service import GroupService
from kcoord.access.rights import Permission
from kcoord.control.rest.answers import shown
from kcoord.control.rest.schema import GROUP_ID, Name, describe
from kcoord.control.rest.views import path_name
from kcoord.door.http import problem
from kcoord.protocol.errors import Error, ProtocolError

MEMBER_ID = Name(
    "member_id", "Id of the member, percent-encoded.", {"type": "string", "minLength": 1, "maxLength": 300}
)

_CHANGES = (*NAMED, Error.GROUP_AUTHORIZATION_FAILED)
_REPEATED = (
    "Work in progress is repeated: records that a removed member has read and not committed are read again by the "
    "next owner of its partitions, and its commits are refused."
)


def member_id_of(raw: bytes) -> str:
    """The member id that a raw path segment stands for. Raises INVALID_REQUEST."""
    try:
        found = unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        raise problem.invalid("member_id: not percent-encoded UTF-8", "member_id") from None
    if not 1 <= len(found) <= 300 or "\0" in found:
        raise problem.invalid("member_id: must have 1 to 300 characters, without NUL", "member_id")
    return found


class HoldView(NamedGroupView):
    """`/v1/groups/{group_id}/hold`."""

    @describe(
        "holdGroup",
        "Hold a group: remove its members and let none join",
        tag="groups",
        takes=Permission.KICK_GROUP,
        audit="group.hold",
        path=[GROUP_ID],
        request=s.NewHold,
        response=s.HeldGroup,
        errors=_CHANGES,
        description="Removes all members at once and lets no member join until the hold ends, so that the offsets of a "
        f"busy group can be reset or deleted. {_REPEATED} Members receive UNKNOWN_MEMBER_ID, join again, and receive "
        "COORDINATOR_LOAD_IN_PROGRESS with Retry-After while the hold lasts: clients keep trying and come back by "
        "themselves. Commits of consumers outside the group receive the same error. The hold ends by itself. If the "
        "group is already held, the new hold replaces the old one.",
        examples=[
            OpenApiExample("Two minutes", {"duration_ms": 120_000, "reason": "reset after bug 17"}, request_only=True)
        ],
    )
    def post(self, request: Request, group_id: str) -> Response:
        """Hold the group."""
        self.query()
        given = self.given(s.NewHold)
        self.require(self.group_id)
        name = self.principal.name
        reply = self.service(
            lambda runtime: runtime.get(GroupService).hold(
                self.group_id, given["duration_ms"], principal=name, reason=given["reason"]
            )
        )
        _require_success(reply)
        content = {"group_id": self.group_id, "hold": reply.hold, "removed_members": reply.removed}
        return Response(shown(s.HeldGroup, content))

    @describe(
        "releaseHold",
        "End the hold of a group",
        tag="groups",
        takes=Permission.KICK_GROUP,
        audit="group.release",
        path=[GROUP_ID],
        response=None,
        status=204,
        errors=_CHANGES,
        description="Ends a hold early; members can join again. Has no effect on a group that is not held.",
    )
    def delete(self, request: Request, group_id: str) -> Response:
        """End the hold."""
        self.query()
        self.require(self.group_id)
        name = self.principal.name
        _require_success(self.service(lambda runtime: runtime.get(GroupService).release(self.group_id, principal=name)))
        return Response(status=204)


class KickView(NamedGroupView):
    """`/v1/groups/{group_id}/members/{member_id}/kick`."""

    @describe(
        "kickMember",
        "Remove a member from a group",
        tag="groups",
        takes=Permission.KICK_GROUP,
        audit="member.remove",
        path=[GROUP_ID, MEMBER_ID],
        request=s.Kick,
        response=None,
        status=204,
        errors=(*_CHANGES, Error.UNKNOWN_MEMBER_ID),
        description="Removes the member as if it had left: its partitions go to others. This also works for a static "
        "member that left temporarily, and for a member id that was given out and not used yet. "
        f"{_REPEATED} Its next request receives UNKNOWN_MEMBER_ID, and it may join again at once. To "
        "prevent that, stop its process or hold the group.",
        examples=[OpenApiExample("Why", {"reason": "its host hangs"}, request_only=True)],
    )
    def post(self, request: Request, group_id: str, member_id: str) -> Response:
        """Remove the member."""
        self.query()
        given = self.given(s.Kick)
        member = path_name(request, 4, member_id, member_id_of)
        self.require(self.group_id)
        name = self.principal.name
        _require_success(
            self.service(
                lambda runtime: runtime.get(GroupService).kick(
                    self.group_id, member, principal=name, reason=given["reason"]
                )
            )
        )
        return Response(status=204)


def _require_success(reply: Done | HoldReply) -> None:
    if reply.error is not Error.NONE:
        raise ProtocolError(reply.error, reply.detail)
