"""The history of a group's committed offsets (http-api.md 4)."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from groups.rest.group_views import NAMED, NamedGroupView
from kcoord.access.rights import Resource
from kcoord.rest.answers import shown
from kcoord.rest.schema import GROUP_ID, describe
from offsets.core.types import ChangeKind
from offsets.journal.reading import JournalFilter, JournalReads
from offsets.rest import journal_serializers as s


class GroupCommitsView(NamedGroupView):
    """`/v1/groups/{group_id}/commits`."""

    @describe(
        "listGroupCommits",
        "Get the commit history of a group, newest first",
        tag="offsets",
        path=[GROUP_ID],
        query=s.JournalQuery,
        response=s.JournalPage,
        errors=NAMED,
        description="Every change of a committed offset. The commit history outlives the group; it is kept for "
        "`offsets.journal.retention.days`. Topics that the caller may not describe are left out.",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """A page of the journal."""
        query = self.query(s.JournalQuery)
        kinds = query.get("kind")
        wanted = JournalFilter(
            topic=query.get("topic"),
            partition=query.get("partition"),
            kinds=None if kinds is None else [ChangeKind(kind) for kind in kinds],
            since=query.get("from"),
            until=query.get("to"),
        )
        visible = self.visible(Resource.TOPIC)
        page = self.service(
            lambda runtime: runtime.get(JournalReads).commits(
                self.group_id, wanted, cursor=query.get("cursor"), limit=query["limit"], visible=visible
            )
        )
        content = {"group_id": self.group_id, "commits": page.items, "next_cursor": page.next_cursor}
        return Response(shown(s.JournalPage, content))
