"""What operators do to a group: each action has its own page that says what will happen, and a form that does it.

Each takes what the endpoint of `/v1` takes that does the same (`frontend.ui.allowed`). If the service refuses, the page
shows the reason and the form as it was filled in.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from frontend.ui import commands as as_command
from frontend.ui.allowed import DELETE_GROUP, HOLD, KICK, require
from frontend.ui.commands import service_url
from frontend.ui.form import (
    LONGEST_REASON,
    Refusal,
    _successful,
    actor,
    attempt,
    delete_now,
    done,
    form,
    gone,
    header,
    hold_choices,
    hold_now,
    release_now,
)
from frontend.ui.page import form_page, group_url, member_names
from frontend.ui.viewer import viewer_of
from frontend.ui.wording import plural
from groups.core.model.replies import Done
from groups.engine.service import GroupService
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError


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
    return form(
        request, "pages/actions/delete_group", brief, refusal, {"commands": [as_command.delete_group(url, group_id)]}
    )


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
    return form(request, "pages/actions/hold_group", brief, refusal, extra)


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
    return form(request, "pages/actions/kick_member", brief, refusal, context)


async def _kick(runtime: Runtime, request: HttpRequest, group_id: str, member_id: str) -> Done:
    if not member_id:
        raise ProtocolError(Error.UNKNOWN_MEMBER_ID, "member_id is missing.")
    reason = request.POST.get("reason", "").strip()[:LONGEST_REASON]
    groups = runtime.get(GroupService)
    return _successful(await groups.kick(group_id, member_id, principal=actor(request), reason=reason))
