"""Coordinator nodes, the partitions they own and their hand-overs (architecture.md 6).

Takes `describe` on the cluster.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest import node_serializers as s
from groups.nodes.overview import CHANGES_SHOWN, NODES_SHOWN, NodeOverviews, Overview
from kcoord.access.rights import Operation
from kcoord.control.rest.answers import shown
from kcoord.control.rest.schema import describe
from kcoord.control.rest.views import ControlView
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.setting_table import ROUTING

_DENIED = (Error.CLUSTER_AUTHORIZATION_FAILED,)
_AT = "2026-01-31T12:00:00.000Z"
_NODE = {
    "node_id": "kcoord-1:8000",
    "incarnation": 17,
    "url": "http://kcoord-1:8000",
    "version": "1.4.0",
    "started_at": "2026-01-30T08:00:00.000Z",
    "last_seen_at": _AT,
    "lease_expires_at": "2026-01-31T12:00:03.000Z",
    "live": True,
    "ended_at": None,
    "end_reason": None,
    "partitions": [0, 3, 7],
}
_PARTITION = {
    "partition": 7,
    "state": "ACTIVE",
    "node_id": "kcoord-1:8000",
    "epoch": 12,
    "gap": 2,
    "since": "2026-01-31T11:48:02.310Z",
    "load_ms": 14,
}
_CHANGE = {
    "at": "2026-01-31T11:48:02.296Z",
    "partition": 7,
    "epoch": 12,
    "gap": 2,
    "from_node_id": "kcoord-2:8000",
    "to_node_id": "kcoord-1:8000",
    "reason": "lapsed",
    "gap_ms": 411,
}


async def _routing(runtime: Runtime) -> str:
    return runtime.config.str(ROUTING)


class NodesBase(ControlView):
    """Shared by both views: who may see nodes at all."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the token, then its rights."""
        super().initial(request, *args, **kwargs)
        if not self.principal.may_cluster(Operation.DESCRIBE):
            raise ProtocolError(
                Error.CLUSTER_AUTHORIZATION_FAILED, f"{self.principal.said} may not DESCRIBE the cluster"
            )

    def overview(self) -> Overview:
        """What the tables say now."""
        self.query()
        return self.service(lambda runtime: runtime.get(NodeOverviews).read())


class NodesView(NodesBase):
    """`/v1/nodes`."""

    @describe(
        "listNodes",
        "List coordinator nodes",
        tag="nodes",
        response=s.NodeList,
        errors=_DENIED,
        description="Takes `describe` on the cluster. Live nodes first, then those whose leases have run out, then "
        f"those that ended last; at most {NODES_SHOWN}. A server that restarts is listed once for each run.",
        examples=[OpenApiExample("A node", {"nodes": [_NODE], "routing": "any"}, response_only=True)],
    )
    def get(self, request: Request) -> Response:
        """Nodes that are registered, and those that ended last."""
        routing = self.service(_routing)
        return Response(shown(s.NodeList, {"nodes": self.overview().nodes, "routing": routing}))


class CoordinatorPartitionsView(NodesBase):
    """`/v1/coordinator-partitions`."""

    @describe(
        "listCoordinatorPartitions",
        "List coordinator partitions and their last hand-overs",
        tag="nodes",
        response=s.CoordinatorPartitionList,
        errors=_DENIED,
        description="Takes `describe` on the cluster. Partitions in order, and the last "
        f"{CHANGES_SHOWN} changes of their owners, newest first. Both lists are empty until a server has registered.",
        examples=[
            OpenApiExample("A partition", {"partitions": [_PARTITION], "changes": [_CHANGE]}, response_only=True)
        ],
    )
    def get(self, request: Request) -> Response:
        """All partitions, and who got which."""
        found = self.overview()
        content = {"partitions": found.partitions, "changes": found.changes}
        return Response(shown(s.CoordinatorPartitionList, content))
