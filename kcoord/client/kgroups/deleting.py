"""--delete and --delete-offsets (offsets.md 13.6)."""

from __future__ import annotations

from collections.abc import Iterable

from kcoord.client.kgroups.answers import DeletedGroup
from kcoord.client.kgroups.api import Api
from kcoord.client.kgroups.arguments import Arguments
from kcoord.client.kgroups.groups import wanted_groups
from kcoord.client.kgroups.output import Column, Output, reason, render
from kcoord.client.kgroups.scope import TopicScope
from kcoord.protocol.errors import BY_CODE, Error, ProtocolError

_COLUMNS = [Column("TOPIC", 15, grows=True), Column("PARTITION", 10), Column("STATUS", 15)]

SUCCESSFUL = "Successful"

Results = dict[tuple[str, int | None], str]
"""Status by topic and partition; None: no partition of the topic is known."""


def delete_groups(arguments: Arguments, api: Api, output: Output) -> None:
    """Delete groups and print the results."""
    group_ids = wanted_groups(api, arguments.groups)
    if not group_ids:
        output.line("There are no consumer groups.")
        return
    results = api.delete_groups(group_ids)
    deleted = _quoted(result.group_id for result in results if result.error_code == Error.NONE.code)
    failed = [result for result in results if result.error_code != Error.NONE.code]
    if not failed:
        output.line(f"Deletion of requested consumer groups ({deleted}) was successful.")
        return
    lines = [f"* Group '{result.group_id}' could not be deleted due to: {_why(result)}" for result in failed]
    output.error("Deletion of some consumer groups failed:", *lines)
    if deleted:
        output.line(f"\nThese consumer groups were deleted successfully: {deleted}")


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _why(result: DeletedGroup) -> str:
    return f"{result.error}: {result.detail or _help(result.error_code)}"


def _help(code: int) -> str:
    return BY_CODE.get(code, Error.UNKNOWN_SERVER_ERROR).value.help


def delete_offsets(arguments: Arguments, api: Api, output: Output) -> None:
    """Delete offsets of one group and print a table of the results."""
    assert arguments.groups is not None, "the arguments were checked"
    (group_id,) = arguments.groups
    results: Results = {}
    wanted: dict[str, list[int]] = {}
    try:
        wanted = _committed(api, group_id) if arguments.topics is None else _named(api, arguments.topics, results)
        for topic in api.delete_offsets(group_id, wanted) if wanted else ():
            for partition in topic.partitions:
                results[topic.name, partition.partition] = _status(partition.error_code)
    except ProtocolError as error:
        output.error(f"Offsets of group '{group_id}' could not be deleted: {reason(error)}")
        results |= {(topic, partition): _status(error.error.code) for topic in wanted for partition in wanted[topic]}
    else:
        _sum_up(group_id, results, output)
    rows = sorted(results.items(), key=lambda item: (item[0][0], -1 if item[0][1] is None else item[0][1]))
    if rows:
        output.table(render(_COLUMNS, [(*partition, status) for partition, status in rows]))


def _committed(api: Api, group_id: str) -> dict[str, list[int]]:
    """Every partition on which the group has committed an offset."""
    found: dict[str, list[int]] = {}
    for offset in api.committed(group_id):
        found.setdefault(offset.topic, []).append(offset.partition)
    return found


def _named(api: Api, topics: tuple[TopicScope, ...], results: Results) -> dict[str, list[int]]:
    """The named partitions; a topic that has none goes to the results."""
    found: dict[str, list[int]] = {}
    for scope in topics:
        try:
            found[scope.topic] = api.partitions(scope.topic) if scope.partitions is None else list(scope.partitions)
        except ProtocolError as error:
            results[scope.topic, None] = _status(error.error.code)
    return found


def _status(code: int) -> str:
    if code == Error.NONE.code:
        return SUCCESSFUL
    return f"Error: {BY_CODE.get(code, Error.UNKNOWN_SERVER_ERROR).name}: {_help(code)}"


def _sum_up(group_id: str, results: Results, output: Output) -> None:
    if any(status != SUCCESSFUL for status in results.values()):
        output.error(f"Not all offsets of group '{group_id}' could be deleted; each has its status below.")
    elif results:
        output.line(f"The offsets of group '{group_id}' were deleted.")
    else:
        output.line(f"Group '{group_id}' has no committed offsets.")
