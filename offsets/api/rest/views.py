"""Committed offsets of a group, for people and scripts (http-api.md 4)."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest.group_views import NAMED, NamedGroupView
from kcoord.access.rights import Resource
from kcoord.control.rest.schema import GROUP_ID, describe
from offsets.api.rest import serializers as s
from offsets.readmodel import OffsetReads


class GroupOffsetsView(NamedGroupView):
    """`/v1/groups/{group_id}/offsets`."""

    @describe(
        "listGroupOffsets",
        "Get the committed offsets and lag of a group",
        tag="offsets",
        path=[GROUP_ID],
        query=s.OffsetQuery,
        response=s.CommittedPage,
        errors=NAMED,
        description="Lag is computed from the watermarks that producers or probes report; it is never negative. "
        "Topics that the caller may not describe are left out.",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """A page of committed offsets."""
        query = self.query(s.OffsetQuery)
        visible = self.visible(Resource.TOPIC)
        page = self.service(lambda runtime: runtime.get(OffsetReads).committed(self.group_id, **query, visible=visible))
        return self.listed(s.CommittedPage, "offsets", page, group_id=self.group_id)
