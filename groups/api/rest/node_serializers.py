"""Responses of the node endpoints."""

from __future__ import annotations

from typing import Annotated

from groups.models import CoordinatorPartition
from groups.nodes.overview import NodeView, PartitionChangeView
from kcoord.control.rest.answers import Answer, Instant, Natural, Natural32, doc, one_of
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
