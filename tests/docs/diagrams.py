"""`docs/specification/states.md`: the diagrams, drawn from the edges that `states` finds, with a cause for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from frontend.pages.group.machine import CLASSIC_CAUSES, GROUP_CAUSES, NOWHERE, Edge
from tests.docs.pages import SPECIFICATION
from tests.docs.states import classic_edges, group_edges, member_edges

PATH = SPECIFICATION / "states.md"

FENCED = "FENCED_MEMBER_EPOCH"
MEMBER_CAUSES: Mapping[Edge, str] = {
    ("STABLE", "UNREVOKED_PARTITIONS"): "has to give partitions up",
    ("STABLE", "UNRELEASED_PARTITIONS"): "new target, some of it still belongs to others",
    ("UNREVOKED_PARTITIONS", "STABLE"): "gave them up, has all of the target",
    ("UNREVOKED_PARTITIONS", "UNRELEASED_PARTITIONS"): "gave them up, waits for others",
    ("UNRELEASED_PARTITIONS", "STABLE"): "the rest was released",
    ("UNRELEASED_PARTITIONS", "UNREVOKED_PARTITIONS"): "newer target, has to give partitions up",
    ("UNKNOWN", "STABLE"): "reports that it owns nothing",
    ("UNKNOWN", "UNRELEASED_PARTITIONS"): "reports that it owns nothing, waits for others",
    ("UNKNOWN", FENCED): "owns something, or does not report",
}

TEXT = """# States

Generated from the code by `python -m tests.docs`; a test fails when it is stale. `tests/docs/states.py` says how each
diagram was obtained.

## A classic group

The transition table of the core, `TRANSITIONS`. A test compares it with the table of classic.md 1. Left out is Dead:
any state may become Dead when its partition is unloaded, and nothing follows it.

{classic}

## A consumer group

The state is computed after each change (consumer.md 1.4); there is no table of transitions. These are the ones that
were seen when the conformance cases and a fixed sequence of random requests ran through the core. Each is what one
request or timer does; a bump and the computation of the target are usually one step.

{group}

## A member of a consumer group

Every step that `reconcile` takes for two partitions of one topic, over all inputs that satisfy consumer.md 1.5. A
member begins in STABLE; it may leave, be fenced or expire in any state. UNKNOWN is read from stored numbers that this
release does not know.

{member}
"""


def render() -> str:
    """The page as it should be. Raises LookupError naming an edge without a cause, or a cause without its edge."""
    return TEXT.format(
        classic=_diagram(classic_edges(), CLASSIC_CAUSES),
        group=_diagram(group_edges(), GROUP_CAUSES),
        member=_diagram(member_edges(), MEMBER_CAUSES),
    )


def _diagram(edges: Iterable[Edge], causes: Mapping[Edge, str]) -> str:
    found = set(edges)
    if found != set(causes):
        raise LookupError(f"no cause is written for {sorted(found - set(causes))}, no such edge {set(causes) - found}")
    names = sorted({name for edge in found for name in edge} - {NOWHERE})
    spaced = [f'    state "{name}" as {_id(name)}' for name in names if _id(name) != name]
    lines = [f"    {_id(before)} --> {_id(after)}: {cause}" for (before, after), cause in causes.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", *spaced, *lines, "```"])


def _id(name: str) -> str:
    return name if name == NOWHERE else name.replace(" ", "_")
