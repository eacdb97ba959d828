"""The settings that a group overrides (http-api.md 4).

They exist whether or not the group does. Reading requires `describe` on the group, changing requires `admin`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from drf_spectacular.utils import OpenApiExample
from msgspec import Meta
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest.group_views import NAMED, NamedGroupView
from groups.configs import GROUP_SETTINGS, Entry, GroupConfigs, GroupSetting, Source
from kcoord.access.rights import Permission
from kcoord.control.rest.answers import SCHEMAS, Answer, Instant, doc, one_of, reference, shown
from kcoord.control.rest.fields import Number, Text
from kcoord.control.rest.schema import GROUP_ID, describe
from kcoord.protocol.errors import Error
from kcoord.setting_table import INT_MAX

SCHEMAS["SettingValue"] = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
SettingValue = Annotated[Any, Meta(extra_json_schema=reference("SettingValue"))]
"""A number or a string, depending on the setting."""


class GroupSettingView(Answer):
    """A setting as a group has it."""

    name: str
    value: Annotated[SettingValue, doc("In force.")]
    source: Annotated[
        str,
        one_of(
            [source.value for source in Source],
            "group: the group overrides it; global: set for the whole server; default: neither.",
        ),
    ]
    default: Annotated[SettingValue, doc("Built in.")]
    inherited: Annotated[SettingValue, doc("The value without an override.")]
    unit: str
    minimum: Annotated[int | None, doc("Smallest value that a group may have.")]
    maximum: Annotated[int | None, doc("Largest value that a group may have.")]
    choices: Annotated[list[str], doc("Allowed values of a string; empty for a number.")]
    help: str
    updated_at: Annotated[Instant | None, doc("When the group's override was set.")]
    updated_by: Annotated[str | None, doc("Name of the token that set it.")]


class GroupConfigView(Answer):
    """All settings that a group may override."""

    group_id: str
    settings: list[GroupSettingView]


class GroupConfigChange(serializers.Serializer[Any]):
    """The settings to change; omitted ones stay unchanged, null removes the group's override."""

    # The fields are for the document: `groups.configs` checks the values, with its own error and in its own order.
    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """A field for each setting; their names have dots and cannot be declared."""
        return {setting.name: _field(setting) for setting in GROUP_SETTINGS}

    def to_internal_value(self, data: Any) -> Mapping[str, Any]:
        """The object unchanged. Raises ValidationError for anything else."""
        if not isinstance(data, Mapping):
            raise serializers.ValidationError({"non_field_errors": ["expected an object with the settings to change"]})
        return data


def _field(setting: GroupSetting) -> serializers.Field[Any, Any, Any, Any]:
    if not setting.is_number:
        return Text(required=False, allow_null=True, help_text=setting.help)
    return Number(required=False, allow_null=True, min_value=setting.least, max_value=INT_MAX, help_text=setting.help)


_EXAMPLE = {"consumer.session.timeout.ms": 50_000, "consumer.heartbeat.interval.ms": None}


class GroupConfigEndpoint(NamedGroupView):
    """`/v1/groups/{group_id}/config`."""

    @describe(
        "getGroupConfig",
        "Get the settings of a group",
        tag="groups",
        takes=Permission.DESCRIBE_GROUP,
        path=[GROUP_ID],
        response=GroupConfigView,
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
        takes=Permission.ADMIN_GROUP,
        audit="group.config",
        path=[GROUP_ID],
        request=GroupConfigChange,
        response=GroupConfigView,
        errors=(*NAMED, Error.INVALID_CONFIG, Error.GROUP_AUTHORIZATION_FAILED),
        description="Changes all of them or none. null removes the override of the group. The group does not have to "
        "exist. A change takes effect with the next heartbeat of each member, in every process.",
        examples=[OpenApiExample("Set one, remove the override of another", _EXAMPLE, request_only=True)],
    )
    def patch(self, request: Request, group_id: str) -> Response:
        """Set and remove overrides."""
        self.query()
        changes = self.given(GroupConfigChange)
        self.require(self.group_id)
        name = self.principal.name
        return self._answer(
            self.service(lambda runtime: runtime.get(GroupConfigs).alter(self.group_id, changes, updated_by=name))
        )

    def _answer(self, entries: Sequence[Entry]) -> Response:
        return Response(shown(GroupConfigView, {"group_id": self.group_id, "settings": entries}))
