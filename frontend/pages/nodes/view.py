"""Nodes, coordinator partitions and their hand-overs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend.ui.page import Pace, page, show
from frontend.ui.rows import Millis
from frontend.ui.shown import shares
from frontend.ui.states import REASONS, State
from frontend.ui.table import MOST_ROWS, csv_of
from frontend.ui.viewer import SEE_CLUSTER, require
from frontend.ui.wording import duration, plural, ranges
from frontend.ui.zones import instant
from groups.nodes.directory import node_name
from groups.nodes.overview import NodeOverviews, NodeView, Overview, PartitionChangeView, SeenPartition
from kcoord.constants import RENEWAL
from kcoord.process import bridge
from kcoord.setting_table import LEASE

CELLS = 500
"""Partitions drawn; the API lists all."""
HAND_OVERS = 20
CHANGES_READ = 500
"""Enough for the hand-overs shown: one of a whole cluster is a change for each partition."""
ENDED = 10
RANGES_SHOWN = 6

NODE_STATES: Mapping[str, State] = {
    "live": State("live", "Live", "good", "It renews its lease and runs the timers of its partitions."),
    "lapsed": State("lapsed", "Lapsed", "bad", "Its lease has run out, so it may no longer act as an owner."),
    "stopped": State("stopped", "Stopped", "idle", "It handed its partitions over and left."),
}

PARTITION_STATES: Mapping[str, State] = {
    "ACTIVE": State("ACTIVE", "Active", "good", "Its owner runs the timers of its groups."),
    "LOADING": State("LOADING", "Loading", "busy", "Its new owner is taking it over; timers of its groups wait."),
    "CLOSED": State("CLOSED", "No owner", "bad", "No live node owns it; timers of its groups wait."),
}


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A node in the table. `here`: the server that shows this page. `ran`: how long, if it has ended."""

    node: NodeView
    state: State
    here: bool
    ran: str


@dataclass(frozen=True, slots=True)
class Holder:
    """Partitions with the same owner; `name` "": without one. `hidden`: how many are not drawn.

    `cells`: those that are, with their state, how long the last loading took ("" unless active), and all in words.
    """

    key: str
    name: str
    count: int
    cells: Sequence[tuple[SeenPartition, State, str, str]]
    hidden: int


@dataclass(frozen=True, slots=True)
class HandOver:
    """Partitions that changed their owner together. `gap` "": nobody had to wait."""

    at: Millis
    partitions: str
    all_partitions: str
    count: int
    before: str
    after: str
    reason: str
    meaning: str
    tone: str
    gap: str


def present_nodes(found: Overview, here: str) -> dict[str, Any]:
    """The context of the page. `here`: the name of the server that shows it."""
    registered = [node for node in found.nodes if node.ended_at is None]
    ended = [node for node in found.nodes if node.ended_at is not None][:ENDED]
    states = [one.state for one in found.partitions]
    moved = hand_overs(found.changes)
    live = sum(node.live for node in registered)
    return {
        "now": found.now,
        "summary": f"{plural(live, 'live node')}, {plural(len(states), 'coordinator partition')}",
        "nodes": [
            _node(node, here) for node in sorted(registered, key=lambda node: (not node.live, _natural(node.node_id)))
        ],
        "ended": [_node(node, "") for node in ended],
        "live_nodes": live,
        "counts": {state: states.count(state) for state in PARTITION_STATES},
        "partitions": len(states),
        "outage": _outage(found, live),
        "holders": _holders(found.partitions),
        "hand_overs": moved,
        "last": moved[0] if moved else None,
        "announcement": _announcement(live, states),
    }


def _announcement(live: int, states: Sequence[str]) -> str:
    """What a screen reader announces when it changes."""
    unowned = states.count("CLOSED")
    return f"{plural(live, 'live node')}" + (
        f", {plural(unowned, 'partition')} without a live owner" if unowned else ""
    )


def _node(node: NodeView, here: str) -> NodeLine:
    name = "live" if node.live else node.end_reason or "lapsed"
    return NodeLine(
        node=node,
        state=NODE_STATES.get(name, NODE_STATES["lapsed"]),
        here=node.live and node.node_id == here,
        ran=duration(max(node.ended_at - node.started_at, 0)) if node.ended_at is not None else "",
    )


def _outage(found: Overview, live: int) -> Mapping[str, int] | None:
    """Partitions have no live owner. `nodes`: live ones, that could take them."""
    closed = [one.since for one in found.partitions if one.state == "CLOSED"]
    total = len(found.partitions)
    return {"count": len(closed), "total": total, "since": min(closed), "nodes": live} if closed else None


def _natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Sorts `node-2` before `node-10`."""
    parts = re.split(r"(\d{1,18})", name)
    return tuple((part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts)


def _holders(partitions: Sequence[SeenPartition]) -> list[Holder]:
    held: dict[tuple[int, str], list[SeenPartition]] = {}
    for one in partitions:
        held.setdefault((one.incarnation or 0, one.node_id or ""), []).append(one)
    drawn = shares({str(key[0]): len(found) for key, found in held.items()}, CELLS)
    ordered = sorted(held, key=lambda key: (key[1] != "", _natural(key[1])))
    return [_holder(key, held[key], drawn[str(key[0])]) for key in ordered]


def _holder(key: tuple[int, str], found: Sequence[SeenPartition], width: int) -> Holder:
    cells = [_cell(one) for one in found[:width]]
    return Holder(str(key[0]), key[1], len(found), cells, len(found) - len(cells))


def _cell(one: SeenPartition) -> tuple[SeenPartition, State, str, str]:
    state = PARTITION_STATES.get(one.state, PARTITION_STATES["CLOSED"])
    load = duration(one.load_ms) if one.load_ms is not None and one.state == "ACTIVE" else ""
    took = f", its last loading took {load}" if load else ""
    title = f"Partition {one.partition}: {state.label.lower()} since {instant(one.since)}, epoch {one.epoch}{took}"
    return one, state, load, title


def hand_overs(changes: Sequence[PartitionChangeView], most: int = HAND_OVERS) -> list[HandOver]:
    """Changes, newest first, with those of one instant, cause and direction as one."""
    together: dict[tuple[object, ...], list[PartitionChangeView]] = {}
    for change in changes:
        key = (change.at, change.from_node_id, change.to_node_id, change.reason)
        together.setdefault(key, []).append(change)
    found = list(together.values())
    if len(changes) >= CHANGES_READ and len(found) > 1:
        found.pop()  # more of its partitions may not have been read
    return [_hand_over(one) for one in found[:most]]


def _hand_over(found: Sequence[PartitionChangeView]) -> HandOver:
    first = found[0]
    numbers = sorted(change.partition for change in found)
    name, meaning = REASONS.get(first.reason, (first.reason, ""))
    gaps = [change.gap_ms for change in found if change.gap_ms is not None]
    return HandOver(
        at=first.at,
        partitions=ranges(numbers, RANGES_SHOWN),
        all_partitions=ranges(numbers),
        count=len(numbers),
        before=first.from_node_id or "",
        after=first.to_node_id or "",
        reason=name,
        meaning=meaning,
        tone="bad" if first.to_node_id is None else "warn" if gaps and first.from_node_id else "idle",
        gap=duration(max(gaps)) if gaps and first.to_node_id is not None else "",
    )


@page
def node_page(request: HttpRequest) -> HttpResponse:
    """All nodes."""
    require(request, SEE_CLUSTER)
    found = bridge.call(lambda runtime: runtime.get(NodeOverviews).read(CHANGES_READ))
    config = settings.KCOORD
    context = present_nodes(found, node_name(config)) | {
        "lease_ms": config.int(LEASE),
        "renewal_ms": config.int(RENEWAL),
        "only_owners": config.only_owners,
        "stream": f"{reverse('frontend:live')}?of=nodes",
        # Leases are renewed about every second: what is older looks as if they were not.
        "pace": Pace(every_ms=2_000, gap_ms=500),
    }
    return show(request, "pages/nodes/nodes", context, section="nodes", title="Nodes")


@page
def nodes_csv(request: HttpRequest) -> HttpResponseBase:
    """All runs of server processes that are remembered: live ones, then those that ended last."""
    require(request, SEE_CLUSTER)
    found = bridge.call(lambda runtime: runtime.get(NodeOverviews).read(0, MOST_ROWS))
    columns = """
        node=node_id incarnation url release=version live @started_at @last_renewal_at=last_seen_at @lease_expires_at
        @ended_at end_reason
    """
    return csv_of("nodes", columns, found.nodes, partitions=lambda node: ranges(node.partitions))


@page
def coordinator_partitions_csv(request: HttpRequest) -> HttpResponseBase:
    """All coordinator partitions."""
    require(request, SEE_CLUSTER)
    found = bridge.call(lambda runtime: runtime.get(NodeOverviews).read(0))
    columns = "partition state node=node_id incarnation epoch @since load_ms"
    return csv_of("coordinator-partitions", columns, found.partitions)


@page
def hand_overs_csv(request: HttpRequest) -> HttpResponseBase:
    """All changes of owners that are remembered, newest first, a line for each partition."""
    require(request, SEE_CLUSTER)
    found = bridge.call(lambda runtime: runtime.get(NodeOverviews).read(MOST_ROWS))
    columns = "@at partition from_node=from_node_id to_node=to_node_id reason epoch"
    return csv_of("hand-overs", columns, found.changes, without_owner_ms=lambda one: one.gap_ms or 0)
