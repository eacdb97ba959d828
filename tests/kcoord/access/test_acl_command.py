"""`manage.py acl`: rules are listed, added and removed as with kafka-acls.sh."""

from __future__ import annotations

import io
import secrets
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connections

from kcoord.access.people import principal_of
from kcoord.access.rights import Operation
from kcoord.access.roles import ROLES
from kcoord.access.tokens import create_token, parse_rule
from kcoord.models import AccessRule
from tests.support.database import ROOT
from tests.support.processes import environment

User = get_user_model()


@pytest.fixture
def mara(database: str) -> Iterator[str]:
    """The name of an account, which a group and a token have as well."""
    name = f"mara-{secrets.token_hex(4)}"
    User.objects.create_user(name)
    Group.objects.create(name=name)
    create_token(name, [parse_rule("describe:topic:orders")])
    yield name
    User.objects.filter(username=name).delete()
    Group.objects.filter(name__startswith=name).delete()
    connections.close_all()


def acl(*arguments: str) -> str:
    """What the command prints."""
    out = io.StringIO()
    call_command("acl", *arguments, stdout=out, stderr=out)
    return out.getvalue()


def lines(printed: str) -> list[list[str]]:
    """The fields of the rules that were printed."""
    return [line.split() for line in printed.splitlines() if ":" in line.split(" ")[0] and not line.endswith(":")]


def test_rules_are_added_listed_and_removed(mara: str) -> None:
    printed = acl(
        "--add", "--allow-principal", f"User:{mara}", "--operation", "read", "--operation", "kick",
        "--group", "billing-", "--resource-pattern-type", "prefixed",
    )  # fmt: skip
    expected = [
        [f"User:{mara}", "allow", "kick", "group", "prefixed", "billing-"],
        [f"User:{mara}", "allow", "read", "group", "prefixed", "billing-"],
    ]
    assert printed.startswith("Added:\n")
    assert lines(printed) == expected
    assert principal_of(User.objects.get(username=mara)).may_group(Operation.KICK, "billing-7")
    assert lines(acl("--list", "--principal", f"User:{mara}")) == expected
    assert "Nothing to add" in acl(
        "--add", "--allow-principal", f"User:{mara}", "--operation", "read", "--group", "billing-",
        "--resource-pattern-type", "prefixed",
    )  # fmt: skip
    printed = acl("--remove", "--principal", f"User:{mara}", "--operation", "kick", "--force")
    assert printed.endswith("Removed 1 rule.\n")
    assert lines(acl("--list", "--principal", f"User:{mara}")) == expected[1:]


def test_a_denial_wins(mara: str) -> None:
    acl("--add", "--allow-principal", f"Group:{mara}", "--operation", "all", "--topic", "*", "--group", "*")
    acl("--add", "--deny-principal", f"User:{mara}", "--operation", "read", "--topic", "secret")
    person = User.objects.get(username=mara)
    person.groups.add(Group.objects.get(name=mara))
    found = principal_of(person)
    assert found.may_topic(Operation.READ, "orders")
    assert not found.may_topic(Operation.READ, "secret")
    assert found.may_topic(Operation.DESCRIBE, "secret")
    assert lines(acl("--list", "--deny-principal", f"User:{mara}")) == [
        [f"User:{mara}", "deny", "read", "topic", "literal", "secret"]
    ]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("literal", {"kick"}),
        ("prefixed", set()),
        ("any", {"kick"}),
        ("match", {"kick", "read", "delete"}),
    ],
)
def test_rules_are_found_by_what_they_are_about(mara: str, pattern: str, expected: set[str]) -> None:
    for operation, name, kind in (
        ("kick", "billing-1", "literal"),
        ("read", "billing-", "prefixed"),
        ("delete", "*", "literal"),
        ("describe", "orders-", "prefixed"),
        ("alter-offsets", "billing-10", "literal"),
    ):
        acl(
            "--add", "--allow-principal", f"Token:{mara}", "--operation", operation, "--group", name,
            "--resource-pattern-type", kind,
        )  # fmt: skip
    found = acl("--list", "--principal", f"Token:{mara}", "--group", "billing-1", "--resource-pattern-type", pattern)
    assert {line[2] for line in lines(found)} == expected


@pytest.mark.parametrize("key", ROLES)
def test_a_role_is_a_name_for_rules(mara: str, key: str) -> None:
    prefix = ["--prefix", "billing-"] if ROLES[key].of_prefix else []
    acl("--add", "--allow-principal", f"Group:{mara}", "--role", key, *prefix)
    rules = {(rule.operation, rule.resource, rule.name) for rule in AccessRule.objects.filter(group__name=mara)}
    given = ROLES[key].rules("billing-" if prefix else "")
    assert rules == {(rule.operation, rule.resource, rule.name) for rule in given}
    acl("--add", "--allow-principal", f"Group:{mara}", "--operation", "kick", "--group", "mine")
    acl("--remove", "--principal", f"Group:{mara}", "--role", key, *prefix, "--force")
    assert [str(rule) for rule in AccessRule.objects.filter(group__name=mara)] == ["kick group:mine"]


def test_a_viewer_of_a_prefix_sees_no_other_group(mara: str) -> None:
    """`describe` on the cluster shows all groups in lists, so no role of a prefix includes it."""
    acl("--add", "--allow-principal", f"User:{mara}", "--role", "operator", "--prefix", "billing-")
    found = principal_of(User.objects.get(username=mara))
    assert not found.may_cluster(Operation.DESCRIBE)
    assert found.may_group(Operation.KICK, "billing-1")
    assert not found.may_group(Operation.DESCRIBE, "orders")


def test_a_group_of_people_is_created_if_asked(mara: str) -> None:
    missing = f"Group:{mara}-team"
    with pytest.raises(CommandError, match="there is no group of people"):
        acl("--add", "--allow-principal", missing, "--role", "viewer")
    acl("--add", "--allow-principal", missing, "--role", "viewer", "--create-group")
    assert len(lines(acl("--list", "--principal", missing))) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--add", "--operation", "read", "--group", "g"], "--allow-principal or --deny-principal: say whose"),
        (["--add", "--allow-principal", "mara"], "--operation: name at least one of read"),
        (["--add", "--allow-principal", "mara", "--operation", "read", "--group", "g"], "expected User:NAME"),
        (["--add", "--allow-principal", "User:*", "--operation", "read", "--group", "g"], "name one account"),
        (["--add", "--allow-principal", "User:nobody", "--operation", "read", "--group", "g"], "no account 'nobody'"),
        (["--add", "--allow-principal", "Token:none", "--operation", "read", "--group", "g"], "no token 'none'"),
        (["--add", "--allow-principal", "User:x", "--operation", "write", "--group", "g"], "--operation write: exp"),
        (["--add", "--allow-principal", "User:x", "--operation", "read"], "--group, --topic, --transactional-id or"),
        (["--add", "--allow-principal", "User:x", "--operation", "read", "--group", ""], "name: it is missing"),
        (["--add", "--allow-principal", "User:x", "--operation", "read", "--group", "g" * 256], "at most 255"),
        (["--add", "--principal", "User:x", "--operation", "read", "--group", "g"], "--principal: to add rules say"),
        (
            ["--add", "--allow-principal", "User:x", "--operation", "read", "--group", "g",
             "--resource-pattern-type", "match"], "--resource-pattern-type match: it is for --list",
        ),
        (["--add", "--allow-principal", "User:x", "--role", "administrator", "--prefix", "a"], "leave the prefix out"),
        (["--add", "--allow-principal", "User:x", "--role", "viewer", "--topic", "t"], "--role: it has operations"),
        (["--add", "--deny-principal", "User:x", "--role", "viewer"], "--deny-principal: a role allows"),
        (["--add", "--allow-principal", "User:x", "--prefix", "a", "--operation", "read"], "--prefix: it belongs to"),
        (["--remove", "--force"], "--remove: say which rules"),
        (["--add"], "--operation: name at least one"),
        ([], "one of the arguments --list --add --remove is required"),
    ],
)  # fmt: skip
def test_a_mistake_names_the_option_and_the_remedy(mara: str, arguments: list[str], message: str) -> None:
    before = AccessRule.objects.count()
    with pytest.raises(CommandError, match=message.replace("(", r"\(")):
        acl(*arguments)
    assert AccessRule.objects.count() == before


def test_an_operation_must_be_named(mara: str) -> None:
    """Differs from Kafka: `kafka-acls.sh --add` without an operation adds all of them."""
    with pytest.raises(CommandError, match="--operation: name at least one"):
        acl("--add", "--allow-principal", f"User:{mara}", "--group", "g")


def test_several_principals_are_added_or_none(mara: str) -> None:
    with pytest.raises(CommandError, match="no account 'nobody'"):
        acl(
            "--add", "--allow-principal", f"User:{mara}", "--allow-principal", "User:nobody", "--operation", "read",
            "--group", "g",
        )  # fmt: skip
    assert not AccessRule.objects.filter(user__username=mara).exists()


def test_removing_asks(mara: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    with pytest.raises(CommandError, match="nothing was removed") as refused:
        acl("--remove", "--principal", f"Token:{mara}")
    assert refused.value.returncode == 1
    assert AccessRule.objects.filter(token__name=mara).count() == 1
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert f"Token:{mara}" in acl("--remove", "--principal", f"Token:{mara}")
    assert not AccessRule.objects.filter(token__name=mara).exists()


def test_a_script_that_cannot_answer_is_told_by_the_exit_status(mara: str, database: str, tmp_path: Any) -> None:
    ran = subprocess.run(
        [sys.executable, "manage.py", "acl", "--remove", "--principal", f"Token:{mara}"],
        cwd=ROOT, env=environment(database, tmp_path, {}), input="", capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 1, ran.stderr
    assert f"Token:{mara}" in ran.stdout
    assert "use --force" in ran.stderr
    assert AccessRule.objects.filter(token__name=mara).count() == 1
