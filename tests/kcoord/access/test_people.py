"""The rules of people: of the account and of its groups together, remembered until they change."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, Group
from django.db import IntegrityError, connections, transaction
from django.test.utils import CaptureQueriesContext

from kcoord.access.people import NOBODY, People, principal_of
from kcoord.access.rights import Holder, Operation, Principal, Resource, Rule, Rules
from kcoord.models import AccessRule, ApiToken
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from tests.support.members import eventually

User = get_user_model()


@pytest.fixture
def names(database: str) -> Iterator[Callable[[str], str]]:
    """Names that no other test uses; accounts and groups that have them are deleted."""
    suffix = secrets.token_hex(4)
    yield lambda name: f"{name}-{suffix}"
    User.objects.filter(username__endswith=suffix).delete()
    Group.objects.filter(name__endswith=suffix).delete()
    connections.close_all()


def allow(holder: dict[str, Any], operation: str, resource: str, name: str, **fields: str) -> AccessRule:
    return AccessRule.objects.create(**holder, operation=operation, resource=resource, name=name, **fields)


def test_rules_of_an_account_and_of_its_groups_apply_together(names: Callable[[str], str]) -> None:
    person = User.objects.create_user(names("mara"))
    team = Group.objects.create(name=names("billing"))
    person.groups.add(team)
    allow({"user": person}, "read", "group", "mine")
    allow({"group": team}, "read", "group", "billing-", pattern="prefix")
    allow({"group": team}, "admin", "group", "billing-secret", effect="deny")
    stranger = User.objects.create_user(names("lou"))
    allow({"user": stranger}, "admin", "group", "", pattern="prefix")
    found = principal_of(person)
    assert (found.holder, found.user_id, found.token_id) == (Holder.USER, person.pk, 0)
    assert found.may_group(Operation.READ, "mine")
    assert found.may_group(Operation.DESCRIBE, "billing-1")
    assert not found.may_group(Operation.READ, "billing-secret")
    assert not found.may_group(Operation.READ, "other")
    assert not found.may_group(Operation.DELETE, "mine")
    assert found.said == f"user '{person.username}'"
    with pytest.raises(ProtocolError, match=rf"user '{person.username}' may not DELETE group 'mine'"):
        found.require_group(Operation.DELETE, "mine")


def test_a_superuser_may_do_everything_and_an_inactive_account_nothing(names: Callable[[str], str]) -> None:
    person = User.objects.create_superuser(names("root"))
    assert principal_of(person).rules.unlimited
    allow({"user": person}, "read", "group", "g")
    person.is_active = False
    assert principal_of(person) is NOBODY
    assert principal_of(AnonymousUser()) is NOBODY
    assert not NOBODY.visible(Resource.GROUP).names
    assert "g" not in NOBODY.visible(Resource.GROUP)


@pytest.mark.parametrize("holders", [(), ("token", "user"), ("user", "group")])
def test_a_rule_has_exactly_one_holder(names: Callable[[str], str], holders: tuple[str, ...]) -> None:
    person, team = User.objects.create_user(names("mara")), Group.objects.create(name=names("team"))
    made = {
        "token": ApiToken.objects.create(name=names("t"), digest=names("d"), prefix="kc_", created_at=0),
        "user": person,
        "group": team,
    }
    with pytest.raises(IntegrityError, match="kcoord_accessrule_one_holder"), transaction.atomic():
        allow({holder: made[holder] for holder in holders}, "read", "group", "g")


@pytest.mark.parametrize("holder", ["token", "user", "group"])
def test_a_holder_has_a_rule_once(names: Callable[[str], str], holder: str) -> None:
    made: dict[str, Callable[[], Any]] = {
        "token": lambda: ApiToken.objects.create(name=names("t"), digest=names("d"), prefix="kc_", created_at=0),
        "user": lambda: User.objects.create_user(names("mara")),
        "group": lambda: Group.objects.create(name=names("team")),
    }
    holds = {holder: made[holder]()}
    allow(holds, "read", "group", "g")
    allow(holds, "read", "group", "g", effect="deny")
    with pytest.raises(IntegrityError, match=f"kcoord_accessrule_{holder}_once"), transaction.atomic():
        allow(holds, "read", "group", "g")


def counted(person: Any) -> tuple[bool, int]:
    """Whether a person may read the group, and how many queries it took to find out."""
    with CaptureQueriesContext(connections["default"]) as queries:
        found = principal_of(person)
    return found.may_group(Operation.READ, "g"), len(queries)


def within_a_transaction(person: Any) -> None:
    with transaction.atomic():
        rule = allow({"user": person}, "read", "group", "g")
        assert principal_of(person).may_group(Operation.READ, "g")
        rule.delete()


Told = Callable[[Callable[[], Any]], Awaitable[None]]


@pytest.fixture
async def told(runtime: Runtime) -> Told:
    """Change something as another process does it; returns when this one has been told of it."""

    async def change(make: Callable[[], Any]) -> None:
        people = runtime.get(People)
        before = people.forgotten
        await asyncio.to_thread(make)
        await eventually(lambda: people.forgotten > before, "the notification")

    return change


async def test_a_warm_page_costs_no_query_and_a_change_is_seen(
    runtime: Runtime, names: Callable[[str], str], told: Told
) -> None:
    person = await asyncio.to_thread(User.objects.create_user, names("mara"))
    team = await asyncio.to_thread(lambda: Group.objects.create(name=names("team")))
    changes: list[tuple[Callable[[], Any], bool]] = [
        (lambda: allow({"user": person}, "read", "group", "g"), True),
        (lambda: AccessRule.objects.filter(user=person).delete(), False),
        (lambda: allow({"group": team}, "read", "group", "g"), False),
        (lambda: person.groups.add(team), True),
        (lambda: person.groups.clear(), False),
        (lambda: person.groups.add(team), True),
        (lambda: team.delete(), False),
    ]
    runtime.get(People)
    assert await asyncio.to_thread(counted, person) == (False, 1)
    may = False
    for change, expected in changes:
        assert await asyncio.to_thread(counted, person) == (may, 0)
        await told(change)
        may = expected
        assert await asyncio.to_thread(counted, person) == (may, 1)


async def test_what_a_transaction_has_not_committed_is_not_remembered(
    runtime: Runtime, names: Callable[[str], str]
) -> None:
    person = await asyncio.to_thread(User.objects.create_user, names("mara"))
    runtime.get(People)
    await asyncio.to_thread(within_a_transaction, person)
    assert (await asyncio.to_thread(counted, person))[0] is False


async def test_asynchronous_code_asks_the_database(runtime: Runtime, names: Callable[[str], str]) -> None:
    person = await asyncio.to_thread(User.objects.create_user, names("mara"))
    await asyncio.to_thread(allow, {"user": person}, "read", "group", "g")
    people = runtime.get(People)
    found = await people.principal(person.pk)
    assert (found.name, found.user_id, found.holder) == (person.username, person.pk, Holder.USER)
    assert found.may_group(Operation.READ, "g")
    await asyncio.to_thread(User.objects.filter(pk=person.pk).update, is_superuser=True)
    assert (await people.principal(person.pk)).rules.unlimited
    await asyncio.to_thread(User.objects.filter(pk=person.pk).update, is_active=False)
    assert await people.principal(person.pk) is NOBODY
    assert await people.principal(2**31 - 1) is NOBODY


def test_a_denied_group_is_not_listed_to_those_who_may_describe_the_cluster() -> None:
    """Differs from Kafka: there, Describe on the cluster lists every group, whatever else is denied."""
    shows_all: Rule = ("describe", "cluster", "prefix", "")
    assert Principal(1, "t", Rules([shows_all])).listed_groups.unlimited
    listed = Principal(1, "t", Rules([shows_all, ("admin", "group", "prefix", "secret-", "deny")])).listed_groups
    assert "open" in listed
    assert "secret-1" not in listed
    listed = Principal(1, "t", Rules([("read", "group", "literal", "mine")])).listed_groups
    assert "mine" in listed
    assert "open" not in listed
