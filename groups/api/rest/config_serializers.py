"""Request and response of a group's settings endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta
from rest_framework import serializers

from groups.configs import GROUP_SETTINGS, GroupSetting, Source
from kcoord.control.rest.answers import SCHEMAS, Answer, Instant, doc, one_of, reference
from kcoord.control.rest.fields import Number, Text
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
