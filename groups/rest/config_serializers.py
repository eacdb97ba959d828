"""Request and response of a group's settings endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from groups.configs import GROUP_SETTINGS, GroupSetting, Source
from kcoord.rest.fields import Instant, Number, Text
from kcoord.setting_table import INT_MAX


@extend_schema_field({"anyOf": [{"type": "integer"}, {"type": "string"}]}, component_name="SettingValue")
class SettingValue(serializers.Field):  # type: ignore[type-arg]
    """A number or a string, depending on the setting."""

    def to_representation(self, value: int | str) -> int | str:
        """The value unchanged."""
        return value


class GroupSettingView(serializers.Serializer[Any]):
    """A setting as a group has it."""

    name = serializers.CharField()
    value = SettingValue(help_text="In force.")
    source = serializers.ChoiceField(  # type: ignore[assignment]  # the metaclass removes it from the class
        [source.value for source in Source],
        help_text="group: the group overrides it; global: set for the whole server; default: neither.",
    )
    default = SettingValue(help_text="Built in.")
    inherited = SettingValue(help_text="The value without an override.")
    unit = serializers.CharField()
    minimum = serializers.IntegerField(allow_null=True, help_text="Smallest value that a group may have.")
    maximum = serializers.IntegerField(allow_null=True, help_text="Largest value that a group may have.")
    choices = serializers.ListField(
        child=serializers.CharField(), help_text="Allowed values of a string; empty for a number."
    )
    help = serializers.CharField()
    updated_at = Instant(allow_null=True, help_text="When the group's override was set.")
    updated_by = serializers.CharField(allow_null=True, help_text="Name of the token that set it.")


class GroupConfigView(serializers.Serializer[Any]):
    """All settings that a group may override."""

    group_id = serializers.CharField()
    settings = GroupSettingView(many=True)


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
