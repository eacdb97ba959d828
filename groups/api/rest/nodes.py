"""Coordinator nodes, the partitions they own and their hand-overs (architecture.md 6).

Takes `describe` on the cluster.
"""

from __future__ import annotations

from typing import Annotated, Any

from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from groups.models import CoordinatorPartition
from groups.nodes.overview import CHANGES_SHOWN, NODES_SHOWN, NodeOverviews, NodeView, Overview, PartitionChangeView
from kcoord.access.rights import Operation, Permission
from kcoord.control.rest.answers import Answer, Instant, Natural, Natural32, doc, one_of, shown
from kcoord.control.rest.schema import describe
from kcoord.control.rest.views import ControlView
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from kcoord.setting_table import BY_NAME, ROUTING


class NodeList(Answer):
    """Nodes."""

    nodes: list[NodeView]
    routing: Annotated[
        str,
        one_of(
            BY_NAME[ROUTING].choices,
            "any: every node answers for every group. owner: only the owner of a group's partition.",
        ),
    ]


class CoordinatorPartitionView(Answer):
    """A coordinator partition: the groups whose ids hash to its number."""

    partition: Natural32
    state: Annotated[
        str,
        one_of(CoordinatorPartition.State.values, "CLOSED: no live node owns it, and no member of its groups expires."),
    ]
    node_id: Annotated[str | None, doc("The live node that owns it; null: none does.")]
    epoch: Annotated[int, doc("Grows with every change of the owner.")]
    gap: Annotated[int, doc("Grows whenever sessions could not be counted and started over.")]
    since: Annotated[Instant, doc("Since when it has been in this state.")]
    load_ms: Annotated[Natural | None, doc("How long its last loading took, in ms; null: it was never loaded.")]


class CoordinatorPartitionList(Answer):
    """Partitions in order, and the changes of their owners, newest first."""

    partitions: list[CoordinatorPartitionView]
    changes: list[PartitionChangeView]


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
        self.principal.require_cluster(Operation.DESCRIBE)

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
        takes=Permission.DESCRIBE_CLUSTER,
        response=NodeList,
        errors=_DENIED,
        description="Takes `describe` on the cluster. Live nodes first, then those whose leases have run out, then "
        f"those that ended last; at most {NODES_SHOWN}. A server that restarts is listed once for each run.",
        examples=[OpenApiExample("A node", {"nodes": [_NODE], "routing": "any"}, response_only=True)],
    )
    def get(self, request: Request) -> Response:
        """Nodes that are registered, and those that ended last."""
        routing = self.service(_routing)
        return Response(shown(NodeList, {"nodes": self.overview().nodes, "routing": routing}))


class CoordinatorPartitionsView(NodesBase):
    """`/v1/coordinator-partitions`."""

    @describe(
        "listCoordinatorPartitions",
        "List coordinator partitions and their last hand-overs",
        tag="nodes",
        takes=Permission.DESCRIBE_CLUSTER,
        response=CoordinatorPartitionList,
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
        return Response(shown(CoordinatorPartitionList, content))
