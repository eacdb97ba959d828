"""The labels of a group: all of them, and the form that changes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse, QueryDict

from frontend import commands as as_command
from frontend import labels as shown_labels
from frontend import queries
from frontend.allowed import CHANGE_LABELS, missing, require
from frontend.commands import service_url
from frontend.viewer import viewer_of
from frontend.views.actions import Refusal, actor, attempt, done, header
from frontend.views.groups import group_url
from frontend.views.page import LONGEST_TEXT, form_page, show
from frontend.views.page import missing as no_group
from frontend.wording import joined
from groups.labels import CONVENTIONAL, OWNER, GroupLabels
from kcoord.process import bridge
from kcoord.protocol.errors import Error, ProtocolError

LABEL, SHOWN, REMOVE = "label:", "shown:", "remove:"
"""Fields of the form, and what it showed: only differences are applied, so that two people do not undo each other.

A field that is emptied removes its label. One that was empty has a box for that.
"""
REMOVED = "removed"
"""The box of a line for a name, on the page for several groups: it removes the label. Its value is the line's place."""
BLANK_LINES = 2
"""For labels of other names."""
EXAMPLE = {OWNER: "payments"}
"""For commands, before anything is written."""
MANY = 10


@dataclass(frozen=True, slots=True)
class LabelLine:
    """A label in the form. `given`: the text of its field; `shown`: what it was; `is_empty`: it is stored without any.

    `removed`: the box that removes an empty one is ticked.
    """

    name: str
    given: str
    shown: str
    is_empty: bool
    removed: bool


@form_page
def group_labels(request: HttpRequest, group_id: str) -> HttpResponse:
    """All labels, and the form. The group need not exist."""
    if len(group_id) > LONGEST_TEXT:
        return no_group(request, group_id)
    refusal = Refusal()
    changes: dict[str, str | None] = {}
    if request.method == "POST":
        require(request, CHANGE_LABELS, group_id)
        try:
            changes = changes_of(request.POST)
        except ProtocolError as error:
            refusal = Refusal(error.detail, 400)
        else:
            name = actor(request)
            changed, refusal = attempt(lambda runtime: runtime.get(GroupLabels).alter(group_id, changes, name))
            if changed is not None:
                text = f"Changed {joined(list(changes), MANY)}." if changes else "No label was changed."
                return done(request, text, f"{group_url(group_id)}/labels")
    found = bridge.call(lambda runtime: runtime.get(GroupLabels).describe(group_id))
    brief = header(request, group_id)
    names = [*(label.name for label in shown_labels.shown({**dict.fromkeys(CONVENTIONAL, ""), **found.labels}))]
    body = changes or found.labels or EXAMPLE
    context = {
        "group_id": group_id,
        "group_url": group_url(group_id),
        "lines": [_line(name, found.labels, request.POST) for name in names],
        "added": written_lines(request.POST),
        "updated_at": found.updated_at,
        "updated_by": found.updated_by,
        "lacking": missing(viewer_of(request), CHANGE_LABELS, group_id),
        "refusal": refusal,
        "commands": as_command.labels(service_url(request), group_id, body),
        "now": brief.now if brief else bridge.call(lambda runtime: queries.now(runtime.db)),
    }
    return show(request, "group_labels", context, section="groups", status=refusal.status)


def _line(name: str, labels: Mapping[str, str], posted: QueryDict) -> LabelLine:
    stored = labels.get(name, "")
    given, shown = posted.get(LABEL + name, stored), posted.get(SHOWN + name, stored)
    return LabelLine(name, given, shown, labels.get(name) == "", REMOVE + name in posted)


def changes_of(posted: QueryDict) -> dict[str, str | None]:
    """What a form changes; None removes, and a name without a value is a label with the empty one.

    Raises ProtocolError INVALID_REQUEST for a value without a name.
    """
    changes: dict[str, str | None] = {}
    for field in posted:
        if field.startswith(LABEL):
            name, text = field.removeprefix(LABEL), posted.get(field, "").strip()
            if text != posted.get(SHOWN + name, ""):
                changes[name] = text or None
        elif field.startswith(REMOVE) and not posted.get(LABEL + field.removeprefix(REMOVE), "").strip():
            changes[field.removeprefix(REMOVE)] = None
    return changes | new_labels(posted)


def written_lines(posted: QueryDict) -> list[tuple[str, str, bool]]:
    """The lines where a name can be written, as they were written, and whether their boxes are ticked.

    Some that are blank if nothing was.
    """
    written = list(zip(posted.getlist("name"), posted.getlist("value"), strict=False))
    ticked = posted.getlist(REMOVED)
    lines = [(name, value, str(place) in ticked) for place, (name, value) in enumerate(written)]
    return lines or [("", "", False)] * BLANK_LINES


def new_labels(posted: QueryDict) -> dict[str, str | None]:
    """The labels of the lines where a name can be written; None removes.

    A name without a value is a label with the empty one. Raises ProtocolError INVALID_REQUEST for a value or a box
    without a name, and for a value of what the box removes.
    """
    changes: dict[str, str | None] = {}
    for written_name, written_value, removed in written_lines(posted):
        name, value = written_name.strip(), written_value.strip()
        if value and not name:
            raise ProtocolError(Error.INVALID_REQUEST, f"Write the name of the label with the value {value[:40]!r}.")
        if removed and not name:
            raise ProtocolError(Error.INVALID_REQUEST, "Write the name of the label to remove.")
        if removed and value:
            wrong = f"Label {name[:40]!r}: clear its value to remove it, or untick Remove to set it."
            raise ProtocolError(Error.INVALID_REQUEST, wrong)
        if name:
            changes[name] = None if removed else value
    return changes
