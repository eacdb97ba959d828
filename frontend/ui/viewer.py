"""Who looks at the pages, and what that person may see: the only place where pages filter.

A page shows what `/v1` would show to the same person. Each request has one `Viewer`, which every read model takes as a
required argument: what reads groups or topics cannot be called without it. What a person may not describe does not
exist for that person, so that nothing distinguishes "hidden" from "missing".

Source: http-api.md 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from frontend.ui.rows import Event
from frontend.ui.shown import OF_GROUPS, ON_TOPICS
from groups.readmodel import GroupFilter
from groups.seen import seen_detail
from kcoord.access.administration import administers_cluster, sees_all
from kcoord.access.people import principal_of
from kcoord.access.rights import Operation, Principal, Resource
from kcoord.rest.paging import Visible
from offsets.runs.findings import SeenBy

_ATTRIBUTE = "kcoord_viewer"


@dataclass(frozen=True, slots=True)
class Viewer:
    """A person with the groups and topics that the person may describe."""

    principal: Principal
    groups: Visible
    topics: Visible

    @property
    def sees_all(self) -> bool:
        """The person may describe every group and every topic."""
        return sees_all(self.principal)

    @property
    def sees_cluster(self) -> bool:
        """The person may describe the cluster: nodes, health, runs of Spark jobs, how busy the service is."""
        return self.principal.may_cluster(Operation.DESCRIBE)

    @property
    def administers(self) -> bool:
        """The person administers the cluster and sees all of it: tables and reports that cannot be filtered."""
        return administers_cluster(self.principal)

    @property
    def listed(self) -> Visible:
        """The groups that lists name, as `/v1/groups` does."""
        return self.principal.listed_groups

    def listed_by(self, wanted: GroupFilter) -> Visible:
        """The groups that a list with a filter names: a search by members tells what only a description does."""
        return self.groups if wanted.by_members else self.listed

    @property
    def seen_by(self) -> SeenBy:
        """The same for findings of reconcile."""
        return SeenBy(self.groups, self.topics)

    @property
    def topics_counted(self) -> str:
        """What a sum over topics is of, in words; "" if of all."""
        return "" if self.topics.unlimited else ON_TOPICS

    @property
    def groups_counted(self) -> str:
        """The same for groups."""
        return "" if self.groups.unlimited else OF_GROUPS

    def sees_group(self, group_id: str) -> bool:
        """The person may describe the group; whether it exists is another matter."""
        return group_id in self.groups

    def sees_topic(self, topic: str) -> bool:
        """The person may describe the topic; whether it exists is another matter."""
        return topic in self.topics

    def parameters(self) -> dict[str, Any]:
        """What statements take: the topics that can be seen, and whether these are all."""
        return {**self.topics.parameters("topic"), "all_topics": self.topics.unlimited}

    def with_groups(self, groups: Visible | None = None) -> dict[str, Any]:
        """As `parameters`, with the groups that can be seen; `groups`: these instead."""
        return {**self.parameters(), **(self.groups if groups is None else groups).parameters("group")}

    def event(self, *, kind: str, detail: Mapping[str, Any], **columns: Any) -> Event:
        """A row of a statement that reads events, with its detail as far as it can be seen."""
        return Event(kind=kind, detail=seen_detail(kind, detail, self.topics), **columns)


def viewer_of(request: HttpRequest) -> Viewer:
    """The viewer of a request whose sender has signed in, made once."""
    found = getattr(request, _ATTRIBUTE, None)
    if not isinstance(found, Viewer):
        found = viewer(request.user)
        setattr(request, _ATTRIBUTE, found)
    return found


def viewer(user: Any) -> Viewer:
    """An account as a viewer."""
    principal = principal_of(user)
    return Viewer(principal, principal.visible(Resource.GROUP), principal.visible(Resource.TOPIC))
