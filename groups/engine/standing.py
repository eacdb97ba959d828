"""What this process knows, without a query, of itself as a node and of the others: for /readyz and /metrics.

Source: http-api.md 5.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

from groups.core.shards import ShardState
from groups.engine.agent import NodeAgent
from groups.engine.heartbeats import Lease
from groups.nodes.directory import NodeDirectory, node_name
from groups.nodes.hosting import Hosting
from kcoord.door.http.health import Check
from kcoord.metrics import COORDINATOR_PARTITIONS, LIVE_NODES, NODE_LEASE, RENEWAL_AGE
from kcoord.process.runtime import Runtime
from kcoord.setting_table import LEASE

STATES = ("active", "loading", "unowned")


@dataclass(frozen=True, slots=True)
class Sight:
    """The cluster as a node sees it: live nodes, and how many partitions are in each of STATES."""

    nodes: int
    partitions: Mapping[str, int]

    @property
    def unowned(self) -> int:
        """Partitions without a live owner."""
        return self.partitions["unowned"]


def renewal_age(runtime: Runtime) -> float | None:
    """Seconds since the last renewal of this process's lease; None: it never had one."""
    lease_until = runtime.get(Lease).until
    if not lease_until:
        return None
    return max(time.monotonic() - (lease_until - runtime.config.int(LEASE) / 1000), 0.0)


def sight(runtime: Runtime) -> Sight | None:
    """What the last renewal saw, with the leases that have run out since; None: this process is not a node now."""
    age, view, me = renewal_age(runtime), runtime.get(NodeDirectory).view, runtime.get(NodeAgent).incarnation
    if age is None or view is None or me is None:
        return None
    shards = runtime.get(Hosting).shards
    now = view.now + age * 1000
    live = {node.id for node in view.nodes if node.expires_at > now}
    counts = dict.fromkeys(STATES, 0)
    for found in view.partitions:
        own = shards.get(found.partition) if found.owner == me else None
        # The view is from before this node loaded what it had got.
        state = own.state if own else found.state
        active = "active" if state == ShardState.ACTIVE.value else "loading"
        counts[active if found.owner in live else "unowned"] += 1
    return Sight(len(live), counts)


def checks(runtime: Runtime) -> Mapping[str, Check]:
    """What /readyz says of nodes; nothing in a process that does not try to be one."""
    if not runtime.get(Hosting).is_node:
        return {}
    return {"node": _node(runtime), "owners": _owners(runtime)}


def _node(runtime: Runtime) -> Check:
    """Without a lease a server still serves members, unless only owners do (`coordinator.routing`)."""
    agent, hosting = runtime.get(NodeAgent), runtime.get(Hosting)
    name = node_name(runtime.config)
    if agent.holds_lease:
        total = runtime.config.int("offsets.topic.num.partitions")
        return Check(True, f"{name} owns {len(hosting.shards)} of {total} coordinator partitions")
    if agent.problem is None and renewal_age(runtime) is None:
        return Check(False, f"{name} is not registered as a node yet")
    problem = agent.problem or "its lease has ended; it registers again as soon as it can"
    if hosting.routes:
        return Check(False, f"{name} is not a node now and answers for no group: {problem}")
    return Check(True, f"{name} is not a node now; it serves members, but runs no timers: {problem}")


def _owners(runtime: Runtime) -> Check:
    """Always ok: taking servers out of the rotation would not bring the owners back."""
    seen = sight(runtime)
    if seen is None:
        return Check(True, "unknown to this server, which is not a node now")
    if not seen.unowned:
        return Check(True)
    routes = runtime.get(Hosting).routes
    members = "cannot be reached" if routes else "are served"
    return Check(
        True,
        f"{seen.unowned} of {sum(seen.partitions.values())} coordinator partitions have no live owner: members of "
        f"their groups {members}, and none of them expires until a node takes over",
    )


def measure(runtime: Runtime) -> None:
    """Set the gauges of /metrics."""
    if not runtime.get(Hosting).is_node:
        seen, age, lease = None, None, False
    else:
        seen, age, lease = sight(runtime), renewal_age(runtime), runtime.get(NodeAgent).holds_lease
    NODE_LEASE.set(int(lease))
    RENEWAL_AGE.set(math.nan if age is None else age)
    LIVE_NODES.set(math.nan if seen is None else seen.nodes)
    for state in STATES:
        COORDINATOR_PARTITIONS.labels(state).set(math.nan if seen is None else seen.partitions[state])
