"""Groups as tools see them: ListGroups, DescribeGroups, DeleteGroups.

Source: classic.md 1 and 8.1; offsets.md 8.3; KIP-518, KIP-848, KIP-1043.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable

from groups.api.rest.description import GroupView, describe_group
from groups.api.rest.seen import seen_classic_group
from groups.core.model.types import ClassicGroup
from groups.engine.deletion import GroupDeletion
from groups.engine.service import GroupService
from groups.nodes.directory import NodeDirectory
from groups.readmodel import GroupFilter, GroupList, GroupSort, GroupSummary, unknown_group
from kcoord.access.quotas.budgets import Budget
from kcoord.access.rights import Operation, Resource
from kcoord.door.http.paths import check_group_id
from kcoord.door.kafka.api import Answer, Api, Call, authorized_operations
from kcoord.door.kafka.codec import Fields
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests.turnstile import Turnstile

PAGE = 1_000
KNOWS_NOT_FOUND = 6
"""The first version of DescribeGroups in which a missing group is an error (KIP-1043)."""
DEAD = "Dead"


def listing(group_list: Callable[[Runtime], GroupList]) -> Api:
    """ListGroups. `group_list`: the service class behind the list, which is above this package."""

    async def list_groups(call: Call, request: Fields) -> Answer:
        wanted = GroupFilter(states=request.get("states_filter") or None, types=request.get("types_filter") or None)
        visible = call.principal.listed_groups
        service, cursor = call.runtime.get(group_list), None
        found: list[GroupSummary] = []
        async with call.runtime.get(Turnstile).place(call.principal.token_id):
            while True:
                page = await service.search(
                    wanted,
                    sort=GroupSort.GROUP_ID,
                    cursor=cursor,
                    limit=PAGE,
                    visible=visible,
                    visible_topics=call.principal.visible(Resource.TOPIC),
                )
                found += page.items
                cursor = page.next_cursor
                if cursor is None:
                    break
        return {
            "error_code": 0,
            "groups": [
                {
                    "group_id": group.group_id,
                    "protocol_type": group.protocol_type or "",
                    "group_state": group.state,
                    "group_type": group.type,
                }
                for group in found
            ],
        }

    return Api(16, "list_groups", (0, 5), list_groups)


async def describe_groups(call: Call, request: Fields) -> Answer:
    """DescribeGroups: classic groups; one of the consumer protocol is not found, as in Kafka."""
    groups = [await _described(call, group_id) for group_id in dict.fromkeys(request.groups)]
    return {"groups": [with_operations(call, request, group) for group in groups]}


def with_operations(call: Call, request: Fields, group: Answer) -> Answer:
    """A described group with what the caller may do with it, if the request asks for that and it has no error."""
    if group["error_code"] or not request.get("include_authorized_operations"):
        return group
    operations = authorized_operations(call.principal, Resource.GROUP, group["group_id"])
    return {**group, "authorized_operations": operations}


def refuse_groups(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer when no group could be described."""
    return {"groups": [_refused(group_id, code, detail) for group_id in dict.fromkeys(request.get("groups", ()))]}


def _refused(group_id: str, code: int, detail: str, state: str = "") -> Answer:
    return {
        "error_code": code,
        "error_message": detail,
        "group_id": group_id,
        "group_state": state,
        "protocol_type": "",
        "protocol_data": "",
        "members": [],
    }


async def _described(call: Call, group_id: str) -> Answer:
    try:
        check_group_id(group_id, may_be_empty=True)
        call.principal.require_group(Operation.DESCRIBE, group_id)
        stored = await call.runtime.get(GroupService).describe(group_id)
    except ProtocolError as error:
        return _refused(group_id, error.error.code, error.detail)
    if not isinstance(stored.group, ClassicGroup):
        missing = unknown_group(group_id)
        code = missing.error.code if call.version >= KNOWS_NOT_FOUND else 0
        return _refused(group_id, code, missing.detail if code else "", DEAD)
    coordinator = await call.runtime.get(NodeDirectory).shown_for(group_id, "")
    described = describe_group(stored.group, stored.due, coordinator)
    return _description(seen_classic_group(described, call.principal.visible(Resource.TOPIC)))


def _description(group: GroupView) -> Answer:
    return {
        "error_code": 0,
        "group_id": group.group_id,
        "group_state": group.state,
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol_name,
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "client_host": f"/{member.client_host}",
                "member_metadata": b64decode(member.metadata),
                "member_assignment": b64decode(member.assignment),
            }
            for member in group.members
        ],
    }


async def delete_groups(call: Call, request: Fields) -> Answer:
    """DeleteGroups: each group with a result of its own."""
    results: dict[str, tuple[Error, str]] = {}
    for group_id in request.groups_names:
        try:
            check_group_id(group_id, may_be_empty=True)
            call.principal.require_group(Operation.DELETE, group_id)
            results[group_id] = Error.NONE, ""
        except ProtocolError as error:
            results[group_id] = error.error, error.detail
    allowed = [group_id for group_id, (error, _) in results.items() if error is Error.NONE]
    for deleted in await call.runtime.get(GroupDeletion).delete(allowed, principal=call.principal.name):
        results[deleted.group_id] = deleted.error, deleted.detail
    return _deleted({name: (error.code, detail or error.value.help) for name, (error, detail) in results.items()})


def refuse_deletion(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer when no group could be deleted."""
    return _deleted(dict.fromkeys(request.get("groups_names", ()), (code, detail)))


def _deleted(results: dict[str, tuple[int, str]]) -> Answer:
    return {
        "results": [
            {"group_id": group_id, "error_code": code, "error_message": detail if code else None}
            for group_id, (code, detail) in results.items()
        ]
    }


APIS = (
    Api(15, "describe_groups", (0, 6), describe_groups, refuse_groups),
    Api(42, "delete_groups", (0, 3), delete_groups, refuse_deletion, audit="group.delete", budget=Budget.WRITES),
)
