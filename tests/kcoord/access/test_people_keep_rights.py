"""The migration that gives rules to the accounts of a deployment that had none for people."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from importlib import import_module

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.db import connections

from kcoord.models import AccessRule

User = get_user_model()
KEEP = import_module("kcoord.migrations.0010_people_keep_rights").KEEP
SEES = {f"describe {resource}:*" for resource in ("group", "topic", "transactional-id", "cluster")}
EVERYTHING = {f"admin {resource}:*" for resource in ("group", "topic", "transactional-id", "cluster")}
OF_GROUPS = (
    "groups.change_groupconfigoverride", "groups.change_group", "groups.delete_member", "groups.delete_group",
    "offsets.add_offsetplan", "offsets.change_offsetplan",
)  # fmt: skip


@pytest.fixture
def suffix(database: str) -> Iterator[str]:
    suffix = secrets.token_hex(4)
    call_command("migrate", verbosity=0)  # creates the permissions
    yield suffix
    User.objects.filter(username__endswith=suffix).delete()
    Group.objects.filter(name__endswith=suffix).delete()
    connections.close_all()


def permission(written: str) -> Permission:
    app, name = written.split(".")
    return Permission.objects.get(content_type__app_label=app, codename=name)


def migrate(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute(KEEP)


@pytest.mark.parametrize(
    ("permissions", "more"),
    [
        ((), set()),
        (("groups.change_group",), {"kick group:*"}),
        (("groups.delete_member", "groups.change_group"), {"kick group:*"}),
        (("groups.delete_group",), {"delete group:*"}),
        (("offsets.add_offsetplan",), {"alter-offsets group:*", "read topic:*"}),
        (("offsets.change_offsetplan",), {"alter-offsets group:*", "read topic:*"}),
        (("offsets.delete_committedoffset",), {"delete group:*", "read topic:*"}),
        (("kcoord.add_apitoken",), EVERYTHING),
        (("kcoord.change_apitoken",), EVERYTHING),
        (("kcoord.view_apitoken", "kcoord.delete_apitoken"), set()),
        (("groups.change_groupconfigoverride",), set()),
        (OF_GROUPS, {"admin group:*", "kick group:*", "delete group:*", "alter-offsets group:*", "read topic:*"}),
    ],
)
def test_an_account_keeps_what_it_could_do(
    database: str, suffix: str, permissions: tuple[str, ...], more: set[str]
) -> None:
    person = User.objects.create_user(f"mara-{suffix}")
    person.user_permissions.set(permission(one) for one in permissions)
    migrate(database)
    assert {str(rule) for rule in AccessRule.objects.filter(user=person)} == SEES | more


def test_a_group_of_people_gets_what_its_permissions_gave(database: str, suffix: str) -> None:
    team = Group.objects.create(name=f"team-{suffix}")
    team.permissions.set([permission("groups.delete_group")])
    person = User.objects.create_user(f"mara-{suffix}")
    person.groups.add(team)
    migrate(database)
    assert {str(rule) for rule in AccessRule.objects.filter(group=team)} == {"delete group:*"}
    assert {str(rule) for rule in AccessRule.objects.filter(user=person)} == SEES


def test_superusers_need_no_rules_and_inactive_accounts_get_none(database: str, suffix: str) -> None:
    User.objects.create_superuser(f"root-{suffix}")
    gone = User.objects.create_user(f"gone-{suffix}", is_active=False)
    gone.user_permissions.set([permission("groups.delete_group")])
    migrate(database)
    assert not AccessRule.objects.filter(user__username__endswith=suffix).exists()
