"""Pins, and forms that create or delete committed offsets without a plan."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.urls import reverse

from frontend.pages.offsets.form import Ticks, ticks
from frontend.pages.offsets.reads import tick_list
from frontend.pages.offsets.reset import tick_line
from frontend.ui import commands as as_command
from frontend.ui.commands import service_url
from frontend.ui.form import LONGEST_REASON, Refusal, actor, attempt, done, existing, form
from frontend.ui.page import address, form_page, group_url, page, show, text
from frontend.ui.reads import now_ms
from frontend.ui.table import csv_of, rows_of
from frontend.ui.viewer import CREATE_GROUP, DELETE_OFFSETS, PIN, missing, require, viewer_of
from frontend.ui.wording import plural
from groups.topics import TopicService, partition_counts
from kcoord.access.rights import Principal
from kcoord.database.paging import MAX_LIMIT
from kcoord.door.http.paths import check_group_id
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.offset_file import read_offset_file
from offsets.commits.deletion import OffsetDeletion
from offsets.commits.retention.pins import PinService
from offsets.core.deletion import OffsetDelete, OffsetDeleteReply
from offsets.plans.creation import CreatedGroup, GroupCreation, NewGroup, StartOffset
from offsets.plans.sources import check_readable


@form_page("offsets.pin", remove="offsets.unpin")
def group_pins(request: HttpRequest, group_id: str) -> HttpResponse:
    """List, set and remove pins. The group need not exist."""
    viewer = viewer_of(request)
    refusal = Refusal()
    if request.method == "POST":
        require(request, PIN, group_id)
        changed, refusal = attempt(lambda runtime: _change(runtime, request, group_id))
        if changed is not None:
            return HttpResponseRedirect(f"{group_url(group_id)}/pins")
    cursor = text(request, "after") or None
    found = bridge.call(lambda runtime: runtime.get(PinService).pins(group_id, cursor=cursor, visible=viewer.topics))
    topic = request.POST.get("topic", "").strip() or None if request.method == "POST" else "TOPIC"
    reason = request.POST.get("reason", "").strip()[:LONGEST_REASON]
    context = {
        "pins": found.items,
        "next_url": address(request, after=found.next_cursor) if found.next_cursor else None,
        "refusal": refusal,
        "lacking": missing(viewer, PIN, group_id),
        "given": request.POST,
        "commands": as_command.pins(service_url(request), group_id, topic, reason),
        "now": now_ms(),
    }
    return show(request, "pages/offsets/pins", context, section="groups", status=refusal.status)


async def _change(runtime: Runtime, request: HttpRequest, group_id: str) -> bool:
    pins, topic = runtime.get(PinService), request.POST.get("topic", "").strip() or None
    if topic is not None:
        viewer_of(request).principal.require_described(topic)
    if request.POST.get("act") == "remove":
        await pins.unpin(group_id, topic, principal=actor(request))
    else:
        reason = request.POST.get("reason", "").strip()[:LONGEST_REASON]
        await pins.pin(group_id, topic, principal=actor(request), reason=reason)
    return True


@form_page("group.create")
def create_group(request: HttpRequest) -> HttpResponse:
    """Create a group without members, with the offsets at which it begins to read."""
    refusal, group_id = Refusal(), request.POST.get("group_id", "").strip()
    require(request, CREATE_GROUP, group_id or None)
    written = request.POST.get("offsets", "")
    if request.method == "POST":
        made, refusal = attempt(lambda runtime: _create(runtime, viewer_of(request).principal, group_id, written))
        if made is not None:
            told = f"Created {group_id}." if made.created else f"{group_id} existed already, with these offsets."
            return done(request, told, group_url(group_id))
    context = {
        "now": now_ms(),
        "refusal": refusal,
        "given": request.POST,
        "commands": [as_command.create_group(service_url(request), group_id or "GROUP", [("TOPIC", 0, 0)])],
        "groups_url": reverse("frontend:groups"),
    }
    return show(request, "pages/offsets/create_group", context, section="groups", status=refusal.status)


async def _create(runtime: Runtime, principal: Principal, group_id: str, written: str) -> CreatedGroup:
    check_group_id(group_id)
    lines = read_offset_file(written).of_group(group_id) if written.strip() else {}
    offsets = [StartOffset(topic, partition, offset) for (topic, partition), offset in lines.items()]
    check_readable({topic for topic, _ in lines}, principal)
    return await runtime.get(GroupCreation).create(NewGroup(group_id, offsets, {}, principal.name))


@form_page("offsets.delete")
def delete_offsets(request: HttpRequest, group_id: str) -> HttpResponse:
    """Delete the offsets of chosen partitions. The group's id has to be typed: this cannot be undone."""
    require(request, DELETE_OFFSETS, group_id)
    brief, viewer = existing(request, group_id), viewer_of(request)
    refusal, given = Refusal(), request.POST if request.method == "POST" else request.GET
    if request.method == "POST" and request.POST.get("confirm", "").strip() != group_id:
        refusal = Refusal("Type the group's id to confirm: nothing was deleted.", 400)
    elif request.method == "POST":
        reply, refusal = attempt(lambda runtime: _delete(runtime, request, group_id))
        if reply is not None:
            return done(request, _told(reply, group_id), group_url(group_id))
    found = bridge.call(lambda runtime: tick_list(runtime.db, viewer, group_id))
    ticked, wrong = attempt_ticks(given)
    context = {
        "refusal": refusal if refusal.text else wrong,
        "ticks": [tick_line(topic, found, ticked) for topic in found.topics],
        "topics": ticked.lines(without=[topic.topic for topic in found.topics]),
        "more_topics": found.more,
        "commands": _commands(request, group_id, ticked),
    }
    return form(request, "pages/offsets/delete_offsets", brief, refusal, context)


def attempt_ticks(given: QueryDict) -> tuple[Ticks, Refusal]:
    """What is ticked; nothing and the reason if it cannot be read."""
    try:
        return ticks(given), Refusal()
    except ProtocolError as error:
        return Ticks(), Refusal(error.detail, 400)


def _commands(request: HttpRequest, group_id: str, ticked: Ticks) -> list[as_command.Command]:
    scope = [(topic, tuple(sorted(some))) for topic, some in ticked.chosen.items() if some]
    return [as_command.delete_offsets(service_url(request), group_id, scope or [("TOPIC", (0, 1))])]


async def _delete(runtime: Runtime, request: HttpRequest, group_id: str) -> OffsetDeleteReply:
    scope = ticks(request.POST).scope()
    if not scope:
        raise ProtocolError(Error.INVALID_REQUEST, "Topics: tick at least one topic or partition.")
    check_readable({topic for topic, _ in scope}, viewer_of(request).principal)
    counts = partition_counts(await runtime.get(TopicService).current(), [topic for topic, _ in scope])
    unknown = [topic for topic, _ in scope if topic not in counts]
    if unknown:
        raise ProtocolError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"Topics: there is no topic {unknown[0]!r}.")
    partitions = tuple((t, n) for t, some in scope for n in (range(counts[t]) if some is None else some))
    reply = await runtime.get(OffsetDeletion).delete(OffsetDelete(group_id, partitions, principal=actor(request)))
    if reply.error is not Error.NONE:
        raise ProtocolError(reply.error, reply.detail)
    refused = sorted({f"{topic}: {error.value.help}" for topic, _, error in reply.results if error is not Error.NONE})
    if refused and not reply.deleted:
        raise ProtocolError(Error.INVALID_REQUEST, "Nothing was deleted. " + " ".join(refused[:10]))
    return reply


def _told(reply: OffsetDeleteReply, group_id: str) -> str:
    kept = sorted({topic for topic, _, error in reply.results if error is not Error.NONE})
    more = f" Kept, because members read the topic or it has no such partition: {', '.join(kept[:10])}." if kept else ""
    return f"Deleted {plural(reply.deleted, 'committed offset')} of {group_id}.{more}"


@page
def pins_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The pins of a group, that of all topics first."""
    topics = viewer_of(request).topics
    found = rows_of(
        lambda runtime, cursor: runtime.get(PinService).pins(group_id, cursor=cursor, limit=MAX_LIMIT, visible=topics)
    )
    return csv_of(f"{group_id}-pins", "topic @pinned_at pinned_by reason", found)
