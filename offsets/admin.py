"""The Django admin of offsets: to look at rows, never to change them.

Tables with a composite primary key, which the admin cannot list, are shown on the page of what they belong to:
committed offsets on that of their group, lines of a plan on that of the plan, pending offsets on that of their
producer, archived days and findings on that of the run.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from groups.admin import GroupAdmin
from groups.models import Group
from kcoord.admin import ReadOnlyAdmin, Shown, kind_filter, read_only, table_of
from offsets.core.days import written_day
from offsets.core.types import ChangeKind
from offsets.models import (
    Activity,
    Alert,
    AlertMessage,
    AlertReceiver,
    AlertRule,
    ArchivedDay,
    CommittedOffset,
    DeletedTopic,
    GroupLag,
    OffsetCommitLog,
    OffsetPlan,
    PendingOffset,
    PlannedOffset,
    Producer,
    ReconcileFinding,
    RetentionPin,
    ShareDead,
    ShareEnded,
    ShareLock,
    SharePartition,
    ShareRetry,
    SparkRun,
    TopicTotal,
    VerdictRun,
)

admin.site.unregister(Group)


@admin.register(Group)
class GroupWithOffsetsAdmin(GroupAdmin):
    """Groups, with what they committed."""

    committed_offsets = table_of(
        CommittedOffset,
        "group",
        "topic partition committed_offset=offset metadata commit_timestamp=committed_at",
        label="committed",
    )
    readonly_fields = (*GroupAdmin.readonly_fields, "committed_offsets")
    fieldsets = (*GroupAdmin.fieldsets, ("Offsets", {"fields": ("committed_offsets",)}))


class DayFilter(admin.SimpleListFilter):
    """The days of the journal, in UTC: days that are not requested are not read."""

    title = "day"
    parameter_name = "day"

    _SPANS = {"today": (0, 1), "yesterday": (1, 1), "week": (6, 7), "month": (29, 30)}
    """First day, counted back from today, and number of days."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The available choices."""
        names = ("Today", "Yesterday", "Last 7 days", "Last 30 days")
        return list(zip(self._SPANS, names, strict=True))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The lines of the chosen days."""
        span = self._SPANS.get(self.value() or "")
        if span is None:
            return queryset
        midnight = datetime.combine(timezone.now().astimezone(UTC).date(), datetime.min.time(), UTC)
        first = midnight - timedelta(days=span[0])
        after = first + timedelta(days=span[1])
        return queryset.filter(at__gte=first.timestamp() * 1000, at__lt=after.timestamp() * 1000)


@admin.register(OffsetCommitLog)
class OffsetCommitLogAdmin(ReadOnlyAdmin):
    """The journal of one group by partition, in the order of its index backwards, so the newest line is first.

    No other column is indexed, so nothing is listed until a group is named, and a line has no page.
    """

    list_display = (
        "at",
        "group_name",
        "kind",
        "topic",
        "partition",
        "committed_offset",
        "member_id",
        "generation_id",
        "client_id",
        "principal",
    )
    list_display_links = None
    list_filter = (DayFilter, kind_filter(ChangeKind))
    search_fields = ("group_name",)
    search_help_text = "The complete group id; nothing is listed without one."
    sortable_by = ()
    ordering = ("-topic", "-partition", "-at", "-id")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """The lines of the group with exactly this id."""
        return (queryset.filter(group_name=search_term) if search_term else queryset.none()), False

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> None:
        """Lines have no page: finding one by its id would read all days."""
        return


def _ranges() -> Shown:
    """A column of items of share groups: the ranges of their offsets, the last one included."""

    @admin.display(description="offsets")
    def shown(_admin: Any, row: Any) -> str:
        return ", ".join(f"{part.lower}–{part.upper - 1}" for part in row.held)

    return shown


read_only(
    OffsetPlan,
    "created_at group_name strategy state created_by reason",
    fields="group_name strategy parameters state reason created_at created_by applied_at applied_by undone_at "
    "undone_by offsets",
    order="-created_at",
    search="group_name",
    filters=["state"],
    offsets=table_of(
        PlannedOffset,
        "plan",
        "topic partition old_offset=old requested_offset=requested new_offset=new note",
        label="offsets",
    ),
)
read_only(
    Producer,
    "transactional_id producer_id producer_epoch updated_at",
    "pending_offsets",
    order="transactional_id",
    search="transactional_id",
    pending_offsets=table_of(
        PendingOffset,
        "producer",
        "group__group_id=group topic partition committed_offset=offset metadata commit_timestamp=written_at",
        label="pending",
        order="group topic partition",
    ),
)
read_only(
    SparkRun,
    "requested_at kind state stage rows findings requested_by error",
    fields="kind state stage slices_done slices_total parameters requested_at requested_by started_at ended_at "
    "heartbeat_at cancel_requested_at host pid log_path rows files bytes findings bound system_identifier timeline "
    "archive_path archive_id manifest manifest_sha256 result error archived_days what_it_found",
    order="-requested_at",
    filters=["kind", "state"],
    archived_days=table_of(
        ArchivedDay,
        "run",
        "manifest day rows checksum counts",
        label="days",
        order="manifest day",
        written={"day": written_day},
    ),
    what_it_found=table_of(
        ReconcileFinding,
        "run",
        "kind group_name=group topic partition expected found evidence__journal_ids=journal",
        label="findings",
        order="number",
    ),
)
read_only(RetentionPin, "group_name topic pinned_at pinned_by reason", order="group_name topic", search="group_name")
read_only(
    GroupLag,
    "group lag time_lag_ms partitions at",
    order="group__group_id",
    search="group__group_id",
    related=["group"],
)
read_only(TopicTotal, "topic groups lag worst_lag time_lag_ms at", "worst_group_id", order="topic", search="topic")
read_only(VerdictRun, "name at", order="name")
read_only(
    AlertRule,
    "name enabled pattern group_name receivers updated_at updated_by",
    "label verdicts min_lag min_time_lag_ms for_ms remind_ms send_resolved",
    order="name",
    search="name group_name",
)
read_only(AlertReceiver, "name kind updated_at updated_by", order="name", search="name")
read_only(
    Alert,
    "group_name rule cause value since opened_at resolved_at",
    "muted_by",
    order="-id",
    search="group_name",
    related=["rule"],
)
read_only(
    AlertMessage,
    "rule_name receiver notice created_at attempts sent_at error",
    "next_at content",
    order="-created_at",
    search="rule_name receiver",
)
read_only(Activity, "at record_offset event_id rebalances", order="-at")
read_only(DeletedTopic, "topic deleted_at principal swept", "record_offset", order="topic")
read_only(SharePartition, "group topic_id partition next_offset end_offset", order="group topic_id partition")
read_only(
    ShareLock,
    "share_partition offsets member_id delivery_count acquired_at until",
    "lock_ms last_error",
    order="id",
    offsets=_ranges(),
)
read_only(
    ShareRetry,
    "share_partition offsets delivery_count not_before last_member last_error",
    order="id",
    offsets=_ranges(),
)
read_only(ShareDead, "share_partition offset cause delivery_count member_id at error", order="id")
read_only(ShareEnded, "lock_id share_partition member_id cause at", order="lock_id")
