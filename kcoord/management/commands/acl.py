"""`manage.py acl --add --allow-principal Group:billing --role viewer --prefix billing-`: rules of tokens and people.

The options are those of `kafka-acls.sh` where the meaning is the same. Differs from Kafka: `acl --add` needs an
operation or a role, where `kafka-acls.sh` adds all operations, and a name of `*` is the empty prefix.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from kcoord.access import store
from kcoord.access.rights import CLUSTER_NAME
from kcoord.access.roles import ROLES, role
from kcoord.access.store import HolderName, RuleFilter
from kcoord.access.tokens import OPERATIONS, Rule, check_rule
from kcoord.models import AccessRule

PATTERNS = {"literal": "literal", "prefixed": "prefix", "any": "any", "match": "match"}


class Command(BaseCommand):
    help = "List, add and remove rules of accounts, groups of people and tokens, as kafka-acls.sh does for ACLs."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The action, whose rules, and about what."""
        action = parser.add_mutually_exclusive_group(required=True)
        action.add_argument("--list", action="store_true", help="print the rules that match; without filters, all")
        action.add_argument("--add", action="store_true", help="add rules")
        action.add_argument("--remove", action="store_true", help="remove the rules that match")
        for effect in ("allow", "deny"):
            parser.add_argument(
                f"--{effect}-principal", action="append", default=[], metavar="PRINCIPAL",
                help=f"whose rules that {effect}: User:NAME, Group:NAME (of accounts) or Token:NAME; repeatable",
            )  # fmt: skip
        parser.add_argument("--principal", action="append", default=[], metavar="PRINCIPAL",
                            help="list or remove all rules of this principal; repeatable")  # fmt: skip
        parser.add_argument("--operation", action="append", default=[], metavar="OPERATION",
                            help=f"{', '.join(OPERATIONS)}, or all (the same as admin); repeatable")  # fmt: skip
        for resource in ("group", "topic", "transactional-id"):
            parser.add_argument(f"--{resource}", action="append", default=[], metavar="NAME",
                                help=f"{resource} of this name; * means all; repeatable")  # fmt: skip
        parser.add_argument("--cluster", action="store_true", help="the cluster")
        parser.add_argument("--resource-pattern-type", choices=PATTERNS, metavar="TYPE",
                            help="literal (default of --add), prefixed; to list or remove also any (default), "
                            "or match: every rule that is about the name")  # fmt: skip
        parser.add_argument("--role", choices=ROLES, help="add or remove the rules of this role")
        parser.add_argument("--prefix", default="", help="with --role: only on names that begin with it")
        parser.add_argument("--create-group", action="store_true", help="create the group of people if it is missing")
        parser.add_argument("--force", action="store_true", help="remove without asking")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it. Raises CommandError (exit code 1) naming the option and the remedy."""
        try:
            if options["add"]:
                self._add(options)
            elif options["remove"]:
                self._remove(options)
            else:
                self._print(_found(options))
        except ValueError as error:
            raise CommandError(str(error)) from error

    def _add(self, options: dict[str, Any]) -> None:
        if options["principal"]:
            raise ValueError("--principal: to add rules say --allow-principal or --deny-principal")
        rules = _rules(options)
        added: list[AccessRule] = []
        with transaction.atomic():
            for effect in ("allow", "deny"):
                for holder in _holders(options[f"{effect}_principal"], f"--{effect}-principal"):
                    if options["create_group"] and holder.kind == "Group":
                        store.create_group(holder.name)
                    added += store.add_rules(holder, [_with(rule, effect) for rule in rules])
        if not (options["allow_principal"] or options["deny_principal"]):
            raise ValueError("--allow-principal or --deny-principal: say whose rules they are, such as User:mara")
        if not added:
            self.stdout.write("Nothing to add: these rules exist.")
            return
        self.stdout.write("Added:")
        self._print(added)

    def _remove(self, options: dict[str, Any]) -> None:
        if not _filtered(options):
            raise ValueError("--remove: say which rules, by a principal, a resource, an operation or a role")
        found = _found(options)
        if not found:
            self.stdout.write("Nothing to remove: no rule matches.")
            return
        self._print(found)
        if not options["force"] and not self._agreed(len(found)):
            raise CommandError("nothing was removed")
        removed = store.remove_rules(found)
        self.stdout.write(f"Removed {len(removed)} {'rule' if len(removed) == 1 else 'rules'}.")

    def _agreed(self, count: int) -> bool:
        try:
            return (
                input(f"Remove {'this rule' if count == 1 else f'these {count} rules'}? [y/N] ").strip().lower() == "y"
            )
        except EOFError:
            raise CommandError("there is nobody to ask; use --force") from None

    def _print(self, rows: Iterable[AccessRule]) -> None:
        """One line each, in columns that scripts can split: holder, effect, operation, resource, pattern, name."""
        lines = [
            (str(store.holder_of(row)), row.effect, row.operation, row.resource, _pattern(row.pattern), row.name or "*")
            for row in rows
        ]
        if not lines:
            self.stderr.write("no rules")
            return
        heads = ("PRINCIPAL", "EFFECT", "OPERATION", "RESOURCE", "PATTERN", "NAME")
        widths = [max(len(line[column]) for line in (heads, *lines)) for column in range(len(heads))]
        for line in (heads, *sorted(lines)):
            self.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _pattern(stored: str) -> str:
    return "prefixed" if stored == "prefix" else stored


def _holders(written: Iterable[str], option: str) -> list[HolderName]:
    try:
        return [store.parse_holder(text) for text in written]
    except ValueError as error:
        raise ValueError(f"{option} {error}") from None


def _with(rule: Rule, effect: str) -> Rule:
    return Rule(rule.operation, rule.resource, rule.pattern, rule.name, effect)


def _operations(options: dict[str, Any]) -> list[str]:
    found = ["admin" if text.lower() == "all" else text.lower() for text in options["operation"]]
    for operation in found:
        if operation not in OPERATIONS:
            raise ValueError(f"--operation {operation}: expected one of {', '.join(OPERATIONS)}, all")
    return found


def _resources(options: dict[str, Any]) -> list[tuple[str, str]]:
    """Resource and name of each that was named."""
    named = [
        (resource, name)
        for resource in ("group", "topic", "transactional-id")
        for name in options[resource.replace("-", "_")]
    ]
    return [*named, *([("cluster", CLUSTER_NAME)] if options["cluster"] else [])]


def _rules(options: dict[str, Any]) -> list[Rule]:
    """The rules to add, without their effect. Raises ValueError."""
    operations, resources, pattern = _operations(options), _resources(options), options["resource_pattern_type"]
    if options["role"]:
        if operations or resources or pattern:
            raise ValueError("--role: it has operations and resources of its own; use --prefix to narrow it")
        if options["deny_principal"]:
            raise ValueError("--deny-principal: a role allows; deny an operation with --operation")
        return list(role(options["role"]).rules(options["prefix"].removesuffix("*")))
    if options["prefix"]:
        raise ValueError("--prefix: it belongs to --role; otherwise use --resource-pattern-type prefixed")
    if pattern in ("any", "match"):
        raise ValueError(
            f"--resource-pattern-type {pattern}: it is for --list and --remove; add literal or prefixed rules"
        )
    if not operations:
        raise ValueError(f"--operation: name at least one of {', '.join(OPERATIONS)}, all; or give a --role")
    if not resources:
        raise ValueError("--group, --topic, --transactional-id or --cluster: name what the rules are about")
    return [check_rule(_rule(one, *resource, pattern or "literal")) for resource in resources for one in operations]


def _rule(operation: str, resource: str, name: str, pattern: str) -> Rule:
    if name == "*":
        return Rule(operation, resource, "prefix", "")
    return Rule(operation, resource, PATTERNS[pattern] if resource != "cluster" else "literal", name)


def _filtered(options: dict[str, Any]) -> bool:
    named = ("principal", "allow_principal", "deny_principal", "operation", "resource_pattern_type", "role")
    return any(options[name] for name in named) or bool(_resources(options))


def _found(options: dict[str, Any]) -> list[AccessRule]:
    """The rules that match, each once; with a role, only the rules that it consists of. Raises ValueError."""
    found = {row.pk: row for wanted in _filters(options) for row in store.listed(wanted)}
    if options["role"]:
        of_role = set(role(options["role"]).rules(options["prefix"].removesuffix("*")))
        found = {pk: row for pk, row in found.items() if store.rule_of(row) in of_role}
    elif options["prefix"]:
        raise ValueError("--prefix: it belongs to --role; otherwise use --resource-pattern-type prefixed")
    return list(found.values())


def _filters(options: dict[str, Any]) -> list[RuleFilter]:
    """What the options describe: one filter for each effect and resource that they name. Raises ValueError."""
    holders: list[tuple[str | None, list[HolderName] | None]] = [
        (effect, _holders(options[option], f"--{option.replace('_', '-')}"))
        for effect, option in ((None, "principal"), ("allow", "allow_principal"), ("deny", "deny_principal"))
        if options[option]
    ] or [(None, None)]
    pattern = PATTERNS[options["resource_pattern_type"] or "any"]
    resources: list[tuple[str | None, str | None]] = list(_resources(options)) or [(None, None)]
    return [
        RuleFilter(
            among,
            effect,
            _operations(options) or None,
            resource,
            "" if name == "*" else name,
            "match" if resource == "cluster" else "prefix" if name == "*" else pattern,
        )
        for effect, among in holders
        for resource, name in resources
    ]
