"""Roles: names for the rules that people and services usually need. Pure data and functions.

A role is only a way to write rules: what is stored are its rules, and a holder of the same rules, however they were
given, has the role.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kcoord.access.tokens import RESOURCES, Rule


@dataclass(frozen=True, slots=True)
class Role:
    """What somebody may do in one word. `of_prefix`: on names with a prefix; otherwise on everything."""

    key: str
    label: str
    help: str
    operations: tuple[tuple[str, str], ...]
    of_prefix: bool

    def rules(self, prefix: str = "") -> tuple[Rule, ...]:
        """Its rules on names that begin with `prefix`; the empty one stands for all names.

        Raises ValueError if the role is about everything and a prefix is given. Only with the empty prefix do the rules
        include the cluster: `describe` on it shows all groups in lists.
        """
        if prefix and not self.of_prefix:
            raise ValueError(f"prefix: the role {self.key} is about everything; leave the prefix out")
        return tuple(
            Rule(operation, resource, "prefix", "" if resource == "cluster" else prefix)
            for operation, resource in self.operations
            if not (prefix and resource == "cluster")
        )


_SEES = tuple(("describe", resource) for resource in RESOURCES)
VIEWER = Role("viewer", "Viewer", "Sees groups, topics, members, offsets and lag, and changes nothing.", _SEES, True)
OPERATOR = Role(
    "operator",
    "Operator",
    "Sees the same; resets offsets, removes members, holds and deletes groups.",
    (
        *_SEES,
        *(("alter-offsets", "group"), ("delete", "group"), ("kick", "group")),
        ("read", "topic"),
    ),
    True,
)
ADMINISTRATOR = Role(
    "administrator",
    "Administrator",
    "Everything, including tokens and the rules of others.",
    tuple(("admin", resource) for resource in RESOURCES),
    False,
)
ROLES = {role.key: role for role in (VIEWER, OPERATOR, ADMINISTRATOR)}


def role(key: str) -> Role:
    """The role of this name. Raises ValueError naming all of them."""
    if key not in ROLES:
        raise ValueError(f"role: {key!r} is not one of {', '.join(ROLES)}")
    return ROLES[key]


def roles_of(rules: Iterable[Rule]) -> list[tuple[Role, str]]:
    """The roles, with their prefixes, whose rules are all among these, without those that another of them includes."""
    held = {rule for rule in rules if rule.effect == "allow"}
    found: list[tuple[Role, str]] = []
    for prefix in sorted({rule.name for rule in held if rule.pattern == "prefix"}):
        for one in (ADMINISTRATOR, OPERATOR, VIEWER):
            if (one.of_prefix or not prefix) and held.issuperset(one.rules(prefix)):
                found.append((one, prefix))
                break
    return found
