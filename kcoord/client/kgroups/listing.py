"""--list (offsets.md 13.2)."""

from __future__ import annotations

from collections.abc import Sequence

from kcoord.client.kgroups.answers import GroupLine
from kcoord.client.kgroups.api import Api
from kcoord.client.kgroups.arguments import Arguments
from kcoord.client.kgroups.output import Column, Output, cell, render

SHOWN_PROTOCOL_TYPES = ("", "consumer")
"""Groups of another protocol type, such as `connect`, are not consumer groups; "" is that of simple groups."""
SHARE = "share"
"""The type, and the protocol type, of groups that are listed when they are asked for."""

BESIDE_LONGEST = 10


def consumer_groups(
    api: Api,
    states: Sequence[str] = (),
    types: Sequence[str] = (),
    verdicts: Sequence[str] = (),
    labels: Sequence[str] = (),
) -> list[GroupLine]:
    """The selected groups, by id."""
    found = api.groups(states, types, verdicts, labels)
    shown = (*SHOWN_PROTOCOL_TYPES, *(SHARE for wanted in types if wanted.lower() == SHARE))
    return [group for group in found if group.protocol_type in shown]


def list_groups(arguments: Arguments, api: Api, output: Output) -> None:
    """Print the groups; as a table if states, types or verdicts were requested."""
    filters = arguments.states or (), arguments.types or (), arguments.verdicts or ()
    found = consumer_groups(api, *filters, arguments.label)
    if arguments.states is None and arguments.types is None and arguments.verdicts is None:
        for group in found:
            output.line(cell(group.group_id))
        return
    longest = max((len(cell(group.group_id)) for group in found), default=0)
    columns = [Column("GROUP", max(15, longest) + BESIDE_LONGEST)]
    if arguments.types is not None:
        columns.append(Column("TYPE", 20))
    if arguments.states is not None:
        columns.append(Column("STATE", 20))
    if arguments.verdicts is not None:
        columns.append(Column("VERDICTS", 20))
    for line in render(columns, [_row(group, arguments) for group in found]):
        output.line(line)


def _row(group: GroupLine, arguments: Arguments) -> list[str]:
    row = [group.group_id]
    if arguments.types is not None:
        row.append(group.type.capitalize())
    if arguments.states is not None:
        row.append(group.state)
    if arguments.verdicts is not None:
        row.append(",".join(verdict.verdict for verdict in group.verdicts) or "-")
    return row
