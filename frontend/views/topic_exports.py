"""The tables of a topic's page as CSV files: its partitions, and the groups that own or committed something there."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponseBase

from frontend.topics.reads import TopicGroup, TopicPartition, topic_groups_from, topic_partitions_from
from frontend.viewer import viewer_of
from frontend.views.csv_pages import all_rows, csv_file
from frontend.views.page import page
from frontend.views.topic import no_such_topic
from frontend.wording import iso_if_known
from kcoord.process import bridge
from kcoord.process.runtime import Runtime


@page
def partitions_csv(request: HttpRequest, name: str) -> HttpResponseBase:
    """All partitions of a topic with their watermarks."""
    viewer = viewer_of(request)

    async def read(runtime: Runtime, first: int | None) -> tuple[Sequence[TopicPartition], int | None]:
        return await topic_partitions_from(runtime.db, viewer, name, first or 0)

    if not _exists(request, name):
        return no_such_topic(request, name)
    head = "partition", "log_start_offset", "log_end_offset", "watermark_at"
    rows = (
        (row.partition, row.log_start_offset, row.log_end_offset, iso_if_known(row.sampled_at))
        for row in all_rows(read)
    )
    return csv_file(f"{name}-partitions", head, rows)


@page
def groups_csv(request: HttpRequest, name: str) -> HttpResponseBase:
    """All groups on a topic, by name, with their lag there as last sampled."""
    viewer = viewer_of(request)

    async def read(runtime: Runtime, after: str | None) -> tuple[Sequence[TopicGroup], str | None]:
        return await topic_groups_from(runtime.db, viewer, name, after)

    if not _exists(request, name):
        return no_such_topic(request, name)
    head = (
        "group_id", "type", "state", "lag", "largest_lag_of_a_partition", "time_lag_ms", "lag_sampled_at", "owned",
        "committed",
    )  # fmt: skip
    rows = (
        (
            row.group_id, row.type, row.state, row.lag, row.max_lag, row.time_lag_ms, iso_if_known(row.sampled_at),
            row.owned, row.committed,
        )
        for row in all_rows(read)
    )  # fmt: skip
    return csv_file(f"{name}-groups", head, rows)


def _exists(request: HttpRequest, name: str) -> bool:
    viewer = viewer_of(request)
    if "\0" in name or not viewer.sees_topic(name):
        return False
    return bridge.call(lambda runtime: topic_partitions_from(runtime.db, viewer, name, 0, 1)) != ((), None)
