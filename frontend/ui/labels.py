"""Labels of groups: as pages show them, the conventional ones first, and as forms send them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from django.http import HttpRequest, QueryDict
from django.urls import reverse

from frontend.ui.page import BadAddress, text
from frontend.ui.wording import elided
from groups.labels import CONTACT, CONVENTIONAL, OWNER, RUNBOOK, TEAM
from kcoord.protocol.errors import Error, ProtocolError

LONGEST_VALUE = 60
MOST_SHOWN = 8
"""In the head of a group; its page of labels has all."""


@dataclass(frozen=True, slots=True)
class Label:
    """A label. `link`: the value, if it is an address that a browser may follow, else ""; `list_url`: who has it."""

    name: str
    value: str
    link: str
    list_url: str

    @property
    def text(self) -> str:
        """`name=value`."""
        return f"{self.name}={self.value}"

    @property
    def short(self) -> str:
        """The value, by its beginning and its end if it is long."""
        return elided(self.value, LONGEST_VALUE)


def link_of(value: str) -> str:
    """The value if it is an address of a web page, else "".

    Nothing that hides where it leads: no user name, and no blanks or control characters, which browsers drop.
    """
    if not value.isprintable() or any(char.isspace() for char in value) or "\\" in value:
        return ""
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return ""
    return value if usable and parts.username is None and parts.password is None else ""


def shown(labels: Mapping[str, str]) -> list[Label]:
    """All labels: the conventional ones in their order, then the others by name."""
    names = [*(name for name in CONVENTIONAL if name in labels), *sorted(set(labels) - set(CONVENTIONAL))]
    return [_label(name, labels[name]) for name in names]


def owner_of(labels: Mapping[str, str]) -> Label | None:
    """Whose group it is: its owner, else its team."""
    return next((_label(name, labels[name]) for name in (OWNER, TEAM) if labels.get(name)), None)


def whom_to_call(labels: Mapping[str, str]) -> Sequence[Label]:
    """What somebody needs who finds a group in trouble: its owner or team, the contact and the runbook."""
    owner = owner_of(labels)
    others = [_label(name, labels[name]) for name in (CONTACT, RUNBOOK) if labels.get(name)]
    return [*([owner] if owner else []), *others]


def _label(name: str, value: str) -> Label:
    query = urlencode({"label": f"{name}={value}"})
    return Label(name, value, link_of(value), f"{reverse('frontend:groups')}?{query}")


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


def label_of(request: HttpRequest) -> tuple[str, str | None] | None:
    """The label in the URL: `name=value`, or `name` for any value. Raises BadAddress."""
    written = text(request, "label")
    name, equals, value = written.partition("=")
    if equals and not name:
        raise BadAddress("label: write a label as name=value, or as name for any value.")
    return (name, value if equals else None) if name else None
