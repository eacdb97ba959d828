"""What operators do to a group: each action has its own page that says what will happen, and a form that does it.

Each takes what the endpoint of `/v1` takes that does the same (`frontend.allowed`). If the service refuses, the page
shows the reason and the form as it was filled in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from frontend import commands as as_command
from frontend import queries
from frontend.allowed import DELETE_GROUP, HOLD, KICK, require
from frontend.commands import service_url
from frontend.states import state
from frontend.viewer import viewer_of
from frontend.views.groups import group_url
from frontend.views.page import form_page, member_names, message, show
from frontend.wording import duration, plural, ranges
from groups.core.model.replies import Done, HoldReply
from groups.engine.service import GroupService
from kcoord.audit.refusals import is_temporary
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

T = TypeVar("T")

LONGEST_REASON = 1_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an action was refused: a sentence, the items it lists, and the HTTP status.

    `is_temporary`: it was not carried out because of an outage, or because another node has to.
    """

    text: str = ""
    status: int = 200
    listed: Sequence[str] = ()
    is_temporary: bool = False


def attempt(work: Callable[[Runtime], Awaitable[T]]) -> tuple[T | None, Refusal]:
    """Perform an action: its result, or None and the refusal."""
    try:
        return bridge.call(work), Refusal()
    except ProtocolError as error:
        status = getattr(error, "status", error.error.status)
        problems = error.fields.get("problems")
        if isinstance(problems, Sequence):
            return None, Refusal("No plan was made.", status, _folded(problems))
        return None, Refusal(error.detail, status, is_temporary=is_temporary(error.action))


def _folded(problems: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line per topic and problem: `orders 0–9: where its log was is not known`."""
    found: dict[tuple[str, str], list[int]] = {}
    for problem in problems:
        found.setdefault((str(problem["topic"]), str(problem["problem"])), []).append(int(problem["partition"]))
    return [f"{topic} {ranges(sorted(numbers), 12)}: {text}" for (topic, text), numbers in found.items()]


def done(request: HttpRequest, text: str, url: str) -> HttpResponse:
    """The action succeeded: say so on the next page."""
    messages.success(request, text)
    return HttpResponseRedirect(url)


def actor(request: HttpRequest) -> str:
    """The name recorded in events and the journal."""
    return viewer_of(request).principal.name


def header(request: HttpRequest, group_id: str) -> queries.GroupBrief | None:
    """The group that an action is about, None if it does not exist for this person."""
    viewer = viewer_of(request)
    return bridge.call(lambda runtime: queries.group_brief(runtime.db, viewer, group_id))


def gone(request: HttpRequest, group_id: str) -> HttpResponse:
    """The group does not exist."""
    return message(request, 404, "No such group", f"There is no group “{group_id}”; it may have been deleted.")


def form(
    request: HttpRequest, name: str, brief: queries.GroupBrief, refusal: Refusal, extra: Mapping[str, Any]
) -> HttpResponse:
    """The page of an action, with the refusal of the last attempt, if any."""
    context = {
        "group": brief,
        "group_id": brief.group_id,
        "group_url": group_url(brief.group_id),
        "state": state(brief.state, held=brief.held),
        "refusal": refusal,
        "given": request.POST,
        "now": brief.now,
    }
    return show(request, name, {**context, **extra}, section="groups", status=refusal.status)


@form_page
def delete_group(request: HttpRequest, group_id: str) -> HttpResponse:
    """Delete an empty group with its offsets. Its name has to be typed: the deletion cannot be undone."""
    require(request, DELETE_GROUP, group_id)
    brief, url = header(request, group_id), service_url(request)
    if brief is None:
        return gone(request, group_id)
    refusal = Refusal()
    if request.method == "POST":
        if request.POST.get("confirm", "").strip() != group_id:
            refusal = Refusal("That is not the id of this group: nothing was deleted.", 400)
        else:
            deleted, refusal = attempt(lambda runtime: delete_now(runtime, group_id, actor(request)))
            if deleted is not None:
                text = f"Deleted {group_id} with {plural(brief.offsets, 'committed offset')}."
                return done(request, text, group_url(group_id))
    return form(request, "delete_group", brief, refusal, {"commands": [as_command.delete_group(url, group_id)]})


async def delete_now(runtime: Runtime, group_id: str, principal: str) -> Done:
    """Delete a group with its offsets. Raises ProtocolError."""
    return _successful(await runtime.get(GroupService).delete(group_id, principal=principal))


HOLDS = (
    (60_000, "1 minute"),
    (300_000, "5 minutes"),
    (900_000, "15 minutes"),
    (3_600_000, "1 hour"),
    (21_600_000, "6 hours"),
    (86_400_000, "1 day"),
)
"""How long a group can be held, within the setting `group.max.hold.ms`."""
HOLD_MS = 900_000
"""The duration that forms and commands of a reset begin with."""


@form_page
def hold_group(request: HttpRequest, group_id: str) -> HttpResponse:
    """Keep members out for a while, or let them in again."""
    require(request, HOLD, group_id)
    brief = header(request, group_id)
    if brief is None:
        return gone(request, group_id)
    refusal = Refusal()
    if request.method == "POST" and request.POST.get("act") == "release":
        released, refusal = attempt(lambda runtime: release_now(runtime, group_id, actor(request)))
        if released is not None:
            return done(request, f"The hold has ended: members can join {group_id} again.", group_url(group_id))
    elif request.method == "POST":
        held, refusal = attempt(lambda runtime: hold_now(runtime, request, group_id))
        if held is not None:
            text = f"{group_id} is held: no member can join; {plural(held.removed, 'member')} removed."
            return done(request, text, group_url(group_id))
    choices = hold_choices()
    url, chosen = service_url(request), request.POST.get("duration_ms")
    commands = [as_command.hold(url, group_id, choices[0][0]), as_command.end_hold(url, group_id)]
    extra = {"choices": choices, "chosen": chosen, "commands": commands}
    return form(request, "hold_group", brief, refusal, extra)


def hold_choices() -> list[tuple[int, str]]:
    """For how long a group can be held: milliseconds and words."""
    most = settings.KCOORD.int("group.max.hold.ms")
    return [(ms, label) for ms, label in HOLDS if ms <= most] or [(most, duration(most))]


def hold_duration(request: HttpRequest) -> int:
    """How long the form of the request says to hold, in ms. Raises ProtocolError INVALID_REQUEST."""
    written = request.POST.get("duration_ms", "")
    if not written.isascii() or not written.isdigit() or len(written) > 12:
        raise ProtocolError(Error.INVALID_REQUEST, "Choose the duration of the hold.")
    return int(written)


async def hold_now(runtime: Runtime, request: HttpRequest, group_id: str) -> HoldReply:
    """Hold a group as the form of the request says. Raises ProtocolError."""
    lasting = hold_duration(request)
    reason = request.POST.get("reason", "").strip()[:LONGEST_REASON]
    reply = await runtime.get(GroupService).hold(group_id, lasting, principal=actor(request), reason=reason)
    if reply.error is not Error.NONE:
        raise ProtocolError(reply.error, reply.detail)
    return reply


async def release_now(runtime: Runtime, group_id: str, principal: str) -> Done:
    """End the hold of a group. Raises ProtocolError."""
    return _successful(await runtime.get(GroupService).release(group_id, principal=principal))


@form_page
def kick_member(request: HttpRequest, group_id: str) -> HttpResponse:
    """Remove one member. Its id is passed in the query: it may contain a slash."""
    require(request, KICK, group_id)
    brief = header(request, group_id)
    if brief is None:
        return gone(request, group_id)
    member_id = request.GET.get("member", "")
    refusal = Refusal()
    if request.method == "POST":
        kicked, refusal = attempt(lambda runtime: _kick(runtime, request, group_id, member_id))
        if kicked is not None:
            return done(request, f"Removed {member_id}. It can join again.", group_url(group_id))
    commands = [as_command.kick(service_url(request), group_id, member_id)] if member_id else []
    names = member_names(viewer_of(request), group_id, {member_id})
    context = {"member_id": member_id, "name": names.get(member_id, ""), "commands": commands}
    return form(request, "kick_member", brief, refusal, context)


async def _kick(runtime: Runtime, request: HttpRequest, group_id: str, member_id: str) -> Done:
    if not member_id:
        raise ProtocolError(Error.UNKNOWN_MEMBER_ID, "member_id is missing.")
    reason = request.POST.get("reason", "").strip()[:LONGEST_REASON]
    groups = runtime.get(GroupService)
    return _successful(await groups.kick(group_id, member_id, principal=actor(request), reason=reason))


def _successful(reply: Done) -> Done:
    if reply.error is not Error.NONE:
        raise ProtocolError(reply.error, reply.detail)
    return reply
