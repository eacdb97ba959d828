"""Requests and responses of the group endpoints."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from groups.core.model.consumer_group import ConsumerGroupState
from groups.core.model.events import EventKind
from groups.core.model.types import GroupState, VerdictKind
from groups.models import Group
from groups.readmodel import LONGEST_REGEX, MAX_TOPICS, ON_PAGES, GroupSort
from groups.rest.description import MemberState
from groups.rest.operator_serializers import HoldView
from kcoord.protocol.errors import Error
from kcoord.rest.fields import (
    Choice,
    Instant,
    Int32,
    NextCursor,
    PageQuery,
    StrictSerializer,
    Text,
)
from kcoord.rest.labels import MAX_LABEL_NAME, MAX_LABEL_VALUE
from kcoord.rest.paging import INT64_MAX

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


class LabelsOfGroup(serializers.DictField):
    """The labels of a group in a response."""

    def __init__(self) -> None:
        super().__init__(child=serializers.CharField(allow_blank=True), help_text="Labels of the group, by name.")


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
        max_length=MOST_FILTERS,
        help_text=f"One of these states, case-insensitive: {STATES}. Other names match nothing. Repeatable.",
    )
    type = serializers.ListField(
        child=Text(max_length=64, allow_blank=True),
        required=False,
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
    verdict = serializers.ListField(
        child=Choice(VERDICTS),
        required=False,
        max_length=MOST_FILTERS,
        help_text="Groups that had this verdict when they were last judged. Repeatable.",
    )
    sort = Choice(
        [sort.value for sort in GroupSort if sort not in ON_PAGES],
        required=False,
        default=GroupSort.GROUP_ID.value,
        help_text="Order; groups that compare equal are ordered by id. With `-`: the largest or the latest first.",
    )


class GroupVerdict(serializers.Serializer[Any]):
    """Why a group needs attention."""

    verdict = serializers.ChoiceField(VERDICTS)
    since = Instant()


class GroupLine(serializers.Serializer[Any]):
    """A group in the list. `protocol_name` is empty unless the group is Stable."""

    group_id = serializers.CharField()
    type = serializers.ChoiceField(Group.Type.values)
    state = serializers.ChoiceField(STATES_OF_EITHER)
    members = Int32(min_value=0, help_text="Number of members.")
    generation_id = Int32(min_value=0, help_text="Of a consumer group: the group epoch.")
    protocol_type = serializers.CharField(allow_blank=True)
    protocol_name = serializers.CharField(allow_blank=True)
    topics = serializers.ListField(
        child=serializers.CharField(), help_text=f"Topics of which members own partitions, at most {MAX_TOPICS}."
    )
    labels = LabelsOfGroup()
    coordinator_partition = Int32(min_value=0)
    lag = serializers.IntegerField(
        min_value=0,
        allow_null=True,
        help_text="Records not read yet, on all topics, as of `lag_sampled_at`; null: unknown. `GET "
        f"/v1/groups/{group_id}/lag` returns the current lag.",
    )
    lag_sampled_at = Instant(
        allow_null=True,
        help_text="When the last sample was taken (every `lag.sample.interval.ms`); null: no sample yet.",
    )
    verdicts = GroupVerdict(many=True, help_text="The worst first, as of `judged_at`; empty: nothing is wrong.")
    judged_at = Instant(
        allow_null=True,
        help_text="When all groups were last judged, by their members (every `verdict.check.interval.ms`) or by their "
        "offsets (every `lag.sample.interval.ms`), whichever is longer ago; null: never.",
    )
    updated_at = Instant(help_text="Last change of the group other than a heartbeat.")


class GroupPage(serializers.Serializer[Any]):
    """A page of groups."""

    groups = GroupLine(many=True)
    next_cursor = NextCursor()


class GroupsToDelete(StrictSerializer):
    """Parameters of the deletion of groups."""

    group_id = serializers.ListField(
        child=Text(max_length=MOST_ID_CHARACTERS, allow_blank=True),
        min_length=1,
        max_length=MOST_DELETED,
        help_text=f"Id of a group, percent-encoded. Repeatable, up to {MOST_DELETED} times.",
    )


class DeletedGroup(serializers.Serializer[Any]):
    """The result for one group."""

    group_id = serializers.CharField(allow_blank=True)
    error_code = Int32(help_text="0: it was deleted, with all its offsets.")
    error = serializers.ChoiceField(
        [error.name for error in Error],
        help_text="NONE, NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID, or "
        "COORDINATOR_NOT_AVAILABLE: try again.",
    )
    detail = serializers.CharField(allow_null=True, help_text="What is wrong, and how to fix it.")


class DeletedGroups(serializers.Serializer[Any]):
    """A result for each group, in the order of the request."""

    groups = DeletedGroup(many=True)


class GroupCoordinator(serializers.Serializer[Any]):
    """Where a group is coordinated."""

    partition = Int32(min_value=0, help_text="The coordinator partition of the group.")
    node_id = serializers.CharField()
    host = serializers.CharField(allow_blank=True)
    port = Int32()
    url = serializers.CharField()


class PartitionsByTopic(serializers.DictField):
    """Topic to partitions."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(child=serializers.ListField(child=Int32()), **kwargs)


class MemberSubscription(serializers.Serializer[Any]):
    """What a member of protocol type `consumer` subscribes to."""

    topics = serializers.ListField(child=serializers.CharField(allow_blank=True))
    owned_partitions = PartitionsByTopic()
    generation_id = Int32()
    rack_id = serializers.CharField(allow_null=True, allow_blank=True)


class MemberView(serializers.Serializer[Any]):
    """A member of a classic group."""

    member_id = serializers.CharField()
    group_instance_id = serializers.CharField(allow_null=True)
    client_id = serializers.CharField(allow_blank=True)
    client_host = serializers.CharField(allow_blank=True)
    state = serializers.ChoiceField(
        [state.value for state in MemberState],
        help_text="stable; awaiting_join: its join waits for other members; not_rejoined: the group is rebalancing "
        "and it has not joined yet; pending_sync: it has not asked for its assignment yet; awaiting_sync: "
        "it waits for the leader's assignment.",
    )
    session_timeout_ms = Int32()
    rebalance_timeout_ms = Int32()
    protocols = serializers.ListField(
        child=serializers.CharField(allow_blank=True), help_text="Names of the protocols it supports, preferred first."
    )
    metadata = serializers.CharField(
        allow_blank=True, help_text="For the chosen protocol, base64; empty unless the group is Stable."
    )
    subscription = MemberSubscription(
        allow_null=True, help_text="`metadata` decoded; null if it is not a ConsumerProtocol subscription."
    )
    assignment = serializers.CharField(allow_blank=True, help_text="What the leader assigned to it, base64.")
    partitions = PartitionsByTopic(
        allow_null=True, help_text="`assignment` decoded; null if it is not a ConsumerProtocol assignment."
    )
    last_heartbeat_at = Instant(allow_null=True, help_text="The last request that renewed its session.")
    session_expires_at = Instant(allow_null=True)
    client_software_name = serializers.CharField(
        allow_null=True, help_text="As a client of Kafka's protocol names itself; null: it did not, or uses HTTP."
    )
    client_software_version = serializers.CharField(allow_null=True)


class GroupView(serializers.Serializer[Any]):
    """A group, its members, and what it waits for."""

    group_id = serializers.CharField()
    type = serializers.ChoiceField(Group.Type.values)
    state = serializers.ChoiceField([state.value for state in GroupState])
    state_since = Instant()
    generation_id = Int32(min_value=0)
    protocol_type = serializers.CharField(allow_blank=True)
    protocol_name = serializers.CharField(allow_blank=True, help_text="Empty unless the group is Stable.")
    leader = serializers.CharField(
        allow_blank=True, help_text="Member id of the leader; empty: the group has no leader."
    )
    coordinator = GroupCoordinator()
    members = MemberView(many=True)
    pending_member_ids = serializers.ListField(
        child=serializers.CharField(), help_text="Member ids given out with MEMBER_ID_REQUIRED and not used yet."
    )
    join_deadline = Instant(allow_null=True, help_text="When the join in progress completes at the latest.")
    sync_deadline = Instant(allow_null=True, help_text="When members that have not synced are removed.")
    hold = HoldView(allow_null=True, help_text="No member can join until it ends; null: the group is not held.")
    labels = LabelsOfGroup()
    wake_at = Instant(allow_null=True, help_text="When the next timer of the group is due.")


class EventQuery(PageQuery):
    """Parameters of the events of a group."""

    kind = serializers.ListField(
        child=Choice([kind.value for kind in EventKind]),
        required=False,
        max_length=MOST_FILTERS,
        help_text="One of these kinds. Repeatable.",
    )

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """The declared fields and `from`, which is a Python keyword and cannot be declared."""
        return {
            **super().get_fields(),
            "from": Instant(required=False, help_text="Only events at or after this instant."),
        }


class EventView(serializers.Serializer[Any]):
    """Something that happened to a group."""

    id = serializers.IntegerField()
    at = Instant()
    kind = serializers.ChoiceField([kind.value for kind in EventKind])
    generation_id = Int32()
    member_id = serializers.CharField(allow_null=True, help_text="The member that the event is about, if any.")
    detail = serializers.DictField(help_text="More about the event; the keys depend on the kind.")


class EventPage(serializers.Serializer[Any]):
    """A page of events, newest first."""

    events = EventView(many=True)
    next_cursor = NextCursor()
