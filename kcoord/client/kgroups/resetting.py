"""--reset-offsets (offsets.md 13.5), through offset plans, so that a reset can be undone.

All groups are planned before the first is changed.
"""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kcoord.client.kgroups.answers import Plan
from kcoord.client.kgroups.api import Api
from kcoord.client.kgroups.arguments import Arguments, Reset
from kcoord.client.kgroups.groups import DEAD, EMPTY, Group, find_group, wanted_groups
from kcoord.client.kgroups.options import APPLY, APPROVE, UNDO
from kcoord.client.kgroups.output import Column, Output, reason, render
from kcoord.protocol.errors import ProtocolError
from kcoord.resets.offset_file import OffsetFile, read_offset_file
from kcoord.resets.strategies import Strategy

_COLUMNS = [Column("GROUP", 30), Column("TOPIC", 30), Column("PARTITION", 10), Column("NEW-OFFSET", 15)]

FROM_ELSEWHERE = (Strategy.COPY_FROM_GROUP, Strategy.TO_COMMITTED_AT)
"""With all topics these mean those of the other group, or of the journal, not those committed now."""

PLANNED, APPLIED = "planned", "applied"

Row = tuple[str, str, int, int | None]
"""Group, topic, partition, new offset; None: the committed offset is removed."""


class Aborted(Exception):
    """Nothing was changed, and the text says why."""


@dataclass(frozen=True, slots=True)
class _Use:
    """What is done with a plan that exists: the state that it needs, and the step, as a participle for messages."""

    takes: str
    past: str
    step: Callable[[Api, str, str], None]


_USES = {
    APPROVE: _Use(PLANNED, "approved", Api.approve),
    APPLY: _Use(PLANNED, "applied", Api.apply),
    UNDO: _Use(APPLIED, "undone", Api.undo),
}


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan for one group that is yet to be applied, or only shown."""

    group_id: str
    plan: Plan


def reset_offsets(arguments: Arguments, api: Api, output: Output) -> None:
    """Plan, and with --execute apply; print the new offsets."""
    reset = arguments.reset
    assert reset is not None, "the arguments were checked"
    if reset.unasked:
        output.notice("Warning: neither --dry-run nor --execute was given: this is a dry run, nothing is changed.")
    try:
        planning = reset.plan is None
        rows = _plan(arguments, reset, api, output) if planning else _use_plan(arguments, reset, api, output)
    except Aborted as problem:
        output.error(str(problem))
        return
    if reset.export:
        for line in csv_lines(rows, names_group=arguments.groups is None or len(arguments.groups) != 1):
            output.line(line)
    else:
        output.table(render(_COLUMNS, rows))


def csv_lines(rows: Iterable[Row], *, names_group: bool) -> list[str]:
    """Rows in one of the two layouts of --from-file. A row without a new offset cannot be written there."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(row if names_group else row[1:] for row in rows if row[3] is not None)
    return text.getvalue().split("\n")[:-1]


def _plan(arguments: Arguments, reset: Reset, api: Api, output: Output) -> list[Row]:
    file = None if reset.file is None else _read(reset.file, arguments.groups)
    planned: list[Planned] = []
    for group_id in wanted_groups(api, arguments.groups):
        group = _resettable(api, group_id, output)
        if group is None or _has_nothing_to_reset(api, group, arguments, output):
            continue
        try:
            parameters = reset.parameters if file is None else {"csv": _lines_of(file, group_id)}
            topics = arguments.topics if file is None else None
            plan = api.plan(group_id, reset.strategy, topics, parameters, reset.reason)
        except ProtocolError as error:
            if reset.strategy == Strategy.SHIFT_BY:
                raise Aborted(f"No group was reset, because of group '{group_id}': {reason(error)}") from None
            output.error(f"Group '{group_id}' cannot be reset: {reason(error)}")
            continue
        planned.append(Planned(group_id, plan))
    return _carried_out(planned, reset.execute, api, output)


def _carried_out(planned: Sequence[Planned], execute: bool, api: Api, output: Output) -> list[Row]:
    """The rows of the plans, applied if requested; a refused plan contributes none."""
    rows: list[Row] = []
    for one in planned:
        for line in one.plan.partitions:
            if line.note:
                output.notice(f"{one.group_id}: {line.topic}-{line.partition}: {line.note}")
        if execute:
            try:
                api.apply(one.group_id, one.plan.id)
            except ProtocolError as error:
                output.error(f"Group '{one.group_id}' was not reset: {reason(error)}")
                continue
            output.notice(_applied(one.group_id, one.plan.id))
        rows += [(one.group_id, line.topic, line.partition, line.new_offset) for line in one.plan.partitions]
    return rows


def _applied(group_id: str, plan_id: str) -> str:
    undo = f"--reset-offsets --group {shlex.quote(group_id)} --undo {plan_id} --execute"
    return f"{group_id}: plan {plan_id} was applied; undo it with: kgroups {undo}"


def _resettable(api: Api, group_id: str, output: Output) -> Group | None:
    """The group, if it has no members or does not exist; else None, after an error was printed."""
    group = find_group(api, group_id, output)
    if group is None or group.state in (EMPTY, DEAD):
        return group
    output.error(f"Offsets of group '{group_id}' can only be reset while it is inactive; its state is {group.state}.")
    return None


def _has_nothing_to_reset(api: Api, group: Group, arguments: Arguments, output: Output) -> bool:
    """All topics are selected, and the group has committed on none: not an error, as in Kafka."""
    assert arguments.reset is not None, "the arguments were checked"
    if group.is_share or arguments.topics is not None or arguments.reset.strategy in FROM_ELSEWHERE:
        return False
    try:
        nothing = group.state == DEAD or not api.committed(group.group_id)
    except ProtocolError as error:
        output.error(f"The offsets of group '{group.group_id}' could not be read: {reason(error)}")
        return True
    if nothing:
        output.notice(f"Group '{group.group_id}' has no committed offsets: there is nothing to reset.")
    return nothing


def _read(path: str, groups: Sequence[str] | None) -> OffsetFile:
    """The file of --from-file. Raises Aborted naming every malformed line."""
    try:
        file = read_offset_file(Path(path).read_text(encoding="utf-8"))
        file.refuse_bad_lines()
    except OSError as error:
        raise Aborted(f"The file {path!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Aborted(f"The file {path!r} cannot be read: not UTF-8 at byte {error.start}") from None
    except ProtocolError as error:
        raise Aborted(f"The file {path!r} cannot be used: {error.detail.removeprefix('csv: ')}") from None
    if not file.names_groups and (groups is None or len(groups) != 1):
        raise Aborted(
            f"The file {path!r} does not name groups: use exactly one --group, or lines group,topic,partition,offset"
        )
    return file


def _lines_of(file: OffsetFile, group_id: str) -> str:
    """A file's content for one group, as the HTTP API takes it. Raises ProtocolError if it has none."""
    lines = file.of_group(group_id)
    rows: list[Row] = [(group_id, topic, partition, offset) for (topic, partition), offset in lines.items()]
    return "\n".join(csv_lines(rows, names_group=False))


def _use_plan(arguments: Arguments, reset: Reset, api: Api, output: Output) -> list[Row]:
    """Approve, apply or undo a plan with --execute; the offsets that it sets, or restores."""
    assert arguments.groups is not None, "the arguments were checked"
    assert reset.plan is not None, "the arguments were checked"
    (group_id,), use = arguments.groups, _USES[reset.strategy]
    try:
        plan = api.find_plan(group_id, reset.plan)
        if reset.execute:
            use.step(api, group_id, plan.id)
            done = f"{group_id}: plan {plan.id} was {use.past}."
            output.notice(_applied(group_id, plan.id) if reset.strategy == APPLY else done)
        elif plan.state != use.takes:
            raise Aborted(f"Plan {plan.id} cannot be {use.past}: its state is {plan.state}.")
    except ProtocolError as error:
        raise Aborted(f"Plan {reset.plan!r} of group '{group_id}' cannot be {use.past}: {reason(error)}") from None
    undoing = reset.strategy == UNDO
    return [
        (group_id, line.topic, line.partition, line.old_offset if undoing else line.new_offset)
        for line in plan.partitions
    ]
