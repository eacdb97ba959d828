"""Rules for usual purposes, from the fields of a form. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kcoord.access.roles import ADMINISTRATOR, OPERATOR, VIEWER
from kcoord.access.tokens import NAME_MAX, Rule, parse_rule


@dataclass(frozen=True, slots=True)
class Preset:
    """A purpose: a service, or a role (`kcoord.access.roles`)."""

    key: str
    label: str
    help: str


ROLES = {"viewer-role": VIEWER, "operator-role": OPERATOR}
PRESETS = (
    Preset("consumer", "Consumer", "A service that consumes: joins its group, commits and fetches."),
    Preset("lag", "Lag reader", "Monitoring: sees groups, members, offsets and lag, and changes nothing."),
    Preset("operator", "Operator of groups", "Resets offsets, removes members, holds and deletes groups."),
    Preset("viewer-role", VIEWER.label, f"{VIEWER.help} By the beginning of names."),
    Preset("operator-role", OPERATOR.label, f"{OPERATOR.help} By the beginning of names."),
    Preset("administrator", ADMINISTRATOR.label, ADMINISTRATOR.help),
    Preset("custom", "Own rules", "One per line: operation:resource:name; a * at the end makes the name a prefix."),
)


def rules_of(given: Mapping[str, str]) -> list[Rule]:
    """The rules that a form asks for. Raises ValueError naming the field and the remedy."""
    preset = given.get("preset", "")
    if preset == "administrator":
        return list(ADMINISTRATOR.rules())
    if preset in ROLES:
        return list(ROLES[preset].rules(_prefix(given.get("prefix", ""))))
    if preset == "custom":
        rules = [parse_rule(line.strip()) for line in given.get("rules", "").splitlines() if line.strip()]
        if not rules:
            raise ValueError("Own rules: write at least one, such as read:group:billing-*.")
        return rules
    on = {
        "consumer": (("read",), ("read",)),
        "lag": (("describe",), ("describe",)),
        "operator": (("read", "alter-offsets", "delete", "kick"), ("read",)),
    }.get(preset)
    if on is None:
        raise ValueError("Choose what the token is for.")
    found = []
    for field, label, resource, operations in (
        ("groups", "Groups", "group", on[0]),
        ("topics", "Topics", "topic", on[1]),
    ):
        names = _names(given.get(field, ""), label)
        if not names:
            raise ValueError(f"{label}: name at least one; * means all.")
        found += [Rule(operation, resource, *name) for name in names for operation in operations]
    return found


def _prefix(written: str) -> str:
    """The beginning of names that a role is about; `*` stands for all names."""
    prefix = written.strip()
    if not prefix:
        raise ValueError("Prefix: write how the names begin, such as billing-; * means everything.")
    if len(prefix) > NAME_MAX or "\0" in prefix:
        raise ValueError(f"Prefix: at most {NAME_MAX} characters, without NUL.")
    return prefix.removesuffix("*")


def _names(written: str, label: str) -> list[tuple[str, str]]:
    """Pattern and name of each of several names, separated by spaces, commas or lines."""
    names = []
    for name in written.replace(",", " ").split():
        pattern = "prefix" if name.endswith("*") else "literal"
        if len(name.removesuffix("*")) > NAME_MAX or "\0" in name:
            raise ValueError(f"{label}: a name has at most {NAME_MAX} characters.")
        names.append((pattern, name.removesuffix("*")))
    return list(dict.fromkeys(names))
