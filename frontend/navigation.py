"""The links to all pages, in groups by what people come for, as the header shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from frontend.allowed import tokens_missing
from frontend.viewer import Viewer


def _everybody(viewer: Viewer) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Link:
    """A page of the navigation: its name, the name of its route, and who may see it."""

    label: str
    route: str
    shown: Callable[[Viewer], bool] = _everybody

    @property
    def section(self) -> str:
        """What pages call themselves that belong to this one, so that it is marked while they are shown."""
        return self.label.lower()


NAVIGATION = {
    "Work": (
        Link("Overview", "frontend:home"),
        Link("Timeline", "frontend:timeline"),
        Link("Groups", "frontend:groups"),
        Link("Topics", "frontend:topics"),
        Link("Compare", "frontend:compare"),
        Link("Alerts", "frontend:alerts"),
    ),
    "Change": (
        Link("Plans", "frontend:plans"),
        Link("Audit", "frontend:audit"),
    ),
    "Service": (
        Link("Health", "frontend:health", lambda viewer: viewer.sees_cluster),
        Link("Nodes", "frontend:nodes", lambda viewer: viewer.sees_cluster),
        Link("Archive", "frontend:archive", lambda viewer: viewer.sees_cluster),
    ),
    "Access": (
        Link("Tokens", "frontend:tokens", lambda viewer: not tokens_missing(viewer)),
        Link("Access", "frontend:access"),
    ),
}
"""By the name of each group. Whoever may use the admin gets a link to it at the end of the last one."""


def navigation_of(viewer: Viewer) -> dict[str, list[Link]]:
    """The groups of `NAVIGATION` with the pages that a person may see; those without any are left out."""
    shown = {name: [link for link in links if link.shown(viewer)] for name, links in NAVIGATION.items()}
    return {name: links for name, links in shown.items() if links}
