"""Responses of the node endpoints."""

from __future__ import annotations

from typing import Annotated

from groups.models import CoordinatorNode, CoordinatorPartition, PartitionChange
from kcoord.config import BY_NAME, ROUTING
from kcoord.rest.answers import Answer, Instant, Natural, Natural32, doc, one_of


class NodeView(Answer):
    """One run of a server process as a coordinator node."""

    node_id: Annotated[str, doc("The server's name; it keeps it over restarts.")]
    incarnation: Annotated[int, doc("Number of this run; a restart has a higher one.")]
    url: Annotated[str | None, doc("Where clients reach it; null: at the address by which their requests come.")]
    version: Annotated[str, doc("The release it runs.")]
    started_at: Annotated[Instant, doc("When it registered.")]
    last_seen_at: Annotated[Instant, doc("When it last renewed its lease.")]
    lease_expires_at: Annotated[Instant, doc("When its lease runs out, or did, unless it is renewed.")]
    live: Annotated[bool, doc("Its lease has not run out.")]
    ended_at: Annotated[Instant | None, doc("When it left, or was declared dead; null: it is registered.")]
    end_reason: Annotated[
        Annotated[str, one_of(CoordinatorNode.EndReason.values)] | None,
        doc("stopped: it left. lapsed: its lease ran out."),
    ]
    partitions: Annotated[list[Natural32], doc("The coordinator partitions that it owns, ascending.")]


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


class PartitionChangeView(Answer):
    """A change of the owner of a coordinator partition."""

    at: Instant
    partition: Natural32
    epoch: Annotated[int, doc("The epoch that began.")]
    gap: int
    from_node_id: Annotated[str | None, doc("null: nobody owned it.")]
    to_node_id: Annotated[str | None, doc("null: nobody owns it.")]
    reason: Annotated[
        str,
        one_of(
            PartitionChange.Reason.values,
            "taken: nobody owned it. lapsed, stopped: how its owner ended. balanced: handed over to spread partitions "
            "evenly.",
        ),
    ]
    gap_ms: Annotated[Natural | None, doc("How long nobody owned it, in ms; null: it was handed over directly.")]


class CoordinatorPartitionList(Answer):
    """Partitions in order, and the changes of their owners, newest first."""

    partitions: list[CoordinatorPartitionView]
    changes: list[PartitionChangeView]
