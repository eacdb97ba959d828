"""The history of a group's committed offsets (http-api.md 4)."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest.group_views import NAMED, NamedGroupView
from kcoord.access.rights import Resource
from kcoord.control.rest.schema import GROUP_ID, describe
from offsets.api.rest import journal_serializers as s
from offsets.core.types import ChangeKind
from offsets.journal.reading import JournalFilter, JournalReads


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
        paging, query = self.filters(s.JournalQuery)
        kinds = query.pop("kind", None)
        wanted = JournalFilter(kinds=kinds and [ChangeKind(kind) for kind in kinds], **query)
        visible = self.visible(Resource.TOPIC)
        page = self.service(
            lambda runtime: runtime.get(JournalReads).commits(self.group_id, wanted, **paging, visible=visible)
        )
        return self.listed(s.JournalPage, "commits", page, group_id=self.group_id)
