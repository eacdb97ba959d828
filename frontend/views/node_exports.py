"""The tables of the page of nodes as CSV files: nodes, coordinator partitions, and changes of their owners."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase

from frontend.allowed import SEE_CLUSTER, require
from frontend.views.csv_pages import MOST_ROWS, csv_file
from frontend.views.page import page
from frontend.wording import iso, iso_if_known, ranges
from groups.nodes.overview import NodeOverviews
from kcoord.process import bridge


@page
def nodes_csv(request: HttpRequest) -> HttpResponseBase:
    """All runs of server processes that are remembered: live ones, then those that ended last."""
    require(request, SEE_CLUSTER)
    found = bridge.call(lambda runtime: runtime.get(NodeOverviews).read(0, MOST_ROWS))
    head = (
        "node", "incarnation", "url", "release", "live", "started_at", "last_renewal_at", "lease_expires_at",
        "ended_at", "end_reason", "partitions",
    )  # fmt: skip
    rows = (
        (
            node.node_id, node.incarnation, node.url, node.version, node.live, iso(node.started_at),
            iso(node.last_seen_at), iso(node.lease_expires_at), iso_if_known(node.ended_at), node.end_reason,
            ranges(node.partitions),
        )
        for node in found.nodes
    )  # fmt: skip
    return csv_file("nodes", head, rows)


@page
def coordinator_partitions_csv(request: HttpRequest) -> HttpResponseBase:
    """All coordinator partitions."""
    require(request, SEE_CLUSTER)
    found = bridge.call(lambda runtime: runtime.get(NodeOverviews).read(0))
    head = "partition", "state", "node", "incarnation", "epoch", "since", "load_ms"
    rows = (
        (one.partition, one.state, one.node_id, one.incarnation, one.epoch, iso(one.since), one.load_ms)
        for one in found.partitions
    )
    return csv_file("coordinator-partitions", head, rows)


@page
def hand_overs_csv(request: HttpRequest) -> HttpResponseBase:
    """All changes of owners that are remembered, newest first, a line for each partition."""
    require(request, SEE_CLUSTER)
    found = bridge.call(lambda runtime: runtime.get(NodeOverviews).read(MOST_ROWS))
    head = "at", "partition", "from_node", "to_node", "reason", "epoch", "without_owner_ms"
    rows = (
        (iso(one.at), one.partition, one.from_node_id, one.to_node_id, one.reason, one.epoch, one.gap_ms or 0)
        for one in found.changes
    )
    return csv_file("hand-overs", head, rows)
