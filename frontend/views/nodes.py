"""Coordinator nodes, the partitions they own, and hand-overs."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from frontend.allowed import SEE_CLUSTER, require
from frontend.nodes import presenters
from frontend.views.groups import Pace
from frontend.views.page import page, show
from groups.nodes.directory import node_name
from groups.nodes.overview import NodeOverviews
from kcoord.config import LEASE, RENEWAL
from kcoord.process import bridge


@page
def node_page(request: HttpRequest) -> HttpResponse:
    """All nodes."""
    require(request, SEE_CLUSTER)
    found = bridge.call(lambda runtime: runtime.get(NodeOverviews).read(presenters.CHANGES_READ))
    config = settings.KCOORD
    context = presenters.page(found, node_name(config)) | {
        "lease_ms": config.int(LEASE),
        "renewal_ms": config.int(RENEWAL),
        "only_owners": config.only_owners,
        "stream": f"{reverse('frontend:live')}?of=nodes",
        # Leases are renewed about every second: what is older looks as if they were not.
        "pace": Pace(every_ms=2_000, gap_ms=500),
    }
    return show(request, "nodes", context, section="nodes", title="Nodes")
