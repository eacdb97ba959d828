"""What the rules of a token allow, in words. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from frontend.wording import joined
from kcoord.access.tokens import OPERATIONS, RESOURCES, Rule

MEANINGS: dict[tuple[str, str], str] = {
    ("read", "group"): "be a member of, and commit and fetch offsets of, {}",
    ("describe", "group"): "see {}, with members, offsets and lag",
    ("alter-offsets", "group"): "reset the offsets of {}",
    ("delete", "group"): "delete {} and their offsets",
    ("kick", "group"): "remove members of, and hold, {}",
    ("admin", "group"): "do everything with {}",
    ("read", "topic"): "read, commit and reset offsets on {}",
    ("describe", "topic"): "see {}",
    ("alter-offsets", "topic"): "see {}",
    ("delete", "topic"): "delete {}",
    ("kick", "topic"): "see {}",
    ("admin", "topic"): "do everything with {}",
    ("read", "transactional-id"): "commit within transactions of {}",
    ("admin", "transactional-id"): "do everything with {}",
    ("describe", "cluster"): "see the nodes of the service",
    ("admin", "cluster"): "administer the service",
}
"""(Operation, resource) -> what it allows with the names put in."""
DENIED: dict[tuple[str, str], str] = {
    ("alter-offsets", "topic"): "alter offsets of {}",
    ("kick", "topic"): "kick on {}",
    **{("admin", resource): "do anything with {}" for resource in ("group", "topic", "transactional-id")},
    ("admin", "cluster"): "see or administer the service",
}
"""The same where a denial needs other words: it denies its operation alone, and that of `admin` every operation."""
NOUNS = {
    "group": ("group", "groups"),
    "topic": ("topic", "topics"),
    "transactional-id": ("transactional id", "transactional ids"),
    "cluster": ("service", "services"),
}
MOST_NAMES = 6


def is_administrator(rules: Iterable[Rule]) -> bool:
    """The rules allow everything: also to manage tokens."""
    rules = list(rules)
    if any(rule.effect == "deny" for rule in rules):
        return False
    allowed = {(rule.operation, rule.resource) for rule in rules if rule.pattern == "prefix" and not rule.name}
    return all(("admin", resource) in allowed for resource in RESOURCES)


def allows(rules: Iterable[Rule]) -> list[str]:
    """One phrase per operation and resource, for `It may …`; what is denied begins with `not`."""
    rules = list(rules)
    if is_administrator(rules):
        return ["do everything: with every group and topic, and create tokens that may do the same"]
    return [
        *_phrases([rule for rule in rules if rule.effect != "deny"], MEANINGS),
        *(f"not {phrase}" for phrase in _phrases([rule for rule in rules if rule.effect == "deny"], MEANINGS | DENIED)),
    ]


def _phrases(rules: list[Rule], meanings: Mapping[tuple[str, str], str]) -> list[str]:
    by_kind: dict[tuple[str, str], list[Rule]] = {}
    for rule in rules:
        by_kind.setdefault((rule.operation, rule.resource), []).append(rule)
    order = [(operation, resource) for resource in RESOURCES for operation in OPERATIONS]
    return [_phrase(kind, by_kind[kind], meanings) for kind in order if kind in by_kind]


def _phrase(kind: tuple[str, str], rules: list[Rule], meanings: Mapping[tuple[str, str], str]) -> str:
    operation, resource = kind
    text = meanings.get(kind) or f"{operation} {{}}"
    return text.format(_names(resource, rules))


def _names(resource: str, rules: list[Rule]) -> str:
    one, many = NOUNS[resource]
    if any(rule.pattern == "prefix" and not rule.name for rule in rules):
        return f"all {many}"
    literal = sorted(rule.name for rule in rules if rule.pattern == "literal")
    prefixes = sorted(rule.name for rule in rules if rule.pattern == "prefix")
    parts = []
    if literal:
        parts.append(f"{one if len(literal) == 1 else many} {joined(literal, MOST_NAMES)}")
    if prefixes:
        parts.append(f"{many} that begin with {joined(prefixes, MOST_NAMES)}")
    return " and ".join(parts)
