"""A group at one instant, for an incident's ticket: as data, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from frontend.pages.group.explained import NextTimer
from frontend.pages.group.look import Look, look
from frontend.pages.group.map import names
from frontend.pages.group.present import group
from frontend.pages.group.reads import GroupPage, Limits
from frontend.ui.episodes import COLUMNS, Episode
from frontend.ui.events import lines
from frontend.ui.labels import shown as shown_labels
from frontend.ui.page import BadAddress, group_url, missing, page
from frontend.ui.reads import History, Wanted, history, members_are_hidden
from frontend.ui.report import TYPES, Report, code, escaped, report, table
from frontend.ui.rows import Member, Millis
from frontend.ui.states import State, state
from frontend.ui.table import as_json, files
from frontend.ui.verdicts import VerdictLine
from frontend.ui.verdicts import lines as verdict_lines
from frontend.ui.viewer import Viewer, viewer_of
from frontend.ui.wording import duration, iso, number, ranges
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.verdicts import summaries, thresholds


def snapshot(
    page: GroupPage,
    state: State,
    explanation: str,
    timer: NextTimer | None,
    verdicts: Sequence[VerdictLine],
    rebalances: Sequence[Episode],
    url: str,
    labels: Mapping[str, str],
) -> Report:
    """Everything as JSON can say it; instants are RFC 3339, in UTC. `url`: the page of the group."""
    header, totals = page.header, page.totals
    return {
        "group_id": header.group_id,
        "url": url,
        "taken_at": iso(page.now),
        "labels": dict(labels),
        "type": header.type,
        "state": header.state,
        "state_label": state.label,
        "state_since": iso(header.state_since),
        "generation_id": header.generation_id,
        "protocol_name": header.protocol_name,
        "leader_id": header.leader_id,
        "explanation": explanation,
        "next_timer": None if timer is None else _timer(timer, page.now),
        "verdicts": [as_json(VERDICTS, verdict) for verdict in verdicts],
        "lag": {"records": totals.lag, "partitions": totals.partitions, "measured": totals.measured},
        "members": [_member(page, member) for member in page.members],
        "more_members": page.counts.members - len(page.members),
        "partitions": [as_json(PARTITION_COLUMNS, row) for row in page.offsets],
        "more_partitions": totals.partitions - len(page.offsets),
        "rebalances": [_rebalance(episode, page.now) for episode in rebalances],
        "events": [as_json(EVENTS, line) for line in lines(page.events)],
    }


MEMBER_COLUMNS = files("""
    member_id group_instance_id=instance_id client_id client_host @last_heartbeat_at
    @session_expires_at=session_deadline owned
""")
PARTITION_COLUMNS = files("""
    topic partition owner committed_offset @committed_at=commit_timestamp log_end_offset @watermark_at=sampled_at lag
""")
VERDICTS = files("kind=state.name @since text advice @due_at")
EVENTS = files("@at kind text reason=note member_id")


def _timer(timer: NextTimer, now: Millis) -> Report:
    return {"at": iso(timer.at), "what": timer.what.seen(timer.at, now), "overdue": timer.late}


def _member(page: GroupPage, member: Member) -> Report:
    owned: dict[str, list[int]] = {}
    for part in page.owned:
        if part.member_id == member.member_id:
            owned.setdefault(part.topic, []).extend(part.partitions)
    partitions = {topic: sorted(numbers) for topic, numbers in owned.items()}
    return as_json(MEMBER_COLUMNS, member, is_late=member.member_id in page.late, partitions=partitions)


def _rebalance(episode: Episode, now: Millis) -> Report:
    phases = {phase.name: phase.length_ms for phase in episode.phases}
    return as_json(files(COLUMNS), episode, length_ms=episode.length_ms(now), phases=phases)


def markdown(taken: Report) -> list[str]:
    """The snapshot in blocks of Markdown."""
    state, since = taken["state_label"], taken["state_since"]
    return [
        f"# Consumer group {code(taken['group_id'])}",
        f"Taken at {taken['taken_at']} from <{taken['url']}>.",
        f"**{state}** since {since}, generation {taken['generation_id']:,}. {escaped(taken['explanation'])}",
        *([_labels(taken["labels"])] if taken["labels"] else ()),
        *(_attention(taken["verdicts"]) if taken["verdicts"] else ()),
        f"Lag: {_lag(taken['lag'])}.",
        *table("Members", MEMBERS, map(_member_cells, taken["members"]), taken["more_members"]),
        *table("Partitions", PARTITIONS, map(_partition_cells, taken["partitions"]), taken["more_partitions"]),
        *table("Rebalances", REBALANCES, map(_rebalance_cells, taken["rebalances"])),
        *table("Events", ("At", "What"), ((event["at"], escaped(_told(event))) for event in taken["events"])),
    ]


def _labels(labels: Mapping[str, str]) -> str:
    return "\n".join(f"- {escaped(name)}: {escaped(value)}" for name, value in labels.items())


MEMBERS = ("Member", "Client", "Last heartbeat", "Session ends", "Owns")
PARTITIONS = ("Partition", "Owner", "Committed", "At", "Log end", "Lag")
REBALANCES = ("Began", "Trigger", "Members", "Took", "Outcome")


def _attention(verdicts: Iterable[Report]) -> list[str]:
    told = (f"- **{verdict['kind']}** since {verdict['since']}: {escaped(verdict['text'])}" for verdict in verdicts)
    return ["## Needs attention", "\n".join(told)]


def _lag(lag: Report) -> str:
    if lag["records"] is None:
        return "not known"
    return f"{number(lag['records'])} records in {lag['measured']:,} of {lag['partitions']:,} partitions"


def _member_cells(member: Report) -> tuple[str, ...]:
    owned = "; ".join(f"{escaped(topic)} {ranges(numbers, 12)}" for topic, numbers in member["partitions"].items())
    where = escaped("@".join(part for part in (member["client_id"], member["client_host"]) if part))
    late = ", late" if member["is_late"] else ""
    heard = f"{member['last_heartbeat_at'] or '–'}{late}"
    return code(member["member_id"]), where, heard, member["session_expires_at"] or "–", owned or "nothing"


def _partition_cells(row: Report) -> tuple[str, ...]:
    numbers = [
        "–" if row[name] is None else number(row[name]) for name in ("committed_offset", "log_end_offset", "lag")
    ]
    owner = code(row["owner"]) if row["owner"] else "nobody"
    partition = f"{escaped(row['topic'])}-{row['partition']}"
    return partition, owner, numbers[0], row["committed_at"] or "–", numbers[1], numbers[2]


def _rebalance_cells(episode: Report) -> tuple[str, ...]:
    counts = ("?" if count is None else str(count) for count in (episode["members_before"], episode["members_after"]))
    trigger = episode["trigger"] + (f": “{episode['reason']}”" if episode["reason"] else "")
    return (
        episode["began_at"],
        escaped(trigger),
        " → ".join(counts),
        duration(episode["length_ms"]),
        episode["outcome"],
    )


def _told(event: Report) -> str:
    return str(event["text"]) + (f": “{event['reason']}”" if event["reason"] else "")


MOST_REBALANCES = 10
LIMITS = Limits(members=200, offsets=500, events=50, topics=200, cells=20_000, member_topics=50)


@page
def group_snapshot(request: HttpRequest, group_id: str, kind: str) -> HttpResponseBase:
    """The group as it is now."""
    if kind not in TYPES:
        raise BadAddress(f"There is no snapshot of this kind: {', '.join(TYPES)}.")
    viewer = viewer_of(request)
    found = bridge.call(lambda runtime: _read(runtime, viewer, group_id))
    if found is None:
        return missing(request, group_id)
    looked, past = found
    context = group(looked.page, 1, {}, looked.assignors, looked.rule)
    taken = snapshot(
        looked.page,
        state(looked.page.header.state),
        context["explanation"],
        context["next_timer"],
        verdict_lines(
            summaries(looked.verdicts),
            looked.page.header.state,
            window_ms=thresholds(settings.KCOORD).flapping_window_ms,
            explained=True,
            names=names(looked.page),
        ),
        past.shown[:MOST_REBALANCES],
        request.build_absolute_uri(group_url(group_id)),
        {label.name: label.value for label in shown_labels(looked.labels)},
    )
    return report(group_id, kind, taken, markdown(taken), at=taken["taken_at"][:19].replace(":", ""))


async def _read(runtime: Runtime, viewer: Viewer, group_id: str) -> tuple[Look, History] | None:
    looked = await look(runtime, viewer, group_id, LIMITS)
    if looked is not None and looked.page.members_hidden:
        raise members_are_hidden(group_id)
    if looked is not None and looked.failed:
        raise ProtocolError(
            Error.COORDINATOR_NOT_AVAILABLE, f"could not be read: {', '.join(looked.failed)}; try again"
        )
    return None if looked is None else (looked, await history(runtime.db, viewer, group_id, Wanted()))
