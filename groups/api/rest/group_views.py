"""Groups: list, describe, delete, and what happened to them (http-api.md 4).

A group that the caller may not describe appears not to exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace
from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest import group_serializers as s
from groups.api.rest.consumer_description import (
    ANY_GROUP,
    KINDS,
    ConsumerGroupView,
    ConsumerMemberView,
    describe_consumer_group,
)
from groups.api.rest.description import GroupView, MemberView, describe_group
from groups.api.rest.seen import seen_classic_group, seen_consumer_group
from groups.clients import Client, ClientSoftware, Software
from groups.configs import DecisionContexts
from groups.core.model.group import Group, partition_of
from groups.core.model.types import ClassicGroup, GroupState, Hold
from groups.engine.deletion import DeletedGroup, GroupDeletion
from groups.engine.service import GroupService
from groups.labels import GroupLabels
from groups.nodes.directory import NodeDirectory
from groups.readmodel import (
    OF_ALL_TOPICS,
    GroupFilter,
    GroupList,
    GroupReads,
    GroupSort,
    GroupSummary,
    unknown_group,
)
from kcoord.access.audit.recording import Act
from kcoord.access.audit.requests import note
from kcoord.access.rights import Operation, Permission, Resource
from kcoord.control.rest.answers import shown
from kcoord.control.rest.schema import GROUP_ID, describe
from kcoord.control.rest.views import ControlView, path_name
from kcoord.database.paging import Page
from kcoord.door.http import paths
from kcoord.door.http.addresses import came_by
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

NAMED = (Error.INVALID_GROUP_ID, Error.GROUP_ID_NOT_FOUND)
"""Errors of every operation on one group."""


async def _require_running(runtime: Runtime) -> None:
    runtime.get(GroupService).check_active()


class NamedGroupView(ControlView):
    """A view of one group that the caller may describe; `self.group_id` is its valid id."""

    group_id: str

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the token, then the group id, then whether the caller may see the group."""
        super().initial(request, *args, **kwargs)
        try:
            self.group_id = path_name(request, 2, kwargs["group_id"], paths.group_id_of)
        except ProtocolError:
            self.service(_require_running)  # a service that is stopped says so, whatever the id (offsets.md 2.1)
            raise
        if not self.principal.may_group(Operation.DESCRIBE, self.group_id):
            raise unknown_group(self.group_id)


class GroupsView(ControlView):
    """`/v1/groups`."""

    group_list: Callable[[Runtime], GroupList]
    """The service class behind the list."""

    @describe(
        "listGroups",
        "List groups",
        tag="groups",
        takes=Permission.DESCRIBE_GROUP,
        query=s.GroupQuery,
        response=s.GroupPage,
        errors=(Error.INVALID_REGULAR_EXPRESSION, Error.TOPIC_AUTHORIZATION_FAILED),
        description="Groups that match all filters and that the caller may describe; a caller that may describe "
        "the cluster sees all groups. Topics that the caller may not describe are ignored by filters and not counted "
        "in lag. A filter that is given several times matches if any of its values does.",
    )
    def get(self, request: Request) -> Response:
        """A page of groups."""
        paging, query = self.filters(s.GroupQuery)
        sort = GroupSort(query.pop("sort"))
        if query["held"]:
            query.setdefault("states", ())
        wanted = GroupFilter(**query)
        visible_topics = self.visible(Resource.TOPIC)
        if not visible_topics.unlimited and (sort in OF_ALL_TOPICS or wanted.min_time_lag_ms is not None):
            raise ProtocolError(
                Error.TOPIC_AUTHORIZATION_FAILED,
                f"{self.principal.said} may not DESCRIBE every topic, of which time lag is known together",
            )
        # `describe` on the cluster is about what the list shows, and no search by members.
        visible = self.visible(Resource.GROUP) if wanted.by_members else self.principal.listed_groups

        async def read(runtime: Runtime) -> tuple[Page[GroupSummary], int]:
            page = await runtime.get(type(self).group_list).search(
                wanted, sort=sort, **paging, visible=visible, visible_topics=visible_topics
            )
            return page, runtime.config.int("offsets.topic.num.partitions")

        page, partitions = self.service(read)
        lines = Page([_line(group, partitions) for group in page.items], page.next_cursor)
        return self.listed(s.GroupPage, "groups", lines)

    @describe(
        "deleteGroups",
        "Delete groups with all their offsets",
        tag="groups",
        takes=Permission.DELETE_GROUP,
        audit="group.delete",
        query=s.GroupsToDelete,
        response=s.DeletedGroups,
        description="Each group has a result of its own, in the order of the request; an id that is listed twice has "
        "one result. Only groups in state Empty can be deleted.",
    )
    def delete(self, request: Request) -> Response:
        """Delete empty groups."""
        asked = list(dict.fromkeys(self.query(s.GroupsToDelete)["group_id"]))
        refused = {group_id: refusal for group_id in asked if (refusal := self._refusal(group_id)) is not None}
        allowed = [group_id for group_id in asked if group_id not in refused]
        principal = self.principal.name
        deleted = self.service(lambda runtime: runtime.get(GroupDeletion).delete(allowed, principal=principal))
        results = {**refused, **{result.group_id: result for result in deleted}}
        note(
            Act("group.delete", "group", result.group_id, reason=result.detail, error=result.error.name)
            for result in results.values()
            if 400 <= result.error.status < 500  # as of requests with one result: an outage is no refusal
        )
        return Response(shown(s.DeletedGroups, {"groups": [_deleted(results[group_id]) for group_id in asked]}))

    def _refusal(self, group_id: str) -> DeletedGroup | None:
        """Why the caller may not even request the deletion of a group; None: it may."""
        try:
            paths.check_group_id(group_id, may_be_empty=True)
            if not self.principal.may_group(Operation.DESCRIBE, group_id):
                raise unknown_group(group_id)
            self.require(group_id)
        except ProtocolError as error:
            return DeletedGroup(group_id, error.error, error.detail)
        return None


class GroupDetailView(NamedGroupView):
    """`/v1/groups/{group_id}`."""

    @describe(
        "describeGroup",
        "Describe a group",
        tag="groups",
        takes=Permission.DESCRIBE_GROUP,
        path=[GROUP_ID],
        response=ANY_GROUP,
        errors=(*NAMED, Error.TOPIC_AUTHORIZATION_FAILED),
        description="A consumer or share group whose members use a topic that the caller may not describe is refused "
        "with TOPIC_AUTHORIZATION_FAILED. For a classic group such topics are left out, as are bytes that may name "
        "them.",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """One group with its members."""
        self.query()
        asked = came_by()  # the services run on another thread, which knows of no request
        described = self.service(lambda runtime: self._read(runtime, asked))()  # here: there may be 100,000 partitions
        return Response(shown(KINDS[described.type], described))

    async def _read(self, runtime: Runtime, asked: str) -> Callable[[], GroupView | ConsumerGroupView]:
        """What describes the group as it is now."""
        visible = self.visible(Resource.TOPIC)
        stored = await runtime.get(GroupService).describe(self.group_id)
        group, due = stored.group, stored.due
        if group is None:
            raise unknown_group(self.group_id)
        coordinator = await runtime.get(NodeDirectory).shown_for(self.group_id, asked)
        hold = await _hold_in_force(runtime, group)
        clients = [Client(member.client_id, member.client_host) for member in group.members.values()]
        known = await runtime.get(ClientSoftware).find(clients)
        labels = (await runtime.get(GroupLabels).describe(self.group_id)).labels
        if isinstance(group, ClassicGroup):
            return lambda: classic_with_software(
                seen_classic_group(describe_group(group, due, coordinator, hold, labels), visible), known
            )
        world = await runtime.get(DecisionContexts).context_of(self.group_id)

        def described() -> ConsumerGroupView:
            whole = describe_consumer_group(group, due, coordinator, world.topics, world.assignors, hold, labels)
            return consumer_with_software(seen_consumer_group(whole, visible), known)

        return described

    @describe(
        "deleteGroup",
        "Delete a group with all its offsets",
        tag="groups",
        takes=Permission.DELETE_GROUP,
        audit="group.delete",
        path=[GROUP_ID],
        response=None,
        status=204,
        errors=(*NAMED, Error.NON_EMPTY_GROUP, Error.GROUP_AUTHORIZATION_FAILED),
        description="Only a group in state Empty can be deleted.",
    )
    def delete(self, request: Request, group_id: str) -> Response:
        """Delete an empty group."""
        self.query()
        self.require(self.group_id)
        principal = self.principal.name
        done = self.service(lambda runtime: runtime.get(GroupService).delete(self.group_id, principal=principal))
        if done.error is not Error.NONE:
            raise ProtocolError(done.error, done.detail)
        return Response(status=204)


class GroupEventsView(NamedGroupView):
    """`/v1/groups/{group_id}/events`."""

    @describe(
        "listGroupEvents",
        "List the events of a group, newest first",
        tag="groups",
        takes=Permission.DESCRIBE_GROUP,
        path=[GROUP_ID],
        query=s.EventQuery,
        response=s.EventPage,
        errors=NAMED,
        description="Events outlive their group; they are kept for `events.retention.days`. Events about "
        "topics that the caller may not describe are left out.",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """A page of events."""
        query = self.query(s.EventQuery)
        visible = self.visible(Resource.TOPIC)
        page = self.service(lambda runtime: runtime.get(GroupReads).events(self.group_id, **query, visible=visible))
        return self.listed(s.EventPage, "events", page)


async def _hold_in_force(runtime: Runtime, group: Group) -> Hold | None:
    """The hold of a group, unless it has expired and the group was not looked at since."""
    if group.hold is None:
        return None
    async with runtime.db.connection() as connection:
        return group.hold if group.hold.until > await runtime.db.now_ms(connection) else None


def _deleted(result: DeletedGroup) -> dict[str, Any]:
    detail = None if result.error is Error.NONE else result.detail or result.error.value.help
    return {
        "group_id": result.group_id,
        "error_code": result.error.code,
        "error": result.error.name,
        "detail": detail,
    }


def _line(group: GroupSummary, partitions: int) -> dict[str, Any]:
    """A group in the list. `protocol_name` is "" unless the group is Stable (classic.md 1)."""
    return {
        "group_id": group.group_id,
        "type": group.type,
        "state": group.state,
        "state_since": group.state_since,
        "held_until": group.held_until,
        "members": group.members,
        "generation_id": group.generation_id,
        "protocol_type": group.protocol_type or "",
        "protocol_name": (group.protocol_name or "") if group.state == GroupState.STABLE.value else "",
        "topics": group.topics,
        "labels": group.labels,
        "coordinator_partition": partition_of(group.group_id, partitions),
        "lag": group.lag,
        "unknown_partitions": group.unknown_partitions,
        "time_lag_ms": group.time_lag_ms,
        "time_lag_at_least_ms": group.time_lag_at_least_ms,
        "lag_sampled_at": group.lag_sampled_at,
        "verdicts": [{"verdict": kind, "since": since} for kind, since in group.verdicts],
        "judged_at": group.judged_at,
        "updated_at": group.updated_at,
    }


M = TypeVar("M", MemberView, ConsumerMemberView)
Known = Mapping[Client, Software]


def classic_with_software(described: GroupView, known: Known) -> GroupView:
    """The description of a classic group, its members with what is known of their clients."""
    if not known:
        return described
    return replace(described, members=tuple(_member(member, known) for member in described.members))


def consumer_with_software(described: ConsumerGroupView, known: Known) -> ConsumerGroupView:
    """The description of a consumer group, its members with what is known of their clients."""
    if not known:
        return described
    return replace(described, members=[_member(member, known) for member in described.members])


def _member(member: M, known: Known) -> M:
    software = known.get(Client(member.client_id, member.client_host))
    if software is None:
        return member
    return replace(member, client_software_name=software.name, client_software_version=software.version)
