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
from django.utils.safestring import SafeString

from groups.admin import MOST_ROWS, GroupAdmin, table
from groups.models import Group
from kcoord.admin import ReadOnlyAdmin, instant, kind_filter, utc
from offsets.core.types import ChangeKind
from offsets.models import (
    Activity,
    Alert,
    AlertMessage,
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
from offsets.spark.archive.days import written_day

admin.site.unregister(Group)


def _or_dash(value: object) -> object:
    return "–" if value is None else value


@admin.register(Group)
class GroupWithOffsetsAdmin(GroupAdmin):
    """Groups, with what they committed."""

    readonly_fields = (*GroupAdmin.readonly_fields, "committed_offsets")
    fieldsets = (*GroupAdmin.fieldsets, ("Offsets", {"fields": ("committed_offsets",)}))

    @admin.display(description="committed")
    def committed_offsets(self, group: Group) -> SafeString:
        """The next offsets to read."""
        committed = CommittedOffset.objects.filter(group=group).order_by("topic", "partition")
        columns = ("topic", "partition", "committed_offset", "metadata", "commit_timestamp")
        rows = [
            (line.topic, line.partition, line.committed_offset, line.metadata, utc(line.commit_timestamp))
            for line in committed.values_list(*columns, named=True)[:MOST_ROWS]
        ]
        return table(("topic", "partition", "offset", "metadata", "committed at"), rows, committed.count())


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
    """The journal of one group, newest first.

    It is read only by group: no other column is indexed, so nothing is listed until a group is named, and a line has no
    page.
    """

    list_display = (
        "when",
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
    ordering = ("-at", "-id")
    when = instant("at", "when")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """The lines of the group with exactly this id."""
        return (queryset.filter(group_name=search_term) if search_term else queryset.none()), False

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> None:
        """Lines have no page: finding one by its id would read all days."""
        return


@admin.register(RetentionPin)
class RetentionPinAdmin(ReadOnlyAdmin):
    """Groups and topics whose offsets do not expire; they are changed with `/v1/groups/{group_id}/pins`."""

    list_display = ("group_name", "topic", "pinned", "pinned_by", "reason")
    search_fields = ("group_name",)
    fields = ("group_name", "topic", "pinned", "pinned_by", "reason")
    readonly_fields = ("pinned",)
    ordering = ("group_name", "topic")
    pinned = instant("pinned_at", "pinned at")


@admin.register(OffsetPlan)
class OffsetPlanAdmin(ReadOnlyAdmin):
    """Offset plans, with what they change."""

    list_display = ("created", "group_name", "strategy", "state", "created_by", "reason")
    list_filter = ("state",)
    search_fields = ("group_name",)
    ordering = ("-created_at",)
    fields = (
        "group_name",
        "strategy",
        "parameters",
        "state",
        "reason",
        "created",
        "created_by",
        "applied",
        "applied_by",
        "undone",
        "undone_by",
        "offsets",
    )
    readonly_fields = ("created", "applied", "undone", "offsets")
    created = instant("created_at", "created")
    applied = instant("applied_at", "applied")
    undone = instant("undone_at", "undone")

    @admin.display(description="offsets")
    def offsets(self, plan: OffsetPlan) -> SafeString:
        """The committed offset, and the planned one."""
        lines = PlannedOffset.objects.filter(plan=plan).order_by("topic", "partition")
        columns = ("topic", "partition", "old_offset", "requested_offset", "new_offset", "note")
        rows = [
            (
                *(line.topic, line.partition),
                *map(_or_dash, (line.old_offset, line.requested_offset, line.new_offset)),
                line.note,
            )
            for line in lines.values_list(*columns, named=True)[:MOST_ROWS]
        ]
        return table(("topic", "partition", "old", "requested", "new", "note"), rows, lines.count())


@admin.register(Producer)
class ProducerAdmin(ReadOnlyAdmin):
    """Transactional producers, with their pending offsets."""

    list_display = ("transactional_id", "producer_id", "producer_epoch", "updated")
    search_fields = ("transactional_id",)
    ordering = ("transactional_id",)
    fields = ("transactional_id", "producer_id", "producer_epoch", "updated", "pending_offsets")
    readonly_fields = ("updated", "pending_offsets")
    updated = instant("updated_at", "last change")

    @admin.display(description="pending")
    def pending_offsets(self, producer: Producer) -> SafeString:
        """The offsets of the open transaction."""
        pending = PendingOffset.objects.filter(producer=producer).order_by("group", "topic", "partition")
        columns = ("group__group_id", "topic", "partition", "committed_offset", "metadata", "commit_timestamp")
        rows = [
            (
                *(line.group__group_id, line.topic, line.partition, line.committed_offset, line.metadata),
                utc(line.commit_timestamp),
            )
            for line in pending.values_list(*columns, named=True)[:MOST_ROWS]
        ]
        return table(("group", "topic", "partition", "offset", "metadata", "written at"), rows, pending.count())


@admin.register(GroupLag)
class GroupLagAdmin(ReadOnlyAdmin):
    """How far behind each group was when lag was last sampled."""

    list_display = ("group", "lag", "time_lag_ms", "partitions", "sampled")
    list_select_related = ("group",)
    search_fields = ("group__group_id",)
    fields = ("group", "lag", "time_lag_ms", "partitions", "sampled")
    readonly_fields = ("sampled",)
    ordering = ("group__group_id",)
    sampled = instant("at", "sampled at")


@admin.register(TopicTotal)
class TopicTotalAdmin(ReadOnlyAdmin):
    """Topics over all groups when lag was last sampled."""

    list_display = ("topic", "groups", "lag", "worst_lag", "time_lag_ms", "sampled")
    search_fields = ("topic",)
    fields = ("topic", "groups", "lag", "worst_group_id", "worst_lag", "time_lag_ms", "sampled")
    readonly_fields = ("sampled",)
    ordering = ("topic",)
    sampled = instant("at", "sampled at")


@admin.register(VerdictRun)
class VerdictRunAdmin(ReadOnlyAdmin):
    """When all groups were last judged."""

    list_display = ("name", "judged")
    fields = ("name", "judged")
    readonly_fields = ("judged",)
    ordering = ("name",)
    judged = instant("at", "judged at")


@admin.register(AlertRule)
class AlertRuleAdmin(ReadOnlyAdmin):
    """Which groups are watched for what, and who is told; the Alerts page changes them."""

    list_display = ("name", "enabled", "pattern", "group_name", "receivers", "updated", "updated_by")
    search_fields = ("name", "group_name")
    ordering = ("name",)
    readonly_fields = ("updated",)
    updated = instant("updated_at", "changed at")


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin):
    """Alerts that are open, and those that ended. Without `opened`, the condition has not lasted long enough."""

    list_display = ("group_name", "rule", "cause", "value", "began", "opened", "resolved")
    list_select_related = ("rule",)
    search_fields = ("group_name",)
    ordering = ("-id",)
    fields = ("group_name", "rule", "cause", "value", "began", "opened", "resolved", "muted_by")
    readonly_fields = ("began", "opened", "resolved")
    began = instant("since", "since")
    opened = instant("opened_at", "opened at")
    resolved = instant("resolved_at", "resolved at")


@admin.register(AlertMessage)
class AlertMessageAdmin(ReadOnlyAdmin):
    """What receivers were told, and what they are to be told."""

    list_display = ("rule_name", "receiver", "notice", "made", "attempts", "sent", "error")
    search_fields = ("rule_name", "receiver")
    ordering = ("-created_at",)
    fields = ("rule_name", "receiver", "notice", "made", "attempts", "due", "sent", "error", "content")
    readonly_fields = ("made", "due", "sent")
    made = instant("created_at", "made at")
    due = instant("next_at", "due at")
    sent = instant("sent_at", "sent at")


@admin.register(Activity)
class ActivityAdmin(ReadOnlyAdmin):
    """How much had happened by each minute of the last day."""

    list_display = ("noted", "record_offset", "event_id", "rebalances")
    fields = ("noted", "record_offset", "event_id", "rebalances")
    readonly_fields = ("noted",)
    ordering = ("-at",)
    noted = instant("at", "noted at")


@admin.register(DeletedTopic)
class DeletedTopicAdmin(ReadOnlyAdmin):
    """Deleted topics whose offsets are being removed."""

    list_display = ("topic", "deleted", "principal", "swept")
    fields = ("topic", "deleted", "principal", "record_offset", "swept")
    readonly_fields = ("deleted",)
    ordering = ("topic",)
    deleted = instant("deleted_at", "deleted at")


@admin.register(SparkRun)
class SparkRunAdmin(ReadOnlyAdmin):
    """Runs of the Spark jobs, with the days that they archived."""

    list_display = ("requested", "kind", "state", "stage", "rows", "findings", "requested_by", "error")
    list_filter = ("kind", "state")
    ordering = ("-requested_at",)
    fields = (
        *("kind", "state", "stage", "slices_done", "slices_total", "parameters", "requested", "requested_by"),
        *("started", "ended", "heartbeat", "cancel_requested", "host", "pid", "log_path"),
        *("rows", "files", "bytes", "findings", "bound", "system_identifier", "timeline", "archive_path"),
        *("archive_id", "manifest", "manifest_sha256", "result", "error", "archived_days", "what_it_found"),
    )
    readonly_fields = (
        *("requested", "started", "ended", "heartbeat", "cancel_requested", "archived_days", "what_it_found"),
    )
    requested = instant("requested_at", "requested")
    started = instant("started_at", "started")
    ended = instant("ended_at", "ended")
    heartbeat = instant("heartbeat_at", "last heartbeat")
    cancel_requested = instant("cancel_requested_at", "asked to end")

    @admin.display(description="days")
    def archived_days(self, run: SparkRun) -> SafeString:
        """What it published for each day, and whether that still counts for the journal."""
        days = ArchivedDay.objects.filter(run=run).order_by("manifest", "day")
        columns = ("manifest", "day", "rows", "checksum", "counts")
        rows = [
            (day.manifest, written_day(day.day), day.rows, day.checksum, day.counts)
            for day in days.values_list(*columns, named=True)[:MOST_ROWS]
        ]
        return table(("manifest", "day", "rows", "checksum", "counts"), rows, days.count())

    @admin.display(description="findings")
    def what_it_found(self, run: SparkRun) -> SafeString:
        """What reconcile found: docs/reconcile.md says what each kind means."""
        found = ReconcileFinding.objects.filter(run=run).order_by("number")
        columns = ("kind", "group_name", "topic", "partition", "expected", "found", "evidence")
        rows = [
            (
                *(one.kind, one.group_name, one.topic, one.partition),
                *(_or_dash(one.expected), _or_dash(one.found), one.evidence.get("journal_ids")),
            )
            for one in found.values_list(*columns, named=True)[:MOST_ROWS]
        ]
        return table(("kind", "group", "topic", "partition", "expected", "found", "journal"), rows, found.count())


class _ItemsAdmin(ReadOnlyAdmin):
    """Items of share groups: what members have, and what is to be delivered again."""

    @admin.display(description="offsets")
    def offsets(self, row: Any) -> str:
        """The ranges, the last offset included."""
        return ", ".join(f"{part.lower}–{part.upper - 1}" for part in row.held)


@admin.register(SharePartition)
class SharePartitionAdmin(ReadOnlyAdmin):
    """How far share groups are with partitions."""

    list_display = ("group", "topic_id", "partition", "next_offset", "end_offset")
    ordering = ("group", "topic_id", "partition")


@admin.register(ShareLock)
class ShareLockAdmin(_ItemsAdmin):
    """What members have."""

    list_display = ("share_partition", "offsets", "member_id", "delivery_count", "acquired", "lasts")
    fields = ("share_partition", "offsets", "member_id", "delivery_count", "acquired", "lasts", "lock_ms", "last_error")
    readonly_fields = ("offsets", "acquired", "lasts")
    ordering = ("id",)
    acquired = instant("acquired_at", "acquired at")
    lasts = instant("until", "until")


@admin.register(ShareRetry)
class ShareRetryAdmin(_ItemsAdmin):
    """What is to be delivered again."""

    list_display = ("share_partition", "offsets", "delivery_count", "due", "last_member", "last_error")
    fields = ("share_partition", "offsets", "delivery_count", "due", "last_member", "last_error")
    readonly_fields = ("offsets", "due")
    ordering = ("id",)
    due = instant("not_before", "not before")


@admin.register(ShareDead)
class ShareDeadAdmin(ReadOnlyAdmin):
    """Dead letters."""

    list_display = ("share_partition", "offset", "cause", "delivery_count", "member_id", "given_up", "error")
    fields = ("share_partition", "offset", "cause", "delivery_count", "member_id", "given_up", "error")
    readonly_fields = ("given_up",)
    ordering = ("id",)
    given_up = instant("at", "given up at")


@admin.register(ShareEnded)
class ShareEndedAdmin(ReadOnlyAdmin):
    """What became of locks, for some minutes."""

    list_display = ("lock_id", "share_partition", "member_id", "cause", "ended")
    fields = ("lock_id", "share_partition", "member_id", "cause", "ended")
    readonly_fields = ("ended",)
    ordering = ("lock_id",)
    ended = instant("at", "ended at")
