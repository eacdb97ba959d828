"""One act on several groups: what it would do to each of them, and the form that does it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from django.http import HttpRequest, HttpResponse, QueryDict

from frontend.pages.groups.saved import LONGEST_QUERY, list_url, written_view
from frontend.ui import commands as as_command
from frontend.ui.commands import Command, service_url
from frontend.ui.form import Refusal, actor, attempt, delete_now, hold_choices, hold_duration, hold_now, release_now
from frontend.ui.labels import EXAMPLE, new_labels, written_lines
from frontend.ui.page import LONGEST_TEXT, Absent, BadAddress, form_page, show
from frontend.ui.reads import GroupBrief, group_briefs, now_ms
from frontend.ui.shown import HIDDEN_TOPICS, UNKNOWN, Shown, shown
from frontend.ui.states import State, state
from frontend.ui.viewer import CHANGE_LABELS, DELETE_GROUP, HOLD, Need, Viewer, missing, require, viewer_of
from frontend.ui.wording import joined, plural
from groups.labels import GroupLabels
from kcoord.access.audit.recording import Act as Record
from kcoord.access.audit.requests import note
from kcoord.control.rest.labels import merged
from kcoord.process import bridge
from kcoord.protocol.errors import ProtocolError

MOST_GROUPS = 100
"""In one review: what a person can be expected to read before confirming it."""


class Act(StrEnum):
    """What can be done to several groups at once."""

    HOLD = "hold"
    RELEASE = "release"
    LABELS = "labels"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Review:
    """An act on one group before it is done. `brief` None: the group does not exist; `obstacle` "": it can be done."""

    group_id: str
    brief: GroupBrief | None
    state: State | None
    effect: str = ""
    obstacle: str = ""
    lag: Shown[int] = UNKNOWN


def offered(viewer: Viewer) -> Sequence[tuple[str, str, str, bool]]:
    """The buttons of the list: name, label, why the person may not use it, "" if allowed, and whether it destroys."""
    return [(act.value, one.label, missing(viewer, one.need), act is Act.DELETE) for act, one in DOINGS.items()]


def review(viewer: Viewer, act: Act, group_ids: Iterable[str], briefs: Mapping[str, GroupBrief]) -> list[Review]:
    """What the act would do to each group, in the given order, or what the person lacks for it."""
    return [_review(viewer, act, group_id, briefs.get(group_id)) for group_id in group_ids]


def _review(viewer: Viewer, act: Act, group_id: str, brief: GroupBrief | None) -> Review:
    if brief is None:
        return Review(group_id, None, None, obstacle="There is no such group; it may have been deleted.")
    lacking = missing(viewer, DOINGS[act].need, group_id)
    effect, obstacle = ("", lacking) if lacking else DOINGS[act].outlook(brief)
    hidden = None if viewer.topics.unlimited else HIDDEN_TOPICS
    if act is Act.DELETE and effect and hidden:
        effect += " Offsets on topics that you may not see are deleted, too."
    lag = shown(brief.lag, brief.lag_sampled_at, hidden=hidden)
    return Review(group_id, brief, state(brief.state, held=brief.held), effect, obstacle, lag)


def _hold_outlook(brief: GroupBrief) -> tuple[str, str]:
    leaving = f"Its {plural(brief.members, 'member')} will be removed" if brief.members else ""
    if brief.held:
        return (f"{leaving}, and its" if leaving else "Its") + " present hold is replaced.", ""
    return f"{leaving}, and none can join." if leaving else "No member can join.", ""


def _release_outlook(brief: GroupBrief) -> tuple[str, str]:
    return ("Members can join again.", "") if brief.held else ("", "It is not held.")


def _labels_outlook(brief: GroupBrief) -> tuple[str, str]:
    return "Gets the labels written below, and loses those with Remove ticked; its other labels stay.", ""


def _delete_outlook(brief: GroupBrief) -> tuple[str, str]:
    if brief.members:
        return "", f"It has {plural(brief.members, 'member')}: stop them, or hold the group first."
    if not brief.offsets:
        return "Deleted; it has no committed offsets.", ""
    offsets = plural(brief.offsets, "committed offset")
    return f"Deleted with {offsets} on {plural(brief.topics, 'topic')}.", ""


MOST_SECONDS = 20.0
"""After this time no further group is begun: during an outage each would wait for its own time limit."""
NOT_TRIED = "Not tried: the groups before it took too long. Nothing was changed."


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one group. `done` False: `text` says why not. `refused`: it is in the audit as a refusal."""

    review: Review
    done: bool
    text: str
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person wants done to which groups, and the view of the list that they came from."""

    act: Act
    group_ids: Sequence[str]
    view: str


@form_page(hold="group.hold", release="group.release", labels="group.labels", delete="group.delete")
def group_actions(request: HttpRequest) -> HttpResponse:
    """Review an act on several groups, then perform it."""
    given = request.POST if request.method == "POST" else request.GET
    asked = _asked(given)
    viewer = viewer_of(request)
    require(request, DOINGS[asked.act].need)
    if not asked.group_ids:
        raise Absent("No group selected", "Tick groups in the list first, then choose what to do.", status=400)
    if len(asked.group_ids) > MOST_GROUPS:
        text = f"{len(asked.group_ids):,} groups are selected; at most {MOST_GROUPS} can be reviewed at once."
        raise Absent("Too many groups", f"{text} Nothing was done.", status=400)
    briefs = bridge.call(lambda runtime: group_briefs(runtime.db, viewer, asked.group_ids))
    lines = review(viewer, asked.act, asked.group_ids, briefs)
    refusal = Refusal()
    if request.method == "POST":
        refusal = _unconfirmed(request, asked.act)
        if not refusal.text:
            return _results_page(request, asked, _perform(request, asked.act, lines))
    return _review_page(request, asked, lines, refusal)


def _asked(given: QueryDict) -> Asked:
    """Raises BadAddress."""
    written = given.get("act", "")
    if written not in set(Act):
        raise BadAddress(f"act: {written!r} is not one of {', '.join(Act)}.")
    group_ids = tuple(dict.fromkeys(given.getlist("group")))
    if any(not name or len(name) > LONGEST_TEXT for name in group_ids):
        raise BadAddress(f"group: 1 to {LONGEST_TEXT} characters.")
    view = written_view(QueryDict(given.get("view", "")[:LONGEST_QUERY]))
    return Asked(Act(written), group_ids, view)


def _unconfirmed(request: HttpRequest, act: Act) -> Refusal:
    """What is wrong with the form as a whole."""
    if act is Act.DELETE and request.POST.get("sure") != "yes":
        return Refusal("Tick the box to confirm the deletion: nothing was deleted.", 400)
    try:
        if act is Act.HOLD:
            hold_duration(request)
        if act is Act.LABELS:
            changes = new_labels(request.POST)
            merged({}, changes)
            return Refusal() if changes else Refusal("Write the name of a label: nothing was changed.", 400)
    except ProtocolError as error:
        return Refusal(error.detail, 400)
    return Refusal()


def _perform(request: HttpRequest, act: Act, lines: Sequence[Review]) -> list[Result]:
    """Act on one group after the other. A failure does not stop the others."""
    until = time.monotonic() + MOST_SECONDS
    results = []
    for line in lines:
        if line.obstacle:
            results.append(Result(line, False, line.obstacle, refused=True))
        elif time.monotonic() > until:
            results.append(Result(line, False, NOT_TRIED))
        else:
            text, refusal = DOINGS[act].carry_out(request, line)
            refused = bool(refusal.text) and not refusal.is_temporary
            results.append(Result(line, not refusal.text, text or refusal.text, refused))
    note(
        Record(f"group.{act.value}", "group", result.review.group_id, reason=result.text, error="NOT DONE")
        for result in results
        if result.refused
    )
    return results


def _hold(request: HttpRequest, line: Review) -> tuple[str, Refusal]:
    held, refusal = attempt(lambda runtime: hold_now(runtime, request, line.group_id))
    return (f"Held; {plural(held.removed, 'member')} removed." if held else ""), refusal


def _release(request: HttpRequest, line: Review) -> tuple[str, Refusal]:
    released, refusal = attempt(lambda runtime: release_now(runtime, line.group_id, actor(request)))
    return ("Its hold has ended: members can join again." if released else ""), refusal


def _labels(request: HttpRequest, line: Review) -> tuple[str, Refusal]:
    changes, name = new_labels(request.POST), actor(request)
    changed, refusal = attempt(lambda runtime: runtime.get(GroupLabels).alter(line.group_id, changes, name))
    return (f"Changed {joined(list(changes), len(changes))}." if changed else ""), refusal


def _delete(request: HttpRequest, line: Review) -> tuple[str, Refusal]:
    deleted, refusal = attempt(lambda runtime: delete_now(runtime, line.group_id, actor(request)))
    return (line.effect if deleted else ""), refusal


@dataclass(frozen=True, slots=True)
class Doing:
    """How an act is done: what it takes, what it would do or why not, what it did or its refusal, and as a command."""

    label: str
    need: Need
    outlook: Callable[[GroupBrief], tuple[str, str]]
    carry_out: Callable[[HttpRequest, Review], tuple[str, Refusal]]
    command: Callable[[HttpRequest, str, str], Command]


DOINGS = {
    Act.HOLD: Doing(
        "Hold", HOLD, _hold_outlook, _hold, lambda _, url, name: as_command.hold(url, name, hold_choices()[0][0])
    ),
    Act.RELEASE: Doing("End hold", HOLD, _release_outlook, _release, lambda _, *of: as_command.end_hold(*of)),
    Act.LABELS: Doing(
        "Label", CHANGE_LABELS, _labels_outlook, _labels,
        lambda request, url, name: as_command.labels(url, name, _labels_of(request))[-1],
    ),
    Act.DELETE: Doing(
        "Delete", DELETE_GROUP, _delete_outlook, _delete, lambda _, *of: as_command.delete_group(*of)
    ),
}  # fmt: skip


def _review_page(request: HttpRequest, asked: Asked, lines: Sequence[Review], refusal: Refusal) -> HttpResponse:
    possible = [line for line in lines if not line.obstacle]
    made, url = DOINGS[asked.act].command, service_url(request)
    context = {
        "possible": possible,
        "members": sum(line.brief.members for line in possible if line.brief),
        "offsets": sum(line.brief.offsets for line in possible if line.brief),
        "refusal": refusal,
        "given": request.POST,
        "choices": hold_choices(),
        "added": written_lines(request.POST),
        "commands": [replace(made(request, url, line.group_id), label=line.group_id) for line in possible],
        "title": f"{DOINGS[asked.act].label}: {plural(len(possible), 'group')}",
        "left_out": len(lines) - len(possible),
    }
    return _page(request, asked, [(line, line.effect or line.obstacle, not line.obstacle) for line in lines], context)


def _results_page(request: HttpRequest, asked: Asked, results: Sequence[Result]) -> HttpResponse:
    succeeded = sum(result.done for result in results)
    context = {
        "results": True,
        "succeeded": succeeded,
        "failed": len(results) - succeeded,
        "refusal": Refusal(),
        "title": f"{DOINGS[asked.act].label}: results",
    }
    return _page(request, asked, [(result.review, result.text, result.done) for result in results], context)


def _page(
    request: HttpRequest, asked: Asked, lines: Sequence[tuple[Review, str, bool]], context: dict[str, object]
) -> HttpResponse:
    shared = {
        "list_url": list_url(asked.view),
        "now": now_ms(),
        "act": asked.act.value,
        "label": DOINGS[asked.act].label,
        "view": asked.view,
    }
    refusal = context["refusal"]
    status = refusal.status if isinstance(refusal, Refusal) else 200
    shown = {**shared, **context, "lines": lines}
    title = str(context["title"])
    return show(request, "pages/groups/group_actions", shown, section="groups", status=status, title=title)


def _labels_of(request: HttpRequest) -> Mapping[str, str | None]:
    """The labels of the form; an example if none are written, or not properly."""
    try:
        return new_labels(request.POST) or EXAMPLE
    except ProtocolError:
        return EXAMPLE
