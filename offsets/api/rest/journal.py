"""The history of a group's committed offsets (http-api.md 4)."""

from __future__ import annotations

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest.group_views import NAMED, NamedGroupView
from kcoord.access.rights import Permission, Resource
from kcoord.control.rest.answers import Answer, NextCursor
from kcoord.control.rest.fields import Choice, PeriodQuery, Text
from kcoord.control.rest.schema import GROUP_ID, describe
from kcoord.door.http.types import INT32_MAX
from offsets.core.types import ChangeKind
from offsets.journal.reading import KINDS, JournalFilter, JournalLineView, JournalReads


class JournalQuery(PeriodQuery):
    """Parameters of the history of a group's offsets."""

    of = "changes"
    topic = Text(required=False, max_length=249, help_text="Only this topic.")
    partition = serializers.IntegerField(
        required=False, min_value=0, max_value=INT32_MAX, help_text="Only this partition of `topic`."
    )
    kind = serializers.ListField(
        child=Choice(KINDS), required=False, max_length=len(KINDS), help_text="One of these kinds. Repeatable."
    )


class JournalPage(Answer):
    """A page of the history, newest first."""

    group_id: str
    commits: list[JournalLineView]
    next_cursor: NextCursor


class GroupCommitsView(NamedGroupView):
    """`/v1/groups/{group_id}/commits`."""

    @describe(
        "listGroupCommits",
        "Get the commit history of a group, newest first",
        tag="offsets",
        takes=Permission.DESCRIBE_GROUP,
        path=[GROUP_ID],
        query=JournalQuery,
        response=JournalPage,
        errors=NAMED,
        description="Every change of a committed offset. The commit history outlives the group; it is kept for "
        "`offsets.journal.retention.days`. Topics that the caller may not describe are left out.",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """A page of the journal."""
        paging, query = self.filters(JournalQuery)
        kinds = query.pop("kind", None)
        wanted = JournalFilter(kinds=kinds and [ChangeKind(kind) for kind in kinds], **query)
        visible = self.visible(Resource.TOPIC)
        page = self.service(
            lambda runtime: runtime.get(JournalReads).commits(self.group_id, wanted, **paging, visible=visible)
        )
        return self.listed(JournalPage, "commits", page, group_id=self.group_id)
