"""The labels of a group (http-api.md 4).

They exist whether or not the group does. Reading requires `describe` on the group, changing requires `admin`.
"""

from __future__ import annotations

from typing import Annotated

from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest.description import LabelsOfGroup
from groups.api.rest.group_views import NAMED, NamedGroupView
from groups.labels import GroupLabels, Labelled
from kcoord.access.rights import Permission
from kcoord.control.rest.answers import Answer, Instant, doc, shown
from kcoord.control.rest.fields import LabelChanges, StrictSerializer
from kcoord.control.rest.labels import MAX_LABELS
from kcoord.control.rest.schema import GROUP_ID, describe
from kcoord.protocol.errors import Error

_EXAMPLE = {"labels": {"owner": "payments", "runbook": "https://wiki.example.com/billing", "team": None}}


class GroupLabelsChange(StrictSerializer):
    """The labels to change."""

    labels = LabelChanges(help_text="Omitted ones stay unchanged, null removes one.")


class GroupLabelsView(Answer):
    """All labels of a group."""

    group_id: str
    labels: LabelsOfGroup
    updated_at: Annotated[Instant | None, doc("The last change; null: the group has no labels.")]
    updated_by: Annotated[str | None, doc("Who made it.")]


class GroupLabelsEndpoint(NamedGroupView):
    """`/v1/groups/{group_id}/labels`."""

    @describe(
        "getGroupLabels",
        "Get the labels of a group",
        tag="groups",
        takes=Permission.DESCRIBE_GROUP,
        path=[GROUP_ID],
        response=GroupLabelsView,
        errors=NAMED,
        description="Names and values that people gave the group, whether it exists or not.",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """All labels."""
        self.query()
        return self._answer(self.service(lambda runtime: runtime.get(GroupLabels).describe(self.group_id)))

    @describe(
        "updateGroupLabels",
        "Change labels of a group",
        tag="groups",
        takes=Permission.ADMIN_GROUP,
        audit="group.labels",
        path=[GROUP_ID],
        request=GroupLabelsChange,
        response=GroupLabelsView,
        errors=(*NAMED, Error.GROUP_AUTHORIZATION_FAILED),
        description="Changes all of them or none; the answer has all labels. The group does not have to exist, and its "
        "labels survive its deletion. By convention `owner` and `team` say whose group it is, `contact` whom to call "
        f"and `runbook` what to do; the dashboard shows these first. A group has at most {MAX_LABELS} labels.",
        examples=[OpenApiExample("Set two, remove another", _EXAMPLE, request_only=True)],
    )
    def patch(self, request: Request, group_id: str) -> Response:
        """Set and remove labels."""
        self.query()
        changes = self.given(GroupLabelsChange)["labels"]
        self.require(self.group_id)
        name = self.principal.name
        return self._answer(
            self.service(lambda runtime: runtime.get(GroupLabels).alter(self.group_id, changes, updated_by=name))
        )

    def _answer(self, found: Labelled) -> Response:
        content = {
            "group_id": self.group_id,
            "labels": found.labels,
            "updated_at": found.updated_at,
            "updated_by": found.updated_by,
        }
        return Response(shown(GroupLabelsView, content))
