"""What a caller that may not describe all topics sees of groups: as if the other topics did not exist.

Source: http-api.md 7. `kcoord.access.rights` determines which topics those are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groups.core.model.events import MOST_TOPICS, EventKind
from kcoord.rest.paging import Visible

_OF_ALL_TOPICS: Mapping[str, str] = {
    EventKind.MEMBER_RECONCILED.value: "partitions",
    EventKind.REGEXES_RESOLVED.value: "topics",
    EventKind.TARGET_FAILED.value: "reason",
    EventKind.REBALANCE_STARTED.value: "reason",
    EventKind.MEMBER_LEFT.value: "reason",
}
"""What a kind of event counts over all topics of a group, or quotes from an assignor or a client: those of Kafka's
clients name topics.
"""


def seen_detail(kind: str, detail: Mapping[str, Any], visible: Visible) -> Mapping[str, Any]:
    """The detail of an event without names of topics outside `visible`, and without counts that include such topics.

    A truncated list of topics may continue with such topics, so the number of its partitions is left out.
    """
    if visible.unlimited:
        return detail
    seen = {name: value for name, value in detail.items() if name != _OF_ALL_TOPICS.get(kind)}
    topics = seen.get("topics")
    if isinstance(topics, list):
        seen["topics"] = [topic for topic in topics if topic in visible]
        if len(topics) >= MOST_TOPICS or len(seen["topics"]) < len(topics):
            seen.pop("partitions", None)
    if "topic" in seen and seen["topic"] not in visible:
        del seen["topic"]
    return seen
