"""The tables of the page of a group as CSV files."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from django.http import HttpRequest, HttpResponseBase

from frontend.pages.group.reads import Limits, group_page, handovers_of
from frontend.pages.group.tables import NO_LOAD, Load
from frontend.ui.page import page
from frontend.ui.rows import Member
from frontend.ui.shown import ALL_TOPICS
from frontend.ui.table import MOST_ROWS, all_rows, csv_file, csv_of, rows_of
from frontend.ui.viewer import viewer_of
from frontend.ui.wording import iso_if_known
from groups.readmodel import unknown_group
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.rest.paging import MAX_LIMIT
from offsets.lag.service import LagReads, TopicLag
from offsets.readmodel import OffsetReads

EVERYTHING = 10_000
"""Members of a file."""


@page
def members_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The members of a group; what they own is in the file of its partitions."""
    limits = Limits(members=EVERYTHING, topics=1, cells=1, offsets=1, events=1, member_topics=1)
    viewer = viewer_of(request)
    found = bridge.call(lambda runtime: group_page(runtime.db, viewer, group_id, limits))
    if found is None:
        raise unknown_group(group_id)
    head = (
        "member_id", "group_instance_id", "client_id", "client_host", "partitions", "member_epoch", "last_heartbeat_at",
        "session_expires_at", "lag", "time_lag_ms", "records_per_minute", "counted",
    )  # fmt: skip
    loads = found.member_table.loads
    counted = viewer.topics_counted or ALL_TOPICS
    rows = ((*_member(member, loads.get(member.member_id, NO_LOAD)), counted) for member in found.members)
    return csv_file(f"{group_id}-members", head, rows)


def _member(member: Member, load: Load) -> Sequence[object]:
    return (
        member.member_id, member.instance_id, member.client_id, member.client_host, member.owned, member.member_epoch,
        iso_if_known(member.last_heartbeat_at), iso_if_known(member.session_deadline), load.lag, load.time_lag.ms,
        load.rate,
    )  # fmt: skip


@page
def offsets_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The committed offsets of a group."""
    topics = viewer_of(request).topics
    columns = """
        topic partition owner committed_offset @committed_at log_start_offset log_end_offset lag
        @watermark_at=sampled_at @expires_at metadata
    """
    found = rows_of(
        lambda runtime, cursor: runtime.get(OffsetReads).committed(
            group_id, cursor=cursor, limit=MAX_LIMIT, visible=topics
        )
    )
    return csv_of(f"{group_id}-offsets", columns, found)


@page
def lag_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """How far a group is behind on each topic, by name."""
    topics = viewer_of(request).topics

    async def read(runtime: Runtime, cursor: str | None) -> tuple[Sequence[TopicLag], str | None]:
        reads = runtime.get(LagReads)
        found = await reads.lag(group_id, partitions=False, cursor=cursor, limit=MAX_LIMIT, visible=topics)
        return found.topics, found.next_cursor

    columns = """
        topic partitions=total.partitions unknown_partitions=total.unknown_partitions lag=total.lag
        time_lag_ms=total.time_lag.ms time_lag_at_least_ms=total.time_lag.at_least_ms @watermark_at=total.sampled_at
        read deleted
    """
    return csv_of(f"{group_id}-lag", columns, all_rows(read))


@page
def handovers_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """What is changing hands in a consumer group, a line for each partition."""
    viewer = viewer_of(request)
    found = bridge.call(lambda runtime: handovers_of(runtime.db, viewer, group_id, MOST_ROWS))
    if found is None:
        raise unknown_group(group_id)
    head = "topic", "partition", "holder", "heir", "was_told", "deadline"
    rows = (
        (one.topic, partition, one.holder, one.heir, one.told, iso_if_known(one.deadline))
        for one in found
        for partition in one.partitions
    )
    return csv_file(f"{group_id}-hand-overs", head, itertools.islice(rows, MOST_ROWS))
