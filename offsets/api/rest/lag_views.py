"""How far a group is behind, now and over time (http-api.md 4).

/metrics has lag by group and topic as last sampled (`offsets.metrics`); here it is by partition, and as of now.
"""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest.group_views import NAMED, NamedGroupView
from kcoord.access.rights import Resource
from kcoord.control.rest.answers import shown
from kcoord.control.rest.schema import GROUP_ID, describe
from offsets.api.rest import lag_serializers as s
from offsets.lag.service import LagReads


class GroupLagView(NamedGroupView):
    """`/v1/groups/{group_id}/lag`."""

    @describe(
        "describeGroupLag",
        "Get the lag of a group",
        tag="offsets",
        path=[GROUP_ID],
        query=s.LagQuery,
        response=s.GroupLagView,
        errors=NAMED,
        description="Every partition that the group has committed, owns or subscribes to, with totals by topic and "
        "overall. Lag is computed from the watermarks that producers or probes report; it is never "
        "negative, and records deleted from a log do not count. Totals include partitions that are not "
        "on the page. Topics that the caller may not describe are left out, also from totals.",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """The lag of the group."""
        query = self.query(s.LagQuery)
        visible = self.visible(Resource.TOPIC)
        found = self.service(lambda runtime: runtime.get(LagReads).lag(self.group_id, **query, visible=visible))
        return Response(shown(s.GroupLagView, found))


class GroupLagHistoryView(NamedGroupView):
    """`/v1/groups/{group_id}/lag/history`."""

    @describe(
        "listGroupLag",
        "Get the past lag of a group, oldest first",
        tag="offsets",
        path=[GROUP_ID],
        query=s.LagHistoryQuery,
        response=s.LagHistoryPage,
        errors=NAMED,
        description="One sample every `lag.sample.interval.ms`. After three hours the first, the last and the "
        "largest of each quarter of an hour stay, after a day those of each hour. Samples outlive the group and are "
        "kept for `lag.sample.retention.days`. Without `topic` a sample is the total of all topics of known lag that "
        "the caller may describe; who may not describe all gets of these totals the first and last only.",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """A page of samples."""
        query = self.query(s.LagHistoryQuery)
        visible = self.visible(Resource.TOPIC)
        page = self.service(lambda runtime: runtime.get(LagReads).history(self.group_id, **query, visible=visible))
        return self.listed(s.LagHistoryPage, "samples", page, group_id=self.group_id)
