"""Descriptions of groups with the software of their members, as far as it is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from groups.api.rest.consumer_description import ConsumerGroupView, ConsumerMemberView
from groups.api.rest.description import GroupView, MemberView
from groups.clients import Client, Software

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
