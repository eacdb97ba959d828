"""The settings that a group overrides (http-api.md 4).

They exist whether or not the group does. Reading requires `describe` on the group, changing requires `admin`.
"""

from __future__ import annotations

from collections.abc import Sequence

from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest import config_serializers as s
from groups.api.rest.group_views import NAMED, NamedGroupView
from groups.configs import Entry, GroupConfigs
from kcoord.access.rights import Operation
from kcoord.control.rest.answers import shown
from kcoord.control.rest.schema import GROUP_ID, describe
from kcoord.protocol.errors import Error

_EXAMPLE = {"consumer.session.timeout.ms": 50_000, "consumer.heartbeat.interval.ms": None}


class GroupConfigEndpoint(NamedGroupView):
    """`/v1/groups/{group_id}/config`."""

    @describe(
        "getGroupConfig",
        "Get the settings of a group",
        tag="groups",
        path=[GROUP_ID],
        response=s.GroupConfigView,
        errors=NAMED,
        description="Every setting that a group can override, and where its value comes from. Only groups of the "
        "consumer protocol use them; members of classic groups send their own timeouts.",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """All settings."""
        self.query()
        return self._answer(self.service(lambda runtime: runtime.get(GroupConfigs).describe(self.group_id)))

    @describe(
        "updateGroupConfig",
        "Change settings of a group",
        tag="groups",
        audit="group.config",
        path=[GROUP_ID],
        request=s.GroupConfigChange,
        response=s.GroupConfigView,
        errors=(*NAMED, Error.INVALID_CONFIG, Error.GROUP_AUTHORIZATION_FAILED),
        description="Changes all of them or none. null removes the override of the group. The group does not have to "
        "exist. A change takes effect with the next heartbeat of each member, in every process.",
        examples=[OpenApiExample("Set one, remove the override of another", _EXAMPLE, request_only=True)],
    )
    def patch(self, request: Request, group_id: str) -> Response:
        """Set and remove overrides."""
        self.query()
        changes = self.given(s.GroupConfigChange)
        self.principal.require_group(Operation.ADMIN, self.group_id)
        name = self.principal.name
        return self._answer(
            self.service(lambda runtime: runtime.get(GroupConfigs).alter(self.group_id, changes, updated_by=name))
        )

    def _answer(self, entries: Sequence[Entry]) -> Response:
        return Response(shown(s.GroupConfigView, {"group_id": self.group_id, "settings": entries}))
