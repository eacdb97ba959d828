"""Rules for usual purposes, from the fields of a form. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from frontend.access.words import allows
from kcoord.access.roles import ADMINISTRATOR, OPERATOR, VIEWER
from kcoord.access.tokens import NAME_MAX, Rule, parse_rule


@dataclass(frozen=True, slots=True)
class Preset:
    """A purpose: a service, or a role (`kcoord.access.roles`)."""

    key: str
    label: str
    help: str


ROLES = {"viewer-role": VIEWER, "operator-role": OPERATOR}
GRANTED: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "consumer": (("read",), ("read",)),
    "lag": (("describe",), ("describe",)),
    "operator": (("read", "alter-offsets", "delete", "kick"), ("read",)),
}
"""Presets for names of groups and topics: the operations on the groups, and on the topics."""


def _granted(preset: str, groups: Iterable[tuple[str, str]], topics: Iterable[tuple[str, str]]) -> list[Rule]:
    """The rules of one of them. Names are pairs of pattern and name."""
    on_groups, on_topics = GRANTED[preset]
    return [
        *(Rule(operation, "group", *name) for name in groups for operation in on_groups),
        *(Rule(operation, "topic", *name) for name in topics for operation in on_topics),
    ]


def _help(purpose: str, preset: str) -> str:
    """What a preset is for, and what its rules allow."""
    rules = _granted(preset, [("literal", "named")], [("literal", "named")])
    phrases = [_of_named(phrase) for phrase in allows(rules)]
    return f"{purpose} It may {'; '.join(phrases)}."


def _of_named(phrase: str) -> str:
    return phrase.replace("group named", "the groups").replace("topic named", "the topics")


PRESETS = (
    Preset("consumer", "Consumer", _help("A service that consumes.", "consumer")),
    Preset("lag", "Lag reader", _help("Monitoring, which changes nothing.", "lag")),
    Preset("operator", "Operator of groups", _help("People and programs that run groups.", "operator")),
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
    if preset not in GRANTED:
        raise ValueError("Choose what the token is for.")
    return _granted(preset, *(_names(given.get(label.lower(), ""), label) for label in ("Groups", "Topics")))


def _prefix(written: str) -> str:
    """The beginning of names that a role is about; `*` stands for all names."""
    prefix = written.strip()
    if not prefix:
        raise ValueError("Prefix: write how the names begin, such as billing-; * means everything.")
    if len(prefix) > NAME_MAX:
        raise ValueError(f"Prefix: at most {NAME_MAX} characters.")
    return prefix.removesuffix("*")


def _names(written: str, label: str) -> list[tuple[str, str]]:
    """Pattern and name of each of several names, separated by spaces, commas or lines."""
    names = []
    for name in written.replace(",", " ").split():
        pattern = "prefix" if name.endswith("*") else "literal"
        if len(name.removesuffix("*")) > NAME_MAX:
            raise ValueError(f"{label}: a name has at most {NAME_MAX} characters.")
        names.append((pattern, name.removesuffix("*")))
    if not names:
        raise ValueError(f"{label}: name at least one; * means all.")
    return list(dict.fromkeys(names))
