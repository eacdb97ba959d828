"""The page of a member of a group: bounded by the page, whatever the size of its group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend.ui.events import lines
from frontend.ui.members import AWAY_EPOCH, NAMES_PER_MEMBER, Detail, consumer_member_state, member_rates, member_state
from frontend.ui.page import Absent, Pace, cursor, cursor_address, group_url, is_panel, page, show, text
from frontend.ui.reads import header_with_members, named_events, require_members
from frontend.ui.rows import Event, GroupHeader, Member, Millis, Names
from frontend.ui.states import State, generation_word
from frontend.ui.table import all_rows, csv_of
from frontend.ui.verdicts import KINDS, VerdictLine
from frontend.ui.verdicts import lines as verdict_lines
from frontend.ui.viewer import KICK, Viewer, action, viewer_of
from frontend.ui.wording import Due, client_at, number, plural
from groups.core.model.events import EventKind
from groups.core.model.types import VerdictKind
from kcoord.database.paging import MAX_LIMIT
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.consumer_protocol import decode_subscription
from kcoord.protocol.errors import Error, ProtocolError
from offsets.core.lag import PartitionLag
from offsets.core.verdicts import Verdict
from offsets.lag.positions import lags
from offsets.verdicts import Check, VerdictChecks, summaries, thresholds

Q = queries("frontend")

PARTITIONS = 50
"""Partitions of one page."""
SUMMED = 10_000
"""Partitions whose lag is added up; a member that owns more says so."""
RATED = 2_000
"""Of a member that owns more partitions nobody says how fast it reads: each takes a look into the journal."""
EVENTS = 25
EVENTS_SEARCHED = 5_000
"""Events of the group among which those of the member are looked for."""
START = ("", -1)
"""Before the first partition."""


@dataclass(frozen=True, slots=True)
class MemberTotals:
    """Sums over the first `SUMMED` of its partitions; `lag` adds those whose watermark is known.

    `sampled_at` (ms): the oldest watermark. `target`: how many partitions it is meant to have; None: what it owns.
    """

    partitions: int
    committed: int
    measured: int
    lag: int | None
    sampled_at: Millis | None
    target: int | None


@dataclass(frozen=True, slots=True)
class MemberPartition:
    """A partition that a member owns (`held`) or is meant to have (`wanted`; None: it is meant to have what it owns).

    `pending`: it was told to give it up. The watermark is complete or None.
    """

    topic: str
    partition: int
    pending: bool
    held: bool
    wanted: bool | None
    committed_offset: int | None
    commit_timestamp: Millis | None
    log_start_offset: Any
    log_end_offset: Any
    sampled_at: Any


WithLag = tuple[MemberPartition, PartitionLag]


@dataclass(frozen=True, slots=True)
class Described:
    """A member as it describes itself.

    `metadata`: what a classic member sent for the protocol of its group. `previous_epoch`: of the consumer protocol.
    """

    member: Member
    rebalance_timeout_ms: Millis
    previous_epoch: int | None
    protocol_names: Sequence[str]
    metadata: bytes | None


def _described(
    *,
    rebalance_timeout_ms: Millis,
    previous_epoch: int | None,
    protocol_names: Sequence[str],
    metadata: Any,
    **member: Any,
) -> Described:
    return Described(Member(**member), rebalance_timeout_ms, previous_epoch, protocol_names, metadata)


@dataclass(frozen=True, slots=True)
class Present:
    """A member that its group has. `detail`: of the consumer protocol. `unknown_topics`: not in the catalogue.

    `more`: there are further partitions after `partitions`. `rate`: records that it reads in a minute; None: it owns
    nothing, has just begun, or owns more than `RATED` partitions.
    """

    described: Described
    detail: Detail | None
    unknown_topics: frozenset[str]
    totals: MemberTotals
    partitions: Sequence[WithLag]
    more: bool
    rate: int | None


@dataclass(frozen=True, slots=True)
class MemberPage:
    """A member, or what is known of one that is gone (`present` None).

    `header` None: the group does not exist either. `given_out` (ms): the id was given out and can be used until then.
    """

    now: Millis
    header: GroupHeader | None
    present: Present | None
    given_out: Millis | None
    events: Sequence[Event]


async def member_page(
    db: Database, viewer: Viewer, group_id: str, member_id: str, after: tuple[str, int] = START
) -> MemberPage:
    """The member, with its partitions after a topic and partition, as far as the viewer may describe them.

    Raises Forbidden as `frontend.pages.group.reads.group_page` does, ProtocolError COORDINATOR_NOT_AVAILABLE.
    """
    async with db.snapshot() as connection:
        now = await db.now_ms(connection)
        if not viewer.sees_group(group_id):
            return MemberPage(now, None, None, None, ())
        seen = viewer.parameters()
        searched = {"group_id": group_id, "member_id": member_id, "most": EVENTS_SEARCHED, "limit": EVENTS, **seen}
        found = await db.records(connection, viewer.event, Q.member_events, searched)
        events = await named_events(db, connection, viewer, group_id, found)
        header = await db.record(connection, GroupHeader, Q.group_header, {"group_id": group_id})
        if header is None:
            return MemberPage(now, None, None, None, events)
        await require_members(db, connection, viewer, header)
        named = {"pk": header.pk, "epoch": header.assignment_epoch, "member_id": member_id, **seen}
        parameters = {**named, "protocol": header.protocol_name}
        described = await db.record(connection, _described, Q.one_member, parameters)
        if described is None:
            given_out = await db.value(connection, Q.member_id_given_out, named)
            return MemberPage(now, header, None, given_out, events)
        named |= {"group_id": group_id}
        return MemberPage(now, header, await _present(db, connection, described, named, after, now), None, events)


async def _present(
    db: Database,
    connection: Connection,
    described: Described,
    named: dict[str, Any],
    after: tuple[str, int],
    now: Millis,
) -> Present:
    details = {**named, "member_ids": [named["member_id"]], "names": 4 * NAMES_PER_MEMBER}
    detail = await db.record(connection, Detail, Q.consumer_details, details)
    names = sorted(detail.topic_names) if detail else []
    known = await db.column(connection, Q.known_topics, {"names": names}) if names else []
    totals = await db.record(connection, MemberTotals, Q.member_totals, {**named, "most": SUMMED})
    found, more = await _partitions(db, connection, named, after, PARTITIONS, now)
    rates = await member_rates(db, connection, named, details["member_ids"], now, RATED)
    assert totals is not None
    rate = rates.get(named["member_id"])
    return Present(described, detail, frozenset(names).difference(known), totals, found, more, rate)


async def _partitions(
    db: Database, connection: Connection, named: dict[str, Any], after: tuple[str, int], limit: int, now: Millis
) -> tuple[Sequence[WithLag], bool]:
    page = {**named, "after_topic": after[0], "after_partition": after[1], "limit": limit + 1}
    found = await db.records(connection, MemberPartition, Q.member_partitions, page)
    shown, stale_ms = found[:limit], settings.KCOORD.int("lag.stale.ms")
    behind = await lags(db, connection, shown, now, stale_ms)
    return list(zip(shown, behind, strict=True)), len(found) > limit


async def partitions_from(
    db: Database, viewer: Viewer, group_id: str, member_id: str, after: tuple[str, int], limit: int
) -> tuple[Sequence[WithLag], bool] | None:
    """Partitions of a member after a topic and partition: at most `limit`, and whether there are more.

    None if the group has no such member. Raises as `member_page`.
    """
    async with db.snapshot() as connection:
        header = await header_with_members(db, connection, viewer, group_id)
        if header is None:
            return None
        named = {"pk": header.pk, "epoch": header.assignment_epoch, "member_id": member_id, **viewer.parameters()}
        parameters = {**named, "protocol": header.protocol_name}
        if await db.record(connection, _described, Q.one_member, parameters) is None:
            return None
        return await _partitions(db, connection, named, after, limit, await db.now_ms(connection))


@page
def member(request: HttpRequest, group_id: str, member_id: str) -> HttpResponse:
    """One member; one that is gone, as far as events tell."""
    after = cursor(request, "after", str, int)
    start = (str(after[0]), int(after[1])) if after else START
    found, concern, viewer = None, None, viewer_of(request)
    if "\0" not in member_id:
        found, concern = bridge.call(lambda runtime: _look(runtime, viewer, group_id, member_id, start))
    if found is None or (found.present is None and not found.events and found.given_out is None):
        names = f"none of the newest {number(EVENTS_SEARCHED)} events of the group names it."
        raise Absent("No such member", f"{group_id} has no member {member_id}, and {names}")
    context: dict[str, Any] = {
        "now": found.now,
        "group": found.header,
        "held": found.header is not None and found.header.is_held(found.now),
        "member_id": member_id,
        "events": lines(found.events),
        "history_url": f"{group_url(group_id)}/events",
        "stream": f"{reverse('frontend:live')}?group={quote(group_id, safe='')}",
        "pace": Pace(every_ms=5_000, gap_ms=1_000),
    }
    if concern is None:
        context |= gone(found)
        # A page that is already open gets its panel with status 200: htmx would not show one with an error status.
        status, title = 200 if is_panel(request) else 404, f"{member_id} · {group_id}"
        return show(request, "pages/member/member", context, section="groups", status=status, title=title)
    kick = f"{group_url(group_id)}/kick?{urlencode({'member': member_id})}"
    context |= present(found, viewer, concern, window_ms=thresholds(settings.KCOORD).flapping_window_ms)
    context |= {"action": action(viewer, "Remove the member…", kick, KICK, group_id, bad=True)}
    context |= _pages(request, found, after is not None)
    title = f"{context['who'] or member_id} · {group_id}"
    return show(request, "pages/member/member", context, section="groups", title=title)


async def _look(
    runtime: Runtime, viewer: Viewer, group_id: str, member_id: str, after: tuple[str, int]
) -> tuple[MemberPage, Concerns | None]:
    found = await member_page(runtime.db, viewer, group_id, member_id, after)
    return found, await concerns(runtime, viewer, found)


def _pages(request: HttpRequest, found: MemberPage, further: bool) -> dict[str, str | None]:
    """Pages of its partitions lead on, and back to the first."""
    rows = found.present.partitions if found.present else ()
    more = found.present is not None and found.present.more
    return {
        "first_url": request.path if further else None,
        "next_url": cursor_address(request, "after", rows[-1][0].topic, rows[-1][0].partition) if more else None,
    }


LONGEST_MEMBER_ID = 300


@page
def member_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The partitions that a member owns or is meant to have. Its id is passed in the query: it may contain a slash."""
    member_id, viewer = text(request, "member", LONGEST_MEMBER_ID), viewer_of(request)

    async def read(runtime: Runtime, after: tuple[str, int] | None) -> tuple[Sequence[Any], tuple[str, int] | None]:
        found = await partitions_from(runtime.db, viewer, group_id, member_id, after or START, MAX_LIMIT)
        if found is None:
            raise ProtocolError(Error.UNKNOWN_MEMBER_ID, f"{group_id} has no member {member_id}.")
        some, more = found
        last = some[-1][0] if more else None
        rows = [{"of": row, "change": what_of(row)[0], "behind": lag} for row, lag in some]
        return rows, (last.topic, last.partition) if last else None

    columns = """
        topic=of.topic partition=of.partition owned=of.held change committed_offset=of.committed_offset
        @committed_at=of.commit_timestamp log_start_offset=of.log_start_offset log_end_offset=of.log_end_offset
        lag=behind.lag time_lag_ms=behind.time_lag.ms time_lag_at_least_ms=behind.time_lag.at_least_ms
        @watermark_at=of.sampled_at
    """
    return csv_of(f"{group_id}-partitions", columns, all_rows(read))


ANY = -1
"""Any partition of a topic, where a verdict does not name all of its partitions."""


@dataclass(frozen=True, slots=True)
class Concerns:
    """What a member is doing, and the verdicts that concern it, the worst first."""

    state: State
    verdicts: Sequence[Verdict] = ()


async def concerns(runtime: Runtime, viewer: Viewer, page: MemberPage) -> Concerns | None:
    """None: its group does not have the member. Raises ProtocolError COORDINATOR_NOT_AVAILABLE.

    Verdicts by members are as of the page, those by offsets as last stored.
    """
    header, present = page.header, page.present
    if header is None or present is None:
        return None
    member, service = present.described.member, runtime.get(VerdictChecks)
    async with runtime.db.snapshot() as connection:
        verdicts = await service.of_group(connection, header.pk, page.now, (Check.MEMBERS,))
        verdicts = [verdict for verdict in verdicts if not verdict.topic or viewer.sees_topic(verdict.topic)]
        asked = _named([verdict for verdict in verdicts if verdict.kind is VerdictKind.STALLED])
        parameters = {
            "pk": header.pk,
            "member_id": member.member_id,
            "topics": [topic for topic, _ in asked],
            "partitions": [partition for _, partition in asked],
        }
        owned = set(await runtime.db.column(connection, Q.topics_owned_of, parameters)) if asked else set()
    is_late = _is_late(service, verdicts, member, page.now)
    now = state_of(header, member, page.now, is_late=is_late)
    found = [_own(verdict, member) for verdict in verdicts if _concerns(verdict, now, owned, is_late=is_late)]
    return Concerns(now, found)


def state_of(header: GroupHeader, member: Member, now: Millis, *, is_late: bool) -> State:
    """What a member of a group of any type is doing."""
    if header.type != "classic":
        return consumer_member_state(member, header.assignment_epoch, now, is_late=is_late)
    return member_state(member, header.state, now, is_late=is_late)


def _is_late(service: VerdictChecks, verdicts: Sequence[Verdict], member: Member, now: Millis) -> bool:
    if all(verdict.kind is not VerdictKind.LATE for verdict in verdicts):
        return False  # while sessions do not count, nobody is late
    armed, ends = member.last_heartbeat_at, member.session_deadline
    return armed is not None and ends is not None and service.is_late(armed, ends, now)


def _named(stalled: Sequence[Verdict]) -> list[tuple[str, int]]:
    """The partitions that verdicts name, by topic; a verdict on more than it names is on any of its topic."""
    return [
        (verdict.topic, partition)
        for verdict in stalled
        for partition in ([ANY] if verdict.number > len(verdict.names) else [int(name) for name in verdict.names])
    ]


def _concerns(verdict: Verdict, state: State, owned: set[str], *, is_late: bool) -> bool:
    match verdict.kind:
        case VerdictKind.LATE:
            return is_late
        case VerdictKind.STALLED:
            return verdict.topic in owned
        case VerdictKind.STUCK:
            return state.tone != "good"
        case _:
            return False


def _own(verdict: Verdict, member: Member) -> Verdict:
    """LATE is about this member alone; the others are about the group."""
    if verdict.kind is not VerdictKind.LATE or member.last_heartbeat_at is None:
        return verdict
    return Verdict(
        VerdictKind.LATE, member.last_heartbeat_at, due_at=member.session_deadline, number=1, names=(member.member_id,)
    )


LOST = Due("It loses its partitions", "It should have lost its partitions")
SESSION_ENDS = Due("Session ends", "Session ended")
NAMES_SHOWN = 48
"""Subscribed topic names that are shown; the others are counted."""


@dataclass(frozen=True, slots=True)
class PartitionLine:
    """A partition in the table. `what`: what the member does with it, `tone` as for states; "" if it just has it."""

    row: MemberPartition
    lag: PartitionLag
    what: str
    tone: str
    first_of_topic: bool


@dataclass(frozen=True, slots=True)
class Subscribed:
    """What a member subscribes to; `unknown` are not in the catalogue. `readable`: its metadata says so.

    `matched`: how many topics its regular expression matches, in words.
    """

    names: Sequence[str] = ()
    unknown: Sequence[str] = ()
    more: int = 0
    regex: str = ""
    matched: str = ""
    readable: bool = True


def present(page: MemberPage, viewer: Viewer, concerns: Concerns, *, window_ms: Millis) -> dict[str, Any]:
    """The context of a member that its group has. `window_ms`: in which time rebalances count as flapping."""
    found, header = page.present, page.header
    assert found is not None
    assert header is not None
    described = found.described
    member, consumer = described.member, header.type != "classic"
    who = client_at(member.client_id, member.client_host)
    return {
        "member": member,
        "who": who,
        "detail": found.detail,
        "protocol": _protocol(found, header),
        "state": concerns.state,
        "verdicts": _verdicts(concerns, header, {member.member_id: who} if who else {}, window_ms),
        "leads": not consumer and member.member_id == header.leader_id,
        "away": member.member_epoch == AWAY_EPOCH,
        "consumer": consumer,
        "epoch_word": generation_word(header),
        "behind": consumer and member.member_epoch not in (header.assignment_epoch, AWAY_EPOCH),
        "previous_epoch": described.previous_epoch,
        "session_ends": SESSION_ENDS,
        "deadlines": _deadlines(found, header),
        "rebalance_timeout_ms": described.rebalance_timeout_ms,
        "subscribed": _subscribed(found, viewer),
        "totals": found.totals,
        "rate": found.rate,
        "summed": number(SUMMED) if member.owned > found.totals.partitions else "",
        "partitions": _lines(found.partitions),
        "announcement": f"{who} is {concerns.state.label}, {plural(member.owned, 'partition')}",
    }


def _verdicts(concerns: Concerns, header: GroupHeader, names: Names, window_ms: Millis) -> list[VerdictLine]:
    """Of a late member says what happens to it, not to the first of several. `names`: that of the member."""
    found = verdict_lines(summaries(concerns.verdicts), header.state, window_ms=window_ms, explained=True, names=names)
    return [
        replace(line, next=LOST if line.due_at else None) if line.state is KINDS[VerdictKind.LATE] else line
        for line in found
    ]


def _protocol(found: Present, header: GroupHeader) -> str:
    if header.type == "share":
        return "share"
    if found.detail is not None:
        return "classic, in a consumer group" if found.detail.classic else "consumer"
    kind = f", {header.protocol_type}" if header.protocol_type not in (None, "", "consumer") else ""
    return f"classic{kind}"


def _deadlines(found: Present, header: GroupHeader) -> list[tuple[Millis, Due]]:
    """What happens to it when unless it acts, the earliest first, besides the end of its session."""
    detail, member = found.detail, found.described.member
    named: list[tuple[Millis, str]] = []
    if detail is not None and detail.rebalance_deadline is not None:
        named.append((detail.rebalance_deadline, "has not given up its partitions"))
    if detail is not None and detail.rejoin_deadline is not None:
        named.append((detail.rejoin_deadline, "has not joined again"))
    waits = header.state == "PreparingRebalance" and not member.awaiting_join and header.type == "classic"
    if waits and header.join_deadline is not None:
        named.append((header.join_deadline, "has not joined again"))
    if header.state == "CompletingRebalance" and member.pending_sync and header.sync_deadline is not None:
        named.append((header.sync_deadline, "has not synced"))
    return [
        (at, Due(f"removed if it {what}", f"should have been removed: it {what}"))
        for at, what in sorted(named, key=lambda one: one[0])
    ]


def _subscribed(found: Present, viewer: Viewer) -> Subscribed:
    detail = found.detail
    if detail is not None:
        matched = "not resolved yet" if detail.matched is None else f"matches {plural(detail.matched, 'topic')}"
        return Subscribed(
            [name for name in detail.topic_names if name not in found.unknown_topics],
            sorted(found.unknown_topics),
            detail.topic_count - len(detail.topic_names),
            detail.regex,
            matched,
        )
    metadata = found.described.metadata
    read = decode_subscription(bytes(metadata)) if metadata else None
    if read is None:
        return Subscribed(readable=False)
    names = sorted(topic for topic in read.topics if viewer.sees_topic(topic))
    return Subscribed(names[:NAMES_SHOWN], more=max(len(names) - NAMES_SHOWN, 0))


def _lines(partitions: Sequence[WithLag]) -> list[PartitionLine]:
    shown, topic = [], None
    for row, lag in partitions:
        what, tone = what_of(row)
        shown.append(PartitionLine(row, lag, what, tone, row.topic != topic))
        topic = row.topic
    return shown


def what_of(row: MemberPartition) -> tuple[str, str]:
    """What a member does with a partition and its tone; "" if it just has it."""
    if not row.held:
        return "is to get", "busy"
    if row.pending:
        return "must give up", "warn"
    return ("will give up", "warn") if row.wanted is False else ("", "")


def gone(page: MemberPage) -> dict[str, Any]:
    """The context of a member that its group does not have."""
    joined = _joined(page.events)
    return {
        "given_out": page.given_out,
        "last": lines(page.events[:1]),
        "client_id": joined.get("client_id", ""),
        "client_host": joined.get("client_host", ""),
        "instance_id": joined.get("instance_id") or "",
    }


def _joined(events: Sequence[Event]) -> Any:
    """What the member said about itself when it last joined, if that event is kept."""
    for event in events:
        if event.kind == EventKind.MEMBER_JOINED.value:
            return event.detail
    return {}
