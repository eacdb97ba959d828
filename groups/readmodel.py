"""Read models of groups for the REST API: the events, and the terms of the list. Nothing here writes or decides.

The full description of a group comes from `GroupService.describe`; lists never load whole groups. A caller that may not
describe all topics sees events as if the other topics did not exist (http-api.md 7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Annotated, Any, Protocol

from groups.core.model.events import MOST_TOPICS, EventKind
from groups.core.model.types import Millis
from groups.states import STATES, TYPES
from kcoord.control.rest.answers import Instant, Int32, doc, one_of
from kcoord.database.paging import DEFAULT_LIMIT, EVERYTHING, Page, Visible, cut, decode_cursor, encode_cursor
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

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


Q = queries("groups")

LONGEST_REGEX = 255
"""Characters of a regular expression on group ids."""
MAX_TOPICS = 100
"""The number of topic names that the list shows per group."""


class GroupSort(str, Enum):
    """The sort orders of the list; groups that compare equal are ordered by id."""

    GROUP_ID = "group_id"
    GROUP_ID_DESCENDING = "-group_id"
    UPDATED = "-updated_at"
    UPDATED_ASCENDING = "updated_at"
    STATE = "state"
    STATE_DESCENDING = "-state"
    STATE_SINCE = "state_since"
    STATE_SINCE_DESCENDING = "-state_since"
    MEMBERS = "members"
    MEMBERS_DESCENDING = "-members"
    GENERATION = "generation_id"
    GENERATION_DESCENDING = "-generation_id"
    LAG = "lag"
    LAG_DESCENDING = "-lag"
    TIME_LAG = "time_lag_ms"
    TIME_LAG_DESCENDING = "-time_lag_ms"
    PARTITIONS = "partitions"
    PARTITIONS_DESCENDING = "-partitions"
    COORDINATOR = "coordinator"
    COORDINATOR_DESCENDING = "-coordinator"
    OWNER = "owner"
    OWNER_DESCENDING = "-owner"
    SEVERITY = "severity"


OF_ALL_TOPICS = (
    GroupSort.TIME_LAG,
    GroupSort.TIME_LAG_DESCENDING,
    GroupSort.PARTITIONS,
    GroupSort.PARTITIONS_DESCENDING,
)
"""Orders by what is known of all topics of a group together: not for callers that may not describe some."""

ON_PAGES = (
    GroupSort.PARTITIONS,
    GroupSort.PARTITIONS_DESCENDING,
    GroupSort.COORDINATOR,
    GroupSort.COORDINATOR_DESCENDING,
    GroupSort.OWNER,
    GroupSort.OWNER_DESCENDING,
)
"""Orders that the dashboard has and the API does not."""


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """Which groups to list: all conditions must hold, each with any one of its values. None: no condition.

    `states` ignore case and surrounding blanks, `types` ignore case, as in ListGroups; an unknown name matches nothing.
    `q` is a part of the group id, ignoring case, `member` a part of a member id, group instance id or client id.
    `topic`: one that members own partitions of, or on which offsets are committed. `labels` are names and values, None
    for any value: the group has the label, or some such topic has it, or one that members of a consumer group subscribe
    to by name (the subscriptions of members of a classic group are only in their bytes). `min_lag`: groups that were at
    least this many records behind when lag was last sampled; groups with unknown lag do not match. `verdicts`: groups
    that had one of these, about a visible topic or none, when they were last judged.

    `client_id` and `host` are parts of those of a member; `member`, `client_id` and `host` have to hold for the same
    one. `regex` is found in the group id (`offsets.group_patterns`). `min_time_lag_ms`: the next record to read was
    written at least this long before the last sample, on all topics; not for callers that may not describe some.

    `assignor`: a part of the name of what assigns the group's partitions, ignoring case: the protocol that a classic
    group has chosen, the assignor of the next target of a consumer group. `coordinator`: the name of the node that owns
    the group's coordinator partition; a node that has ended, or whose lease has, owns none.

    `held`: groups that an operator holds now match whatever `states` says. `well`: no group with a verdict matches.
    """

    q: str = ""
    states: Sequence[str] | None = None
    types: Sequence[str] | None = None
    topic: str | None = None
    member: str | None = None
    min_lag: int | None = None
    labels: Sequence[tuple[str, str | None]] | None = None
    verdicts: Sequence[str] | None = None
    client_id: str | None = None
    host: str | None = None
    regex: str | None = None
    min_time_lag_ms: Millis | None = None
    assignor: str | None = None
    coordinator: str | None = None
    held: bool = False
    well: bool = False

    @property
    def by_members(self) -> bool:
        """Some condition is about members."""
        return not self.member is self.client_id is self.host is None

    def parameters(self) -> dict[str, Any]:
        """In the form that the statements take."""
        return {
            "q": self.q,
            "states": _stored(self.states and [state.strip() for state in self.states], STATES),
            "types": _stored(self.types, TYPES),
            "topic": self.topic,
            "min_time_lag_ms": self.min_time_lag_ms,
            "regex": self.regex,
            "min_lag": self.min_lag,
            "verdicts": None if self.verdicts is None else list(self.verdicts),
            "assignor": self.assignor,
            "well": self.well,
        }


def _stored(given: Sequence[str] | None, known: Iterable[str]) -> list[str] | None:
    """The spellings in which names are stored; unknown names are left out. None: no condition."""
    if given is None:
        return None
    folded = {name.lower() for name in given}
    return [name for name in known if name.lower() in folded]


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """A group in a list. Instants in ms.

    `lag` in records, `time_lag_ms`, and the number of `partitions` that it owns or committed an offset on, as of
    `lag_sampled_at`, when lag was last sampled; None if they are unknown. `time_lag_at_least_ms`: where `time_lag_ms`
    is not known, because the next record is older than what is known of the log.
    `verdicts`: kinds and since when, the worst first, as of `judged_at`; None: groups were never judged. `labels`: of
    the group, not those of its topics. `held_until`: an operator keeps members out until then; may be in the past.
    `unknown_partitions`: those that it committed an offset on whose end was unknown then; they are not in `lag`.
    """

    pk: int
    group_id: str
    type: str
    state: str
    state_since: Millis
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    updated_at: Millis
    members: int
    topics: Sequence[str]
    lag: int | None
    time_lag_ms: Millis | None
    time_lag_at_least_ms: Millis | None
    partitions: int | None
    lag_sampled_at: Millis | None
    verdicts: Sequence[tuple[str, Millis]] = ()
    judged_at: Millis | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    held_until: Millis | None = None
    unknown_partitions: int = 0


@dataclass(frozen=True, slots=True)
class Holdings:
    """What a member of a consumer group owns or has to give up: partitions by topic id, topic ids by name.

    A deleted topic is still listed under its old name. `member_epoch` None: no such member exists.
    """

    member_epoch: int | None = None
    partitions: Mapping[str, frozenset[int]] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventView:
    """Something that happened to a group."""

    id: int
    at: Instant
    kind: Annotated[str, one_of([kind.value for kind in EventKind])]
    generation_id: Int32
    member_id: Annotated[str | None, doc("The member that the event is about, if any.")]
    detail: Annotated[Mapping[str, Any], doc("More about the event; the keys depend on the kind.")]


class GroupList(Protocol):
    """What lists groups. Implemented above this package, by `offsets.group_list`: it takes offsets and lag."""

    async def search(
        self,
        wanted: GroupFilter,
        *,
        sort: GroupSort,
        cursor: str | None = None,
        limit: int,
        visible: Visible,
        visible_topics: Visible,
    ) -> Page[GroupSummary]:
        """A page of the groups in `visible` that match, as if only the topics in `visible_topics` existed."""
        ...


class GroupReads:
    """What members hold, and events. Methods may raise COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db

    async def holdings(self, group_id: str, member_id: str) -> Holdings:
        """What a member of a consumer group has, according to its rows."""
        parameters = {"group_id": group_id, "member_id": member_id}
        async with self._db.connection() as connection:
            rows = await self._db.rows(connection, Q.member_holdings, parameters)
        member_epoch = None
        by_id: dict[str, frozenset[int]] = {}
        ids: dict[str, str] = {}
        for member_epoch, topic_id, name, owned in rows:  # noqa: B007 - the same in each row
            if topic_id is not None:
                by_id[topic_id] = frozenset(owned)
                ids[name] = topic_id
        return Holdings(member_epoch, by_id, ids)

    async def events(
        self,
        group_id: str,
        *,
        kinds: Sequence[str] | None = None,
        since: Millis | None = None,
        cursor: str | None = None,
        limit: int = DEFAULT_LIMIT,
        visible: Visible = EVERYTHING,
    ) -> Page[EventView]:
        """A page of what happened to a group, newest first; also for a deleted group.

        `since` in ms: nothing older. Events that concern only topics outside `visible` are left out; other events are
        shown without details of such topics (`seen.seen_detail`). Raises GROUP_ID_NOT_FOUND, INVALID_REQUEST for a
        cursor of another list.
        """
        before = None if cursor is None else decode_cursor(cursor, int)[0]
        parameters = {
            "group_id": group_id,
            "before": before,
            "kinds": kinds,
            "since": since,
            "limit": limit + 1,
            "unlimited": visible.unlimited,
            **visible.parameters(),
        }
        async with self._db.connection() as connection:
            found = await self._db.records(connection, partial(_logged, visible), Q.list_events, parameters)
            if not found and not await self._db.value(connection, Q.group_is_known, {"group_id": group_id}):
                raise unknown_group(group_id)
        events, more = cut(found, limit)
        return Page(events, encode_cursor(events[-1].id) if more else None)


def unknown_group(group_id: str) -> ProtocolError:
    """The error for a group that does not exist or that the caller may not see."""
    return ProtocolError(Error.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")


def _logged(visible: Visible, *, kind: str, detail: Mapping[str, Any], **columns: Any) -> EventView:
    return EventView(kind=kind, detail=seen_detail(kind, detail, visible), **columns)
