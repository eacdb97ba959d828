"""--describe (offsets.md 13.3 and 13.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kcoord.client.kgroups.answers import CommittedPartition
from kcoord.client.kgroups.api import Api
from kcoord.client.kgroups.arguments import Arguments, View
from kcoord.client.kgroups.groups import DEAD, EMPTY, STABLE, Group, Member, TopicPartition, find_group, wanted_groups
from kcoord.client.kgroups.labelling import describe_labels
from kcoord.client.kgroups.output import MISSING, Column, Output, reason, render
from kcoord.client.kgroups.truncation import note_earlier_ends
from kcoord.protocol.errors import Error, ProtocolError

Row = Sequence[object]


def describe(arguments: Arguments, api: Api, output: Output) -> None:
    """Print what was requested for each group, in the order of their ids."""
    for group_id in wanted_groups(api, arguments.groups):
        if arguments.view is View.LABELS:
            describe_labels(group_id, api, output)
            continue
        group = find_group(api, group_id, output)
        if group is None:
            continue
        match arguments.view:
            case View.OFFSETS:
                _offsets(group, arguments.verbose, api, output)
            case View.MEMBERS:
                _tell_state(group, output)
                output.table(_members(group, arguments.verbose))
            case View.STATE if _tell_state(group, output):
                output.table(_state(group, arguments.verbose))


def _tell_state(group: Group, output: Output) -> bool:
    """Print the group's state; false: the group does not exist."""
    if group.state == DEAD:
        output.error(f"Consumer group '{group.group_id}' does not exist.")
    elif group.state == EMPTY:
        output.notice(f"{group.kind} '{group.group_id}' has no active members.")
    elif group.state != STABLE:
        output.notice(f"Warning: {group.kind} '{group.group_id}' is rebalancing.")
    return group.state != DEAD


def _offsets(group: Group, verbose: bool, api: Api, output: Output) -> None:
    try:
        rows = [] if group.state == DEAD else list(_rows(group, verbose, api))
    except ProtocolError as error:
        if error.error is not Error.GROUP_ID_NOT_FOUND:
            output.error(f"The offsets of {group.kind.lower()} '{group.group_id}' could not be read: {reason(error)}")
            return
        group, rows = Group(group.group_id), []  # deleted a moment ago
    _tell_state(group, output)
    if rows:
        output.table(render(_share_columns(verbose) if group.is_share else _offset_columns(verbose), rows))
        note_earlier_ends(sorted({str(row[1]) for row in rows}), api)


def _rows(group: Group, verbose: bool, api: Api) -> Iterator[Row]:
    if not group.is_share:
        yield from _offset_rows(group, verbose, api)
        return
    for one in api.share_offsets(group.group_id):
        more = [one.end_offset, one.acquired, one.retry, one.delayed, one.dead] if verbose else []
        yield [group.group_id, one.topic, one.partition, one.start_offset, one.lag, *more]


def _share_columns(verbose: bool) -> list[Column]:
    """Those of kafka-share-groups; more of them are not in Kafka."""
    more = ("END-OFFSET", "ACQUIRED", "AGAIN", "DELAYED", "DEAD-LETTERS") if verbose else ()
    return [
        Column("GROUP", 15, grows=True),
        Column("TOPIC", 15, grows=True),
        Column("PARTITION", 10),
        Column("START-OFFSET", 15),
        *(Column(name, 15) for name in ("LAG", *more)),
    ]


def _offset_columns(verbose: bool) -> list[Column]:
    return [
        Column("GROUP", 15, grows=True),
        Column("TOPIC", 15, grows=True),
        Column("PARTITION", 10),
        *([Column("LEADER-EPOCH", 15)] if verbose else []),
        Column("CURRENT-OFFSET", 15),
        Column("LOG-END-OFFSET", 15),
        Column("LAG", 15),
        Column("CONSUMER-ID", 15, grows=True),
        Column("HOST", 15, grows=True),
        Column("CLIENT-ID"),
    ]


def _offset_rows(group: Group, verbose: bool, api: Api) -> Iterator[Row]:
    """Members with most partitions first, then committed partitions without an owner."""
    committed = {(offset.topic, offset.partition): offset for offset in api.committed(group.group_id)}
    owned = {key for member in group.members for key in member.assignment}
    ends = _log_ends(api, committed, owned)
    for member in sorted(group.members, key=lambda member: -len(member.assignment)):
        owner = (member.member_id, member.host, member.client_id)
        for key in member.assignment:
            yield _offset_row(group.group_id, key, committed.get(key), ends.get(key), owner, verbose)
    for key in sorted(committed.keys() - owned):
        yield _offset_row(group.group_id, key, committed[key], ends.get(key), (MISSING,) * 3, verbose)


def _log_ends(
    api: Api, committed: Mapping[TopicPartition, CommittedPartition], owned: set[TopicPartition]
) -> dict[TopicPartition, int]:
    """Log end offsets: included with commits, requested by topic where an owner has not committed yet."""
    ends = {key: found.log_end_offset for key, found in committed.items() if found.log_end_offset is not None}
    for topic in sorted({topic for topic, _ in owned - committed.keys()}):
        try:
            found = api.watermarks(topic)
        except ProtocolError as error:
            if error.error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            continue  # the topic was deleted, or the caller may not see it
        ends |= {(topic, mark.partition): mark.log_end_offset for mark in found}
    return ends


def _offset_row(
    group_id: str,
    key: TopicPartition,
    committed: CommittedPartition | None,
    end: int | None,
    owner: tuple[str, str, str],
    verbose: bool,
) -> Row:
    offset = None if committed is None or committed.committed_offset == -1 else committed.committed_offset
    epoch = None if committed is None or committed.committed_leader_epoch == -1 else committed.committed_leader_epoch
    # Not the API's lag, which is never negative and counts from the start of the log: Kafka's tool does neither.
    lag = None if offset is None or end is None else end - offset
    return [group_id, *key, *([epoch] if verbose else []), offset, end, lag, *owner]


def _members(group: Group, verbose: bool) -> list[str]:
    with_instance = any(member.instance_id for member in group.members)
    mixed = len({member.upgraded for member in group.members}) > 1
    columns = [
        Column("GROUP", 15, grows=True),
        Column("CONSUMER-ID", 15, grows=True),
        *([Column("GROUP-INSTANCE-ID", 17, grows=True)] if with_instance else []),
        Column("HOST", 15, grows=True),
        Column("CLIENT-ID", 15, grows=True),
        Column("#PARTITIONS", 15),
    ]
    if verbose:
        columns += [
            Column("CURRENT-EPOCH", 15),
            Column("CURRENT-ASSIGNMENT", 20, grows=True),
            Column("TARGET-EPOCH", 15),
            Column("TARGET-ASSIGNMENT", 20, grows=True),
            *([Column("UPGRADED")] if mixed else []),
        ]
    rows = [
        [
            group.group_id,
            member.member_id,
            *([member.instance_id] if with_instance else []),
            member.host,
            member.client_id,
            len(member.assignment),
            *(_verbose_member(group, member, mixed) if verbose else []),
        ]
        for member in group.members
    ]
    return render(columns, rows)


def _verbose_member(group: Group, member: Member, mixed: bool) -> Row:
    epochs_and_assignments = [
        member.epoch,
        assignment_text(member.assignment),
        group.target_epoch,
        assignment_text(member.target),
    ]
    return [*epochs_and_assignments, *([str(member.upgraded).lower()] if mixed else [])]


def assignment_text(assignment: Sequence[TopicPartition]) -> str:
    """Partitions by topic, as in `orders:0,1;payments:0`; empty for none."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(assignment):
        by_topic.setdefault(topic, []).append(partition)
    return ";".join(f"{topic}:{','.join(map(str, partitions))}" for topic, partitions in by_topic.items())


def _state(group: Group, verbose: bool) -> list[str]:
    columns = [
        Column("GROUP", 15, grows=True),
        Column("COORDINATOR (ID)", 25, grows=True),
        Column("ASSIGNMENT-STRATEGY", 20),
        Column("STATE", 20),
        *([Column("GROUP-EPOCH", 15), Column("TARGET-ASSIGNMENT-EPOCH", 25)] if verbose else []),
        Column("#MEMBERS"),
    ]
    epochs = [group.group_epoch, group.target_epoch] if verbose else []
    row = [group.group_id, group.coordinator, group.strategy, group.state, *epochs, len(group.members)]
    return render(columns, [row])
