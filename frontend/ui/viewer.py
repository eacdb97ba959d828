"""Who looks at the pages, and what that person may see: the only place where pages filter.

A page shows what `/v1` would show to the same person. Each request has one `Viewer`, which every read model takes as a
required argument: what reads groups or topics cannot be called without it. What a person may not describe does not
exist for that person, so that nothing distinguishes "hidden" from "missing".

What people may do is here too: the operation on a resource that each action takes, and what a person lacks, in words.
An action takes the same operation on the same resource as the endpoint of `/v1` that does it. A page shows an action
that the person may not perform disabled, with the operation that is missing: people then know what to ask for. The view
of each action requires the same operation, and the services check it once more where they take a principal.
While the pages are read-only (`kcoord.access.read_only`), nobody may change anything.

Source: http-api.md 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from frontend.ui.rows import Event
from frontend.ui.shown import OF_GROUPS, ON_TOPICS
from groups.readmodel import GroupFilter, seen_detail
from kcoord.access import read_only
from kcoord.access.administration import administers_cluster, sees_all
from kcoord.access.people import principal_of
from kcoord.access.rights import CLUSTER_NAME, Operation, Principal, Resource
from kcoord.database.paging import Visible
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


@dataclass(frozen=True, slots=True)
class Need:
    """What an action takes. `to`: the action, as in `To hold a group, …`. `changes`: it is not only to look.

    `or_cluster`: the same operation on the cluster is enough, too.
    """

    operation: Operation
    resource: Resource
    to: str
    changes: bool = True
    or_cluster: bool = False


HOLD = Need(Operation.KICK, Resource.GROUP, "hold a group")
KICK = Need(Operation.KICK, Resource.GROUP, "remove a member")
CREATE_GROUP = Need(Operation.ALTER_OFFSETS, Resource.GROUP, "create a group")
DELETE_GROUP = Need(Operation.DELETE, Resource.GROUP, "delete a group")
DELETE_OFFSETS = Need(Operation.DELETE, Resource.GROUP, "delete committed offsets")
CHANGE_CONFIG = Need(Operation.ADMIN, Resource.GROUP, "change the settings of a group")
CHANGE_LABELS = Need(Operation.ADMIN, Resource.GROUP, "change the labels of a group")
PIN = Need(Operation.ALTER_OFFSETS, Resource.GROUP, "pin offsets")
OPERATE_ITEMS = Need(Operation.ALTER_OFFSETS, Resource.GROUP, "release, reject, replay or discard items")
PLAN = Need(Operation.ALTER_OFFSETS, Resource.GROUP, "plan a reset")
APPROVE = Need(Operation.ALTER_OFFSETS, Resource.GROUP, "approve a plan")
APPLY = Need(Operation.ALTER_OFFSETS, Resource.GROUP, "apply or undo a plan")
SEE_CLUSTER = Need(Operation.DESCRIBE, Resource.CLUSTER, "see how the service is", changes=False)
SEE_RUNS = Need(Operation.DESCRIBE, Resource.CLUSTER, "see runs", changes=False)
SEE_LOG = Need(Operation.ADMIN, Resource.CLUSTER, "see the log of a run", changes=False)
RUN = Need(Operation.ADMIN, Resource.CLUSTER, "start or cancel a run")
SEE_RULES = Need(Operation.DESCRIBE, Resource.CLUSTER, "see all rules, the receivers and the messages", changes=False)
ALERT_RULE = Need(Operation.ADMIN, Resource.GROUP, "make or change a rule of alerts", or_cluster=True)
ALERT_RULE_OF_ALL = Need(Operation.ADMIN, Resource.CLUSTER, "make or change a rule for several groups")
MUTE = Need(Operation.ADMIN, Resource.GROUP, "mute an alert", or_cluster=True)
CHANGE_RECEIVERS = Need(Operation.ADMIN, Resource.CLUSTER, "add, test or delete a receiver")

ADMINISTER = (
    "To manage tokens, your account needs admin on every group, topic and transactional id, and on the cluster."
)
SEE_ALL = "To {to}, your account needs describe on the cluster, and on every group and topic."


class Forbidden(Exception):
    """The person lacks a right; the message says which is needed."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action that a page offers. `missing`: why the person may not perform it, "" if allowed; `bad`: destructive."""

    label: str
    url: str
    missing: str = ""
    bad: bool = False


def missing(viewer: Viewer, need: Need | None, name: str | None = None) -> str:
    """Why a person may not do something, as a sentence; "" if allowed. `need` None: everybody may.

    `name`: of the group or topic. None asks about any: whether there is a name with which the person may do it.
    """
    if need is None:
        return ""
    if need.changes and read_only.is_read_only():
        return read_only.REASON
    rules = viewer.principal.rules
    if need.resource is Resource.CLUSTER:
        name = CLUSTER_NAME
    if name is None:
        anywhere = rules.visible(need.operation, need.resource)
        allowed = bool(anywhere.names or anywhere.prefixes)
    else:
        allowed = rules.allows(need.operation, need.resource, name)
    if allowed or (need.or_cluster and rules.allows(need.operation, Resource.CLUSTER, CLUSTER_NAME)):
        return ""
    on = f"{need.resource.value} {name}" if name else f"a {need.resource.value}"
    if need.resource is Resource.CLUSTER:
        on = "the cluster"
    elif need.or_cluster:
        on = f"{on}, or on the cluster"
    return f"To {need.to}, your account needs {need.operation.value} on {on}."


def tokens_missing(viewer: Viewer) -> str:
    """Why a person may not manage tokens, "" if allowed: tokens can do everything that their rules say."""
    return "" if viewer.principal.administers else ADMINISTER


def action(
    viewer: Viewer, label: str, url: str, need: Need | None = None, name: str | None = None, *, bad: bool = False
) -> Action:
    """An action as a person sees it."""
    return Action(label, url, missing(viewer, need, name), bad)


def require(request: HttpRequest, need: Need, name: str | None = None) -> None:
    """Raise Forbidden unless the person may do it."""
    _refuse(missing(viewer_of(request), need, name))


def require_tokens(request: HttpRequest, *, to_change: bool = False) -> None:
    """Raise Forbidden unless the person may manage tokens. `to_change`: not only to look at them."""
    _refuse(tokens_missing(viewer_of(request)) or (read_only.reason() if to_change else ""))


def require_all(request: HttpRequest, to: str) -> None:
    """Raise Forbidden unless the person sees the cluster and all that it has: for what cannot be filtered."""
    viewer = viewer_of(request)
    _refuse("" if viewer.sees_all and viewer.sees_cluster else SEE_ALL.format(to=to))


def _refuse(lacking: str) -> None:
    if lacking:
        raise Forbidden(lacking)
