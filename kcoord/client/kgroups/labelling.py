"""Labels of groups: --set-labels, and --describe --labels. Kafka has neither."""

from __future__ import annotations

from collections.abc import Mapping

from kcoord.client.kgroups.api import Api
from kcoord.client.kgroups.arguments import Arguments
from kcoord.client.kgroups.groups import wanted_groups
from kcoord.client.kgroups.output import Column, Output, reason, render
from kcoord.protocol.errors import ProtocolError

_COLUMNS = [Column("GROUP", 15, grows=True), Column("LABEL", 15, grows=True), Column("VALUE")]


def set_labels(arguments: Arguments, api: Api, output: Output) -> None:
    """Change the labels of each group, and print those that it has then."""
    for group_id in wanted_groups(api, arguments.groups):
        try:
            labels = api.set_labels(group_id, arguments.labels)
        except ProtocolError as error:
            output.error(f"The labels of group '{group_id}' could not be changed: {reason(error)}")
        else:
            _show(group_id, labels, output)


def describe_labels(group_id: str, api: Api, output: Output) -> None:
    """Print the labels of a group, which need not exist."""
    try:
        labels = api.labels(group_id)
    except ProtocolError as error:
        output.error(f"The labels of group '{group_id}' could not be read: {reason(error)}")
    else:
        _show(group_id, labels, output)


def _show(group_id: str, labels: Mapping[str, str], output: Output) -> None:
    if labels:
        output.table(render(_COLUMNS, [(group_id, name, value) for name, value in labels.items()]))
    else:
        output.notice(f"Group '{group_id}' has no labels.")
