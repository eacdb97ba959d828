"""Which state of a group may follow which, and why: read by the page of a group's states and by the documentation.

Those of classic groups are `TRANSITIONS` of the core. Consumer groups have no such table: `tests.docs` runs requests
through the core and fails when the changes that it sees are not those named here.
"""

from __future__ import annotations

from collections.abc import Mapping

from groups.core.model.transitions import TRANSITIONS
from groups.core.model.types import GroupState

Edge = tuple[str, str]
NOWHERE = "[*]"
"""Where a life begins and ends."""
CLASSIC = "classic group"
"""What a consumer group is converted to, and made from."""

CLASSIC_CAUSES: Mapping[Edge, str] = {
    (NOWHERE, "Empty"): "first join, or a commit without a generation",
    ("Empty", NOWHERE): "deleted, by request or retention",
    ("Empty", "PreparingRebalance"): "first member",
    ("PreparingRebalance", "Empty"): "window ends, nobody is left",
    ("PreparingRebalance", "CompletingRebalance"): "everybody joined, or the window ends",
    ("CompletingRebalance", "Stable"): "the leader syncs",
    ("CompletingRebalance", "PreparingRebalance"): "join, leave, expiry",
    ("Stable", "PreparingRebalance"): "join, leave, expiry",
}
GROUP_CAUSES: Mapping[Edge, str] = {
    (NOWHERE, "Stable"): "first member",
    ("Empty", NOWHERE): "deleted, by request or retention",
    ("Empty", "Stable"): "a member joins, target computed",
    ("Empty", "Assigning"): "a member joins, target not computed yet",
    ("Empty", CLASSIC): "a JoinGroup",
    ("Assigning", "Empty"): "last member gone",
    ("Assigning", "Reconciling"): "target computed",
    ("Assigning", "Stable"): "target computed, and nobody has to move",
    ("Reconciling", "Assigning"): "the group epoch is bumped",
    ("Reconciling", "Empty"): "last member gone",
    ("Reconciling", "Stable"): "last member arrived at the target",
    ("Reconciling", CLASSIC): "only classic members are left",
    ("Stable", "Assigning"): "the group epoch is bumped",
    ("Stable", "Empty"): "last member gone",
    ("Stable", "Reconciling"): "bumped and target computed, or a static member departs",
    ("Stable", CLASSIC): "only classic members are left",
    (CLASSIC, "Reconciling"): "a consumer heartbeat joins",
    (CLASSIC, "Stable"): "a consumer heartbeat joins",
}


def classic_edges() -> set[Edge]:
    """Changes of state of a classic group; to Dead only ever by being unloaded, which diagrams leave out."""
    edges = {
        (before.value, after.value)
        for before, followers in TRANSITIONS.items()
        for after in followers
        if GroupState.DEAD not in (before, after)
    }
    return {(NOWHERE, GroupState.EMPTY.value), (GroupState.EMPTY.value, NOWHERE), *edges}
