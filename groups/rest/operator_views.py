"""What operators do to the members of a group (http-api.md 4). All of it requires `kick` on the group."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from groups.core.model.replies import Done, HoldReply
from groups.engine.service import GroupService
from groups.rest import operator_serializers as s
from groups.rest.group_views import NAMED, NamedGroupView
from kcoord.access.rights import Operation
from kcoord.http import problem
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.rest.schema import GROUP_ID, Name, describe
from kcoord.rest.views import path_name

MEMBER_ID = Name(
    "member_id", "Id of the member, percent-encoded.", {"type": "string", "minLength": 1, "maxLength": 300}
)

_CHANGES = (*NAMED, Error.GROUP_AUTHORIZATION_FAILED)
_REPEATED = (
    "Work in flight is repeated: what a removed member has read and not committed is read again by whoever gets its "
    "partitions next, and its commits are refused."
)


def member_id_of(raw: bytes) -> str:
    """The member id that a raw path segment stands for. Raises INVALID_REQUEST."""
    try:
        found = unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        raise problem.invalid("member_id: is not percent-encoded UTF-8", "member_id") from None
    if not 1 <= len(found) <= 300 or "\0" in found:
        raise problem.invalid("member_id: has 1 to 300 characters, none of them NUL", "member_id")
    return found


class HoldView(NamedGroupView):
    """`/v1/groups/{group_id}/hold`."""

    @describe(
        "holdGroup",
        "Keep members out of a group for a while",
        tag="groups",
        path=[GROUP_ID],
        request=s.NewHold,
        response=s.HeldGroup,
        errors=_CHANGES,
        description="Removes all members at once and lets nobody join until the hold ends, so that the offsets of a "
        f"busy group can be set or deleted. {_REPEATED} Members are told UNKNOWN_MEMBER_ID, join again, and are "
        "answered COORDINATOR_LOAD_IN_PROGRESS with Retry-After while the hold lasts: clients keep trying and come "
        "back by themselves. Commits of consumers without a group membership are answered the same. The hold ends by "
        "itself; of a group that is held already it is replaced.",
        examples=[
            OpenApiExample("Two minutes", {"duration_ms": 120_000, "reason": "reset after bug 17"}, request_only=True)
        ],
    )
    def post(self, request: Request, group_id: str) -> Response:
        """Hold the group."""
        self.query()
        given = self.given(s.NewHold)
        self.principal.require_group(Operation.KICK, self.group_id)
        name = self.principal.name
        reply = self.service(
            lambda runtime: runtime.get(GroupService).hold(
                self.group_id, given["duration_ms"], principal=name, reason=given["reason"]
            )
        )
        _require_success(reply)
        content = {"group_id": self.group_id, "hold": reply.hold, "removed_members": reply.removed}
        return Response(s.HeldGroup(content).data)

    @describe(
        "releaseHold",
        "Let members join a group again",
        tag="groups",
        path=[GROUP_ID],
        response=None,
        status=204,
        errors=_CHANGES,
        description="Ends a hold before its time. A group that is not held stays as it is.",
    )
    def delete(self, request: Request, group_id: str) -> Response:
        """End the hold."""
        self.query()
        self.principal.require_group(Operation.KICK, self.group_id)
        name = self.principal.name
        _require_success(self.service(lambda runtime: runtime.get(GroupService).release(self.group_id, principal=name)))
        return Response(status=204)


class KickView(NamedGroupView):
    """`/v1/groups/{group_id}/members/{member_id}/kick`."""

    @describe(
        "kickMember",
        "Remove a member from a group",
        tag="groups",
        path=[GROUP_ID, MEMBER_ID],
        request=s.Kick,
        response=None,
        status=204,
        errors=(*_CHANGES, Error.UNKNOWN_MEMBER_ID),
        description="As if it had left: its partitions go to others. Also a static member that left for a while, and "
        f"an id that was handed out and not used yet. {_REPEATED} Its next request is answered UNKNOWN_MEMBER_ID, and "
        "it may join again at once: stop the process to keep it out, or hold the group.",
        examples=[OpenApiExample("Why", {"reason": "its host hangs"}, request_only=True)],
    )
    def post(self, request: Request, group_id: str, member_id: str) -> Response:
        """Remove the member."""
        self.query()
        given = self.given(s.Kick)
        member = path_name(request, 4, member_id, member_id_of)
        self.principal.require_group(Operation.KICK, self.group_id)
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
