"""Requests and responses of the group endpoints."""

from __future__ import annotations

from typing import Annotated, Any

from rest_framework import serializers

from groups.api.rest.description import LabelsOfGroup
from groups.core.model.consumer_group import ConsumerGroupState
from groups.core.model.events import EventKind
from groups.core.model.types import GroupState, VerdictKind
from groups.models import Group
from groups.readmodel import LONGEST_REGEX, MAX_TOPICS, ON_PAGES, EventView, GroupSort
from kcoord.control.rest.answers import Answer, Instant, Int32, Natural, Natural32, NextCursor, doc, error_name, one_of
from kcoord.control.rest.fields import Choice, InstantInput, PageQuery, QueryFlag, StrictSerializer, Text
from kcoord.control.rest.labels import MAX_LABEL_NAME, MAX_LABEL_VALUE
from kcoord.database.paging import INT64_MAX

MOST_FILTERS = 20
MOST_DELETED = 1_000
MOST_ID_CHARACTERS = 1_000
"""No group has a longer id, so none gets a result of its own; shorter invalid ids get the reason."""

STATES_OF_EITHER = list(dict.fromkeys([*(s.value for s in GroupState), *(s.value for s in ConsumerGroupState)]))
STATES = ", ".join(STATES_OF_EITHER)
VERDICTS = [kind.value for kind in VerdictKind]


class WantedLabel(Text):
    """A label to filter by, `name=value` or `name` alone: name and value, None for any."""

    default_error_messages = {"no_name": "write a label as name=value, or as name for any value"}

    def __init__(self) -> None:
        super().__init__(max_length=MAX_LABEL_NAME + 1 + MAX_LABEL_VALUE)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        """Name and value of a valid text. The first '=' ends the name."""
        name, equals, value = super().run_validation(data).partition("=")
        if not name:
            self.fail("no_name")
        return name, value if equals else None


class GroupQuery(PageQuery):
    """Parameters of the list of groups."""

    q = Text(
        required=False,
        default="",
        allow_blank=True,
        max_length=255,
        help_text="Part of the group id, case-insensitive.",
    )
    state = serializers.ListField(
        child=Text(max_length=64, allow_blank=True),
        required=False,
        source="states",
        max_length=MOST_FILTERS,
        help_text=f"One of these states, case-insensitive: {STATES}. Other names match nothing. Repeatable.",
    )
    type = serializers.ListField(
        child=Text(max_length=64, allow_blank=True),
        required=False,
        source="types",
        max_length=MOST_FILTERS,
        help_text=f"One of these types, case-insensitive: {', '.join(Group.Type.values)}. Repeatable.",
    )
    topic = Text(
        required=False,
        max_length=249,
        help_text="Groups whose members own partitions of this topic, or that have offsets on it.",
    )
    member = Text(
        required=False, max_length=300, help_text="Part of a member id, group instance id or client id of a member."
    )
    client_id = Text(required=False, max_length=255, help_text="Part of the client id of a member.")
    host = Text(
        required=False,
        max_length=255,
        help_text="Part of the host of a member; of the same member as `client_id` and `member`.",
    )
    regex = Text(
        required=False,
        max_length=LONGEST_REGEX,
        help_text="A regular expression that is found in the group id; `^` and `$` stand for its ends. RE2's syntax, "
        "without what Postgres reads in another way: flags other than `(?i)` at the beginning, named groups and "
        "classes such as `\\pL`. INVALID_REGULAR_EXPRESSION if it is not valid or takes longer than 2 s.",
    )
    label = serializers.ListField(  # type: ignore[assignment]  # the metaclass removes it from the class
        child=WantedLabel(),
        required=False,
        source="labels",
        max_length=MOST_FILTERS,
        help_text="Groups that have this label, or a topic with it: `name=value`, or `name` for any value. A topic "
        "counts if members own partitions of it, consumer group members subscribe to it by name, or offsets are "
        "committed on it. Repeatable.",
    )
    min_lag = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=INT64_MAX,
        help_text="Groups at least this many records behind, as of the last sample. Groups of unknown lag do not "
        "match.",
    )
    min_time_lag_ms = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=INT64_MAX,
        help_text="Groups whose next record was written at least this long before the last sample, on all topics; "
        "takes `describe` on every topic, as does the order by `time_lag_ms`.",
    )
    assignor = Text(
        required=False, max_length=255, help_text="Part of the name of what assigns partitions, case-insensitive."
    )
    held = QueryFlag(
        required=False,
        default=False,
        help_text="true: groups that an operator holds now, besides those in a `state` that is given.",
    )
    verdict = serializers.ListField(
        child=Choice(VERDICTS),
        required=False,
        source="verdicts",
        max_length=MOST_FILTERS,
        help_text="Groups that had this verdict when they were last judged. Repeatable.",
    )
    sort = Choice(
        [sort.value for sort in GroupSort if sort not in ON_PAGES],
        required=False,
        default=GroupSort.GROUP_ID.value,
        help_text="Order; groups that compare equal are ordered by id. With `-`: the largest or the latest first. "
        "`severity`: those with the worst verdict first.",
    )


class GroupVerdict(Answer):
    """Why a group needs attention."""

    verdict: Annotated[str, one_of(VERDICTS)]
    since: Instant


class GroupLine(Answer):
    """A group in the list. `protocol_name` is empty unless the group is Stable."""

    group_id: str
    type: Annotated[str, one_of(Group.Type.values)]
    state: Annotated[str, one_of(STATES_OF_EITHER)]
    state_since: Instant
    held_until: Annotated[Instant | None, doc("Until when an operator keeps members out; may be in the past.")]
    members: Annotated[Natural32, doc("Number of members.")]
    generation_id: Annotated[Natural32, doc("Of a consumer group: the group epoch.")]
    protocol_type: str
    protocol_name: str
    topics: Annotated[list[str], doc(f"Topics of which members own partitions, at most {MAX_TOPICS}.")]
    labels: LabelsOfGroup
    coordinator_partition: Natural32
    lag: Annotated[
        Natural | None,
        doc(
            "Records not read yet, on all topics, as of `lag_sampled_at`; null: unknown. `GET "
            "/v1/groups/{group_id}/lag` returns the current lag."
        ),
    ]
    unknown_partitions: Annotated[
        Natural32,
        doc("Partitions that it committed an offset on and whose end was unknown then; they are not in `lag`."),
    ]
    time_lag_ms: Annotated[
        Natural | None,
        doc("The next record to read was written so long before; null: unknown, or a topic may not be described."),
    ]
    time_lag_at_least_ms: Annotated[
        Natural | None,
        doc("Replaces `time_lag_ms` if that record is older than the samples: its age is at least this."),
    ]
    lag_sampled_at: Annotated[
        Instant | None,
        doc("When the last sample was taken (every `lag.sample.interval.ms`); null: no sample yet."),
    ]
    verdicts: Annotated[list[GroupVerdict], doc("The worst first, as of `judged_at`; empty: nothing is wrong.")]
    judged_at: Annotated[
        Instant | None,
        doc(
            "When all groups were last judged, by their members (every `verdict.check.interval.ms`) or by their "
            "offsets (every `lag.sample.interval.ms`), whichever is longer ago; null: never."
        ),
    ]
    updated_at: Annotated[Instant, doc("Last change of the group other than a heartbeat.")]


class GroupPage(Answer):
    """A page of groups."""

    groups: list[GroupLine]
    next_cursor: NextCursor


class GroupsToDelete(StrictSerializer):
    """Parameters of the deletion of groups."""

    group_id = serializers.ListField(
        child=Text(max_length=MOST_ID_CHARACTERS, allow_blank=True),
        min_length=1,
        max_length=MOST_DELETED,
        help_text=f"Id of a group, percent-encoded. Repeatable, up to {MOST_DELETED} times.",
    )


class DeletedGroup(Answer):
    """The result for one group."""

    group_id: str
    error_code: Annotated[Int32, doc("0: it was deleted, with all its offsets.")]
    error: Annotated[
        str,
        error_name(
            "NONE, NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID, or "
            "COORDINATOR_NOT_AVAILABLE: try again.",
        ),
    ]
    detail: Annotated[str | None, doc("What is wrong, and how to fix it.")]


class DeletedGroups(Answer):
    """A result for each group, in the order of the request."""

    groups: list[DeletedGroup]


class EventQuery(PageQuery):
    """Parameters of the events of a group."""

    kind = serializers.ListField(
        child=Choice([kind.value for kind in EventKind]),
        required=False,
        source="kinds",
        max_length=MOST_FILTERS,
        help_text="One of these kinds. Repeatable.",
    )

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """The declared fields and `from`, which is a Python keyword and cannot be declared."""
        return {
            **super().get_fields(),
            "from": InstantInput(required=False, source="since", help_text="Only events at or after this instant."),
        }


class EventPage(Answer):
    """A page of events, newest first."""

    events: list[EventView]
    next_cursor: NextCursor
