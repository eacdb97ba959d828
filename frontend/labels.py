"""Labels of groups as pages show them: the conventional ones first, and addresses as links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from django.urls import reverse

from frontend.wording import elided
from groups.labels import CONTACT, CONVENTIONAL, OWNER, RUNBOOK, TEAM

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
