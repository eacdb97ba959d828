"""Forms that change something: the attempt, its refusal, and what several of them do to a group.

If the service refuses, the page shows the reason and the form as it was filled in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from frontend.ui.page import Absent, show
from frontend.ui.reads import GroupBrief, group_brief
from frontend.ui.states import state
from frontend.ui.viewer import viewer_of
from frontend.ui.wording import duration, ranges
from groups.core.model.replies import Done, HoldReply
from groups.engine.service import GroupService
from kcoord.access.audit.refusals import is_temporary
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

T = TypeVar("T")
R = TypeVar("R", Done, HoldReply)

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


def header(request: HttpRequest, group_id: str) -> GroupBrief | None:
    """The group that an action is about, None if it does not exist for this person."""
    viewer = viewer_of(request)
    return bridge.call(lambda runtime: group_brief(runtime.db, viewer, group_id))


def existing(request: HttpRequest, group_id: str) -> GroupBrief:
    """The same. Raises Absent."""
    found = header(request, group_id)
    if found is None:
        raise Absent("No such group", f"There is no group “{group_id}”; it may have been deleted.")
    return found


def form(
    request: HttpRequest, name: str, brief: GroupBrief, refusal: Refusal, extra: Mapping[str, Any]
) -> HttpResponse:
    """The page of an action, with the refusal of the last attempt, if any."""
    context = {
        "group": brief,
        "state": state(brief.state, held=brief.held),
        "refusal": refusal,
        "given": request.POST,
        "now": brief.now,
    }
    return show(request, name, {**context, **extra}, section="groups", status=refusal.status)


async def delete_now(runtime: Runtime, group_id: str, principal: str) -> Done:
    """Delete a group with its offsets. Raises ProtocolError."""
    return successful(await runtime.get(GroupService).delete(group_id, principal=principal))


HOLDS = (
    (60_000, "1 minute"),
    (300_000, "5 minutes"),
    (900_000, "15 minutes"),
    (3_600_000, "1 hour"),
    (21_600_000, "6 hours"),
    (86_400_000, "1 day"),
)
"""How long a group can be held, within the limit `group.max.hold.ms`."""
HOLD_MS = 900_000
"""The duration that forms and commands of a reset begin with."""


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
    return successful(await runtime.get(GroupService).hold(group_id, lasting, principal=actor(request), reason=reason))


async def release_now(runtime: Runtime, group_id: str, principal: str) -> Done:
    """End the hold of a group. Raises ProtocolError."""
    return successful(await runtime.get(GroupService).release(group_id, principal=principal))


def successful(reply: R) -> R:
    """What a service replied. Raises ProtocolError if it refused."""
    if reply.error is not Error.NONE:
        raise ProtocolError(reply.error, reply.detail)
    return reply
