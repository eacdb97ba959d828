"""The labels of a group: all of them, and the form that changes them."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse, QueryDict

from frontend.ui import commands as as_command
from frontend.ui import labels as shown_labels
from frontend.ui.commands import service_url
from frontend.ui.form import Refusal, actor, attempt, done, header
from frontend.ui.labels import EXAMPLE, LABEL, REMOVE, SHOWN, new_labels, written_lines
from frontend.ui.page import LONGEST_TEXT, form_page, group_url, show
from frontend.ui.page import missing as no_group
from frontend.ui.reads import now_ms
from frontend.ui.viewer import CHANGE_LABELS, missing, require, viewer_of
from frontend.ui.wording import joined
from groups.labels import CONVENTIONAL, GroupLabels
from kcoord.process import bridge
from kcoord.protocol.errors import ProtocolError

MANY = 10


@form_page("group.labels")
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
        "lines": [_line(name, found.labels, request.POST) for name in names],
        "added": written_lines(request.POST),
        "updated_at": found.updated_at,
        "updated_by": found.updated_by,
        "lacking": missing(viewer_of(request), CHANGE_LABELS, group_id),
        "refusal": refusal,
        "commands": as_command.labels(service_url(request), group_id, body),
        "now": brief.now if brief else now_ms(),
    }
    return show(request, "pages/actions/group_labels", context, section="groups", status=refusal.status)


def _line(name: str, labels: Mapping[str, str], posted: QueryDict) -> Mapping[str, object]:
    """A label in the form. `given`: the text of its field; `shown`: what it was; `is_empty`: it is stored without any.

    `removed`: the box that removes an empty one is ticked.
    """
    stored = labels.get(name, "")
    given, shown = posted.get(LABEL + name, stored), posted.get(SHOWN + name, stored)
    texts = {"name": name, "given": given, "shown": shown}
    return {**texts, "is_empty": labels.get(name) == "", "removed": REMOVE + name in posted}


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
