"""Ends of logs that were reported earlier than before: notices of them, and --accept-truncation. Not in Kafka.

Source: http-api.md 3.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcoord.client.kgroups.answers import Watermark
from kcoord.client.kgroups.api import Api
from kcoord.client.kgroups.arguments import Arguments
from kcoord.client.kgroups.output import Column, Output, cell, reason, render
from kcoord.client.kgroups.scope import TopicScope
from kcoord.protocol.errors import ProtocolError

_COLUMNS = [Column("TOPIC", 15, grows=True), Column("PARTITION", 10), Column("LOG-END-OFFSET", 15)]


def note_earlier_ends(topics: Iterable[str], api: Api) -> None:
    """Say which partitions of these topics end earlier by a report that does not count; those not found have none."""
    for topic in topics:
        try:
            marks = api.watermarks(topic)
        except ProtocolError:
            continue
        for mark in marks:
            if mark.lower_end_offset is not None:
                api.notices.append(
                    f"Warning: {topic}-{mark.partition} ends at {mark.lower_end_offset} by a report of "
                    f"{cell(mark.lower_by)}, but at {mark.log_end_offset} by others: the earlier end does not count. "
                    f"If the log was truncated: --accept-truncation --topic {topic}:{mark.partition}"
                )


def accept_truncation(arguments: Arguments, api: Api, output: Output) -> None:
    """Let the earlier ends count that were reported of these partitions, and print them."""
    for scope in arguments.topics or ():
        try:
            earlier = {
                mark.partition: (min(mark.log_start_offset, mark.lower_end_offset), mark.lower_end_offset)
                for mark in api.watermarks(scope.topic)
                if mark.lower_end_offset is not None and _wanted(mark, scope)
            }
            if earlier:
                api.report_truncated(scope.topic, earlier)
        except ProtocolError as error:
            output.error(f"The ends of topic '{scope.topic}' could not be reported: {reason(error)}")
            continue
        if earlier:
            output.table(render(_COLUMNS, [(scope.topic, n, end) for n, (_, end) in sorted(earlier.items())]))
        else:
            output.notice(f"No earlier ends of topic '{scope.topic}' were reported.")


def _wanted(mark: Watermark, scope: TopicScope) -> bool:
    return scope.partitions is None or mark.partition in scope.partitions
