"""The Django admin of groups: to look at rows, never to change them. The protocol owns the data.

Assignments have a composite primary key, which the admin cannot list; they are shown on the page of their group.
"""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.safestring import SafeString

from groups.core.model.events import EventKind
from groups.models import (
    Assignment,
    ConsumerMember,
    CoordinatorNode,
    CoordinatorPartition,
    Event,
    GenerationTopics,
    Group,
    GroupLabels,
    Member,
    PartitionChange,
    PendingMember,
    Topic,
    Watermark,
)
from kcoord.admin import ReadOnlyAdmin, ReadOnlyInline, kind_filter, live_page, read_only, table, table_of, utc
from kcoord.protocol.consumer_protocol import decode_subscription


class MemberInline(ReadOnlyInline):
    """Members of a group, in the order of arrival."""

    model = Member
    fields = ("member_id", "instance_id", "client_id", "client_host", "session_deadline", "last_heartbeat_at")
    readonly_fields = fields
    ordering = ("id",)


class ConsumerMemberInline(ReadOnlyInline):
    """Members of a consumer group, in the order of arrival."""

    model = ConsumerMember
    fields = ("member_id", "instance_id", "client_id", "client_host", "member_epoch", "state", "session_deadline")
    readonly_fields = fields
    ordering = ("id",)


class PendingMemberInline(ReadOnlyInline):
    """Member ids that were handed out but not used yet."""

    model = PendingMember
    fields = ("member_id", "deadline")
    readonly_fields = fields
    ordering = ("id",)


def _count(members: type[Member | ConsumerMember]) -> Coalesce:
    """The number of rows that each group has in a table of members."""
    mine = members._default_manager.filter(group=OuterRef("pk")).values("group")
    return Coalesce(Subquery(mine.annotate(count=Count("pk")).values("count")), 0)


@admin.register(Group)
class GroupAdmin(ReadOnlyAdmin):
    """Groups."""

    list_display = ("group_id", "type", "state", "generation_id", "member_count", "updated_at")
    list_filter = ("state", "type")
    search_fields = ("group_id",)
    ordering = ("group_id",)
    inlines = (MemberInline, ConsumerMemberInline, PendingMemberInline)
    readonly_fields: tuple[str, ...] = (
        "page",
        "target_computed",
        "assignments",
    )
    fieldsets: Any = (
        (None, {"fields": ("group_id", "page", "type", "state", "state_since", "previous_state", "generation_id")}),
        ("Protocol", {"fields": ("protocol_type", "protocol_name", "leader_id", "new_member_added")}),
        ("Target of a consumer group", {"fields": ("assignment_epoch", "target_computed", "resolution", "jobs")}),
        ("Timers", {"fields": ("wake_at", "join_deadline", "join_delay_ms", "join_remaining_ms", "sync_deadline")}),
        ("Row", {"fields": ("version", "created_at", "updated_at")}),
        ("Ownership", {"fields": ("assignments",)}),
    )

    page = live_page("frontend:group", "group_id")
    assignments = table_of(
        Assignment,
        "group",
        "topic partition member_id=member generation_id=generation pending",
        label="partitions",
        written={"pending": lambda pending: "pending revocation" if pending else ""},
    )

    @admin.display(description="target computed")
    def target_computed(self, group: Group) -> str:
        """When the target of a consumer group was last computed."""
        return utc(group.assignment_timestamp or None)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        """With the number of members."""
        queryset: QuerySet[Group] = super().get_queryset(request)
        return queryset.annotate(members_now=_count(Member) + _count(ConsumerMember))

    @admin.display(description="members")
    def member_count(self, group: Any) -> int:
        """The number of members."""
        return int(group.members_now)


@admin.register(Member)
class MemberAdmin(ReadOnlyAdmin):
    """Members of all groups."""

    list_display = ("member_id", "group", "client_id", "client_host", "session_deadline", "last_heartbeat_at")
    list_select_related = ("group",)
    search_fields = ("member_id", "instance_id", "client_id", "client_host", "group__group_id")
    ordering = ("id",)
    exclude = ("protocol_metadata", "assignment")
    readonly_fields = ("subscriptions",)

    @admin.display(description="subscriptions")
    def subscriptions(self, member: Member) -> SafeString:
        """What the member asks for with each of its protocols."""
        rows = [
            (name, _subscription(member.protocol_type, bytes(data)))
            for name, data in zip(member.protocol_names, member.protocol_metadata, strict=True)
        ]
        return table(("protocol", "topics"), rows, len(rows))


@admin.register(ConsumerMember)
class ConsumerMemberAdmin(ReadOnlyAdmin):
    """Members of all groups of the consumer protocol."""

    labels = {
        "rebalance_deadline": "must give up its partitions by",
        "join_deadline": "must join again by",
        "sync_deadline": "must sync by",
    }
    list_display = ("member_id", "group", "client_id", "client_host", "member_epoch", "state", "session_deadline")
    list_filter = ("state",)
    list_select_related = ("group",)
    search_fields = ("member_id", "instance_id", "client_id", "client_host", "group__group_id")
    ordering = ("id",)
    readonly_fields = ("classic",)
    fieldsets: Any = (
        (None, {"fields": ("group", "member_id", "instance_id", "rack_id", "client_id", "client_host")}),
        ("Subscription", {"fields": ("subscribed_topic_names", "subscribed_topic_regex", "server_assignor")}),
        ("Reconciliation", {"fields": ("member_epoch", "previous_member_epoch", "state", "target")}),
        ("Timers", {"fields": ("session_deadline", "session_armed_at", *labels, "rebalance_timeout_ms")}),
        ("Classic protocol", {"fields": ("classic_session_timeout_ms", "classic")}),
    )

    @admin.display(description="subscriptions")
    def classic(self, member: ConsumerMember) -> SafeString:
        """What a member of the classic protocol asks for with each of its protocols."""
        names, metadata = member.classic_protocol_names or (), member.classic_protocol_metadata or ()
        rows = [(name, _subscription("consumer", bytes(data))) for name, data in zip(names, metadata, strict=True)]
        return table(("protocol", "topics"), rows, len(rows))


def _subscription(protocol_type: str, metadata: bytes) -> str:
    subscription = decode_subscription(metadata) if protocol_type == "consumer" else None
    if subscription is not None:
        return ", ".join(subscription.topics)
    return f"{len(metadata):,} bytes, opaque to the service"


read_only(
    Topic,
    "name partitions topic_id created_at",
    fields="name topic_id partitions labels created_at watermarks",
    order="name",
    search="name",
    watermarks=table_of(
        Watermark,
        "topic",
        "partition log_start_offset=log_start log_end_offset=log_end sampled_at=sampled",
        label="watermarks",
        order="partition",
    ),
)
read_only(
    CoordinatorNode,
    "node_id id url version started_at renewed_at ended_at end_reason",
    fields="node_id page id url version started_at renewed_at expires_at ended_at end_reason",
    order="-id",
    search="node_id url",
    filters=["end_reason"],
    page=live_page("frontend:nodes"),
)
read_only(PendingMember, "member_id group deadline", order="id", search="member_id group__group_id", related=["group"])
read_only(GenerationTopics, "group topics", order="group", search="group__group_id", related=["group"])
read_only(
    Event,
    "at group_name kind generation_id member_id",
    "detail",
    order="-id",
    search="=group_name =member_id",
    filters=[kind_filter(EventKind)],
    search_help_text="The complete group id or member id",
)
read_only(GroupLabels, "group_name labels updated_at updated_by", order="group_name", search="group_name")
read_only(
    Watermark,
    "topic partition log_start_offset log_end_offset sampled_at",
    order="topic_id partition",
    search="topic__name",
    related=["topic"],
)
read_only(
    CoordinatorPartition,
    "partition state owner epoch gap state_since load_ms",
    "active_since",
    order="partition",
    search="=partition owner__node_id",
    filters=["state"],
    related=["owner"],
)
read_only(
    PartitionChange,
    "at partition epoch from_node to_node reason gap_ms",
    "gap",
    order="-id",
    search="=partition from_node to_node",
    filters=["reason"],
)

# Tables without an admin class of their own can be viewed as well.
for model in apps.get_app_config("groups").get_models():
    if len(model._meta.pk_fields) == 1 and not admin.site.is_registered(model):
        admin.site.register(model, ReadOnlyAdmin)
