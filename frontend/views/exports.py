"""The tables of the pages as CSV files, with all their rows and the filters of the page."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.http import HttpRequest, HttpResponseBase

from frontend import queries
from frontend.access.words import written
from frontend.allowed import require_tokens
from frontend.audit.presenters import hidden_values
from frontend.audit.reads import audit
from frontend.group.rows import NO_LOAD, Load
from frontend.history.reads import Wanted, history
from frontend.labels import owner_of
from frontend.listing.queries import Also, group_rows
from frontend.plans.reads import PlanRow, all_plans
from frontend.queries import Limits
from frontend.rows import Member
from frontend.shown import ALL_TOPICS, HIDDEN_TOPICS, cell, shown
from frontend.topics.listing import FILE_GROUP_ROWS, Topic, TopicTotal, topic_list
from frontend.viewer import viewer_of
from frontend.views.audit import sight_of, wanted_records
from frontend.views.commits import wanted_commits
from frontend.views.csv_pages import MOST_ROWS, all_rows, csv_file, parts
from frontend.views.group_list import assignors_of, coordinator_of, wanted_groups
from frontend.views.page import page, text
from frontend.views.plan_list import wanted_plans
from frontend.views.tokens import rules_in, tokens_named
from frontend.views.topics import wanted_topics
from frontend.wording import iso, iso_if_known
from groups.readmodel import GroupSummary, unknown_group
from kcoord.audit.encoding import Record
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.rest.paging import MAX_LIMIT
from offsets.journal.reading import JournalLine, JournalReads
from offsets.plans.service import PlanService
from offsets.readmodel import CommittedPartition, OffsetReads

EVERYTHING = 10_000
"""Members of a file."""
TOPICS_AT_ONCE = 200


@page
def groups_csv(request: HttpRequest) -> HttpResponseBase:
    """The groups that match the filters of the list."""
    wanted, viewer = replace(wanted_groups(request), after=None, before=None), viewer_of(request)

    async def read(runtime: Runtime, after: str | None) -> tuple[Sequence[tuple[GroupSummary, Also]], str | None]:
        return await group_rows(runtime.db, viewer, wanted, after, MAX_LIMIT, assignors_of(runtime))

    hidden = None if viewer.topics.unlimited else HIDDEN_TOPICS
    head = (
        "group_id", "type", "assignor", "state", "state_since", "generation", "members", "partitions", "lag",
        "unknown_partitions", "time_lag_ms", "lag_sampled_at", "verdicts", "topics", "coordinator", "updated_at",
        "owner", "labels", "counted",
    )  # fmt: skip
    rows = (
        (
            group.group_id, group.type, also.assignors.get(group.pk), group.state, iso(group.state_since),
            group.generation_id, group.members, group.partitions, group.lag, group.unknown_partitions,
            cell(shown(group.time_lag_ms, hidden=hidden)),
            iso_if_known(group.lag_sampled_at), " ".join(kind for kind, _ in group.verdicts), " ".join(group.topics),
            coordinator_of(group.group_id, also), iso(group.updated_at), *_labels(group.labels),
            viewer.topics_counted or ALL_TOPICS,
        )
        for group, also in all_rows(read)
    )  # fmt: skip
    return csv_file("groups", head, rows)


def _labels(labels: Mapping[str, str]) -> tuple[str, str]:
    """The owner, and all labels as JSON."""
    owner = owner_of(labels)
    return owner.value if owner else "", json.dumps(dict(sorted(labels.items())), ensure_ascii=False) if labels else ""


@page
def topics_csv(request: HttpRequest) -> HttpResponseBase:
    """The topics that match the search, in the order of the page."""
    wanted, viewer = replace(wanted_topics(request), after=None, before=None), viewer_of(request)

    async def read(runtime: Runtime, after: str | None) -> tuple[Sequence[tuple[Topic, TopicTotal | None]], str | None]:
        here = replace(wanted, after=after)
        found = await topic_list(runtime.db, viewer, here, limit=TOPICS_AT_ONCE, rows=FILE_GROUP_ROWS)
        return [(topic, found.totals.get(topic.name)) for topic in found.topics], found.next

    head = (
        "topic", "partitions", "watermarks", "oldest_watermark", "read_by", "committed_by", "groups", "lag",
        "worst_group", "worst_lag", "time_lag_ms", "lag_sampled_at", "created_at", "counted",
    )  # fmt: skip
    rows = (
        (
            topic.name, topic.partitions, topic.watermarks, iso_if_known(topic.sampled_at), " ".join(topic.groups),
            " ".join(topic.committed), *_total(topic, total), iso(topic.created_at),
            viewer.groups_counted or "of all groups",
        )
        for topic, total in all_rows(read)
    )  # fmt: skip
    return csv_file("topics", head, rows)


def _total(topic: Topic, total: TopicTotal | None) -> Sequence[object]:
    if total is None:  # no group has been sampled; if none has committed either, that is all there is to know
        return (None if topic.committed else 0, *[None] * 5)
    return total.groups, total.lag, total.worst_group, total.worst_lag, total.time_lag_ms, iso(total.at)


@page
def members_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The members of a group; what they own is in the file of its partitions."""
    limits = Limits(members=EVERYTHING, topics=1, cells=1, offsets=1, events=1, member_topics=1)
    viewer = viewer_of(request)
    found = bridge.call(lambda runtime: queries.group_page(runtime.db, viewer, group_id, limits))
    if found is None:
        raise unknown_group(group_id)
    head = (
        "member_id", "group_instance_id", "client_id", "client_host", "partitions", "member_epoch", "last_heartbeat_at",
        "session_expires_at", "lag", "time_lag_ms", "records_per_minute", "counted",
    )  # fmt: skip
    loads = found.member_table.loads
    counted = viewer.topics_counted or ALL_TOPICS
    rows = ((*_member(member, loads.get(member.member_id, NO_LOAD)), counted) for member in found.members)
    return csv_file(f"{group_id}-members", head, rows)


def _member(member: Member, load: Load) -> Sequence[object]:
    return (
        member.member_id, member.instance_id, member.client_id, member.client_host, member.owned, member.member_epoch,
        iso_if_known(member.last_heartbeat_at), iso_if_known(member.session_deadline), load.lag, load.time_lag.ms,
        load.rate,
    )  # fmt: skip


@page
def offsets_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The committed offsets of a group."""
    topics = viewer_of(request).topics

    async def read(runtime: Runtime, cursor: str | None) -> tuple[Sequence[CommittedPartition], str | None]:
        reads = runtime.get(OffsetReads)
        return parts(await reads.committed(group_id, cursor=cursor, limit=MAX_LIMIT, visible=topics))

    head = (
        "topic", "partition", "owner", "committed_offset", "committed_at", "log_start_offset", "log_end_offset", "lag",
        "watermark_at", "expires_at", "metadata",
    )  # fmt: skip
    rows = (
        (
            row.topic, row.partition, row.owner, row.committed_offset, iso(row.committed_at), row.log_start_offset,
            row.log_end_offset, row.lag, iso_if_known(row.sampled_at), iso_if_known(row.expires_at), row.metadata,
        )
        for row in all_rows(read)
    )  # fmt: skip
    return csv_file(f"{group_id}-offsets", head, rows)


@page
def commits_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The commit history of a group, newest first, with the filters of the page."""
    wanted, topics = wanted_commits(request), viewer_of(request).topics

    async def read(runtime: Runtime, cursor: str | None) -> tuple[Sequence[JournalLine], str | None]:
        reads = runtime.get(JournalReads)
        return parts(await reads.commits(group_id, wanted, cursor=cursor, limit=MAX_LIMIT, visible=topics))

    head = "at", "kind", "topic", "partition", "committed_offset", "member_id", "client_id", "principal", "generation"
    rows = (
        (
            iso(row.at), row.kind, row.topic, row.partition, row.committed_offset, row.member_id, row.client_id,
            row.principal, row.generation_id,
        )
        for row in all_rows(read)
    )  # fmt: skip
    return csv_file(f"{group_id}-commits", head, rows)


@page
def rebalances_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """All rebalances of a group that are kept, newest first."""
    viewer = viewer_of(request)
    head = (
        "began_at", "ended_at", "length_ms", "generation", "trigger", "reason", "members_before", "members_after",
        "outcome", "phases_ms",
    )  # fmt: skip

    async def read(runtime: Runtime, before: int | None) -> tuple[Sequence[Sequence[object]], int | None]:
        found = await history(runtime.db, viewer, group_id, Wanted(before))
        if found.type is None and not found.shown and before is None:
            raise unknown_group(group_id)
        return [
            (
                iso(one.began), iso_if_known(one.ended), one.length_ms(found.now), one.generation_id, one.trigger,
                one.reason, one.before, one.after, one.outcome.label,
                " ".join(f"{phase.name}:{phase.length_ms}" for phase in one.phases),
            )
            for one in found.shown
        ], found.older  # fmt: skip

    return csv_file(f"{group_id}-rebalances", head, all_rows(read))


@page
def plan_csv(request: HttpRequest, group_id: str, plan_id: uuid.UUID) -> HttpResponseBase:
    """The lines of an offset plan."""
    topics = viewer_of(request).topics
    plan = bridge.call(lambda runtime: runtime.get(PlanService).get(group_id, str(plan_id)))

    async def read(runtime: Runtime, cursor: str | None) -> tuple[Sequence[Sequence[object]], str | None]:
        found = await runtime.get(PlanService).lines(plan, cursor=cursor, limit=MAX_LIMIT, visible=topics)
        return [
            (
                line.topic, line.partition, line.old_offset, line.requested, line.new, line.log and line.log.start,
                line.log and line.log.end, line.old_lag, line.new_lag, line.note,
            )
            for line in found.items
        ], found.next_cursor  # fmt: skip

    head = (
        "topic", "partition", "old_offset", "requested_offset", "new_offset", "log_start_offset", "log_end_offset",
        "old_lag", "new_lag", "note",
    )  # fmt: skip
    return csv_file(f"{group_id}-plan", head, all_rows(read))


@page
def plans_csv(request: HttpRequest) -> HttpResponseBase:
    """The plans of all groups that match the filters of the page."""
    wanted, viewer = replace(wanted_plans(request), before=None), viewer_of(request)

    async def read(
        runtime: Runtime, before: tuple[int, str] | None
    ) -> tuple[Sequence[PlanRow], tuple[int, str] | None]:
        found = await all_plans(runtime, viewer, replace(wanted, before=before), MAX_LIMIT)
        return found.plans, found.next

    head = (
        "plan_id", "group_id", "strategy", "state", "partitions", "changed", "removed", "outside", "lag_change",
        "reason", "created_at", "created_by", "approved_at", "approved_by", "applied_at",
        "applied_by", "undone_at", "undone_by", "counted",
    )  # fmt: skip
    rows = (
        (
            plan.id, plan.group_id, plan.strategy, plan.state,
            *(plan.totals.get(name) for name in ("partitions", "changed", "removed", "outside", "lag_change")),
            plan.reason, iso(plan.created_at), plan.created_by, iso_if_known(plan.approved_at), plan.approved_by,
            iso_if_known(plan.applied_at), plan.applied_by,
            iso_if_known(plan.undone_at), plan.undone_by, viewer.topics_counted or ALL_TOPICS,
        )
        for plan in all_rows(read)
    )  # fmt: skip
    return csv_file("plans", head, rows)


@page
def tokens_csv(request: HttpRequest) -> HttpResponseBase:
    """The tokens that match the search, with their rules."""
    require_tokens(request)
    found = tokens_named(text(request, "q"))
    head = "id", "name", "prefix", "rules", "created_at", "last_used_at", "expires_at", "previous_secret_until"
    rows = (
        (
            token.pk, token.name, token.prefix, " ".join(map(written, rules_in(token))), iso(token.created_at),
            iso_if_known(token.last_used_at), iso_if_known(token.expires_at), iso_if_known(token.previous_until),
        )
        for token in found[:MOST_ROWS].iterator(chunk_size=MAX_LIMIT)
    )  # fmt: skip
    return csv_file("tokens", head, rows)


@page
def audit_csv(request: HttpRequest) -> HttpResponseBase:
    """What people and tokens changed, with the filters of the page."""
    wanted, sight = replace(wanted_records(request), before=None), sight_of(request)

    async def read(runtime: Runtime, before: int | None) -> tuple[Sequence[Record], int | None]:
        found = await audit(runtime.db, sight, replace(wanted, before=before), MAX_LIMIT)
        return found.records, found.next

    head = (
        "seq", "at", "kind", "who", "door", "address", "request_id", "act", "resource", "name", "before", "after",
        "reason", "result", "error", "count",
    )  # fmt: skip
    rows = (
        (
            one.seq, iso(one.at), one.kind, one.principal, one.door, one.address, one.request_id, one.act, one.resource,
            one.name, *(cell(shown(said or None, hidden=hidden)) for said in (one.before, one.after, one.reason)),
            one.result, one.error, one.count,
        )
        for one in all_rows(read)
        for hidden in (hidden_values(one, sight),)
    )  # fmt: skip
    return csv_file("audit", head, rows)
