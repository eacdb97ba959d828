"""What rules allow, in words. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from frontend.pages.access.reads import Held, Source, Wanted
from frontend.ui.wording import joined
from kcoord.access.rights import CLUSTER_NAME, Operation, Resource, Rules
from kcoord.access.roles import ADMINISTRATOR, Role, roles_of
from kcoord.access.tokens import OPERATIONS, RESOURCES, Rule

_SEES_CLUSTER = "see the nodes and health of the service, and the names of all groups"
_IMPLIED = ("alter-offsets", "delete", "kick")
"""Operations that some resources do not have: allowing them there allows to describe, and nothing else."""

MEANINGS: dict[tuple[str, str], str] = {
    ("read", "group"): "be a member of, and commit and fetch offsets of, {}",
    ("describe", "group"): "see {}, with members, offsets and lag",
    ("alter-offsets", "group"): "reset the offsets of {}",
    ("delete", "group"): "delete {}, with all committed offsets",
    ("kick", "group"): "remove members of, and hold, {}",
    ("admin", "group"): "do everything with {}",
    ("read", "topic"): "commit and fetch offsets on {}",
    ("describe", "topic"): "see {}",
    ("alter-offsets", "topic"): "see {}",
    ("delete", "topic"): "delete {}",
    ("kick", "topic"): "see {}",
    ("admin", "topic"): "do everything with {}",
    ("read", "transactional-id"): "commit within transactions of {}",
    ("describe", "transactional-id"): "see {}",
    **{(operation, "transactional-id"): "see {}" for operation in _IMPLIED},
    ("admin", "transactional-id"): "do everything with {}",
    **{(operation, "cluster"): _SEES_CLUSTER for operation in ("describe", "read", *_IMPLIED)},
    ("admin", "cluster"): "administer the service, and see its health and the names of all groups",
}
"""(Operation, resource) -> what it allows with the names put in."""
RESETS: dict[tuple[str, str], str] = {("read", "topic"): "commit, fetch and reset offsets on {}"}
"""The same where other rules allow to reset offsets of some group, for which a topic has to be readable."""
UNREADABLE: dict[tuple[str, str], str] = {
    ("alter-offsets", "group"): "reset the offsets of {}, but on no topic: none may be read"
}
"""The same where no rule allows to read a topic."""
DENIED: dict[tuple[str, str], str] = {
    ("read", "topic"): "commit, fetch or reset offsets on {}",
    ("alter-offsets", "topic"): "alter offsets of {}",
    ("kick", "topic"): "kick on {}",
    ("alter-offsets", "transactional-id"): "alter offsets of {}",
    ("delete", "transactional-id"): "delete {}",
    ("kick", "transactional-id"): "kick on {}",
    ("describe", "cluster"): "see the nodes and health of the service, or the names of all groups",
    **{(operation, "cluster"): f"{operation} on the service" for operation in ("read", *_IMPLIED)},
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
EVERYTHING = "do everything: with every group and topic, and create tokens that may do the same"


@dataclass(frozen=True, slots=True)
class Told:
    """What rules amount to. `denied`: what wins over all that is allowed, without `not`; `roles`: by their names."""

    denied: Sequence[str]
    roles: Sequence[str]
    allowed: Sequence[str]

    @property
    def empty(self) -> bool:
        """The rules say nothing."""
        return not (self.denied or self.roles or self.allowed)


def written(rule: Rule) -> str:
    """A rule as `parse_rule` reads it."""
    deny = "deny:" if rule.effect == "deny" else ""
    star = "*" if rule.pattern == "prefix" else ""
    return f"{deny}{rule.operation}:{rule.resource}:{rule.name}{star}"


def effective(rules: Iterable[Rule]) -> Rules:
    """The rules as requests are checked by them."""
    return Rules((rule.operation, rule.resource, rule.pattern, rule.name, rule.effect) for rule in rules)


def is_administrator(rules: Iterable[Rule]) -> bool:
    """The rules allow everything: also to manage tokens."""
    return effective(rules).not_administered is None


def allows(rules: Iterable[Rule]) -> list[str]:
    """One phrase per operation and resource, for `It may …`; what is denied begins with `not`."""
    rules = list(rules)
    allowed = [EVERYTHING] if is_administrator(rules) else _allowed(_of(rules, "allow"), effective(rules))
    return [*allowed, *(f"not {phrase}" for phrase in denies(rules))]


def denies(rules: Iterable[Rule]) -> list[str]:
    """What rules deny, one phrase per operation and resource, for `It may not …`."""
    return _phrases(_of(rules, "deny"), MEANINGS | DENIED)


def told(rules: Iterable[Rule]) -> Told:
    """Rules in the words of a page: those that make up a role by its name, the rest one by one."""
    rules = list(rules)
    held = roles_of(rules)
    rest = set(_of(rules, "allow"))
    for role, prefix in held:
        rest -= rest if role is ADMINISTRATOR else set(role.rules(prefix))
    return Told(denies(rules), [_called(role, prefix) for role, prefix in held], _allowed(rest, effective(rules)))


def may(rules: Rules, resource: str, name: str) -> list[str]:
    """What is allowed with one resource, whatever rules say so."""
    allowed = [one for one in OPERATIONS if rules.allows(Operation(one), Resource(resource), name)]
    if len(allowed) == len(OPERATIONS):
        allowed = ["admin"]
    return _allowed([Rule(operation, resource, "literal", name) for operation in allowed], rules)


def may_not(rules: Iterable[Rule], resource: str, name: str) -> list[str]:
    """What is denied with one resource by rules that are all about it."""
    denied = {rule.operation for rule in rules if rule.effect == "deny"}
    if "admin" in denied:
        denied = {"admin"}
    return denies(Rule(operation, resource, "literal", name, "deny") for operation in denied)


def _allowed(rules: Iterable[Rule], all_rules: Rules) -> list[str]:
    """What these rules allow, in words that are true beside all rules of the same holder."""
    meanings = MEANINGS
    if _anywhere(all_rules, Operation.ALTER_OFFSETS, Resource.GROUP):
        meanings = meanings | RESETS
    if not _anywhere(all_rules, Operation.READ, Resource.TOPIC):
        meanings = meanings | UNREADABLE
    return _phrases(rules, meanings)


def _anywhere(rules: Rules, operation: Operation, resource: Resource) -> bool:
    """The rules allow the operation with some name."""
    visible = rules.visible(operation, resource)
    return bool(visible.names or visible.prefixes)


def _called(role: Role, prefix: str) -> str:
    if role is ADMINISTRATOR:
        return f"{role.label} of everything, with tokens and the rights of others"
    of = f"all groups, topics and transactional ids that begin with {prefix}" if prefix else "everything"
    return f"{role.label} of {of}"


def _of(rules: Iterable[Rule], effect: str) -> list[Rule]:
    """The rules with this effect, without those about a cluster that does not exist."""
    return [rule for rule in rules if rule.effect == effect and (rule.resource != "cluster" or _of_cluster(rule))]


def _of_cluster(rule: Rule) -> bool:
    return rule.name == CLUSTER_NAME or (rule.pattern == "prefix" and CLUSTER_NAME.startswith(rule.name))


def _phrases(rules: Iterable[Rule], meanings: Mapping[tuple[str, str], str]) -> list[str]:
    by_kind: dict[tuple[str, str], list[Rule]] = {}
    for rule in rules:
        by_kind.setdefault((rule.operation, rule.resource), []).append(rule)
    order = [(operation, resource) for resource in RESOURCES for operation in OPERATIONS]
    found = [meanings[kind].format(_names(kind[1], by_kind[kind])) for kind in order if kind in by_kind]
    return list(dict.fromkeys(found))


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


KINDS = {"User": "person", "Group": "group of people", "Token": "token"}
STATES = {
    "superuser": EVERYTHING,
    "inactive": "nothing: the account is not active",
    "expired": "nothing: it has expired",
}
PEOPLE_SHOWN = 6
RULES_NAMED = 8


@dataclass(frozen=True, slots=True)
class Part:
    """What some rules amount to. `through`: the group of people whose rules they are, "" for one's own."""

    through: str
    told: Told
    more: bool


@dataclass(frozen=True, slots=True)
class AccessLine:
    """A holder as the page shows it. `whole`: what it may, whatever its rules say; `parts`: what they say.

    `may`, `denied`, `because`: of a page about one resource: what it may do with that, what is denied, and the rules
    that say so, with the group of people whose they are.
    """

    held: Held
    kind: str
    whole: str
    parts: Sequence[Part]
    may: Sequence[str]
    denied: Sequence[str]
    because: Sequence[tuple[str, str]]
    because_more: int
    people: str
    administrator: bool


def access_line(found: Held, wanted: Wanted) -> AccessLine:
    """A holder in words."""
    rules = [rule for source in found.sources for rule in source.rules]
    because = [(source.through, written(rule)) for source in found.sources for rule in source.rules]
    because.sort(key=lambda one: not one[1].startswith("deny:"))
    about, allowed, denied = wanted.rules, list[str](), list[str]()
    if about.resource is not None and about.name is not None:
        allowed = may(effective(rules), about.resource, about.name)
        denied = may_not(rules, about.resource, about.name)
    return AccessLine(
        found,
        KINDS[found.holder.kind],
        STATES.get(found.state, ""),
        [Part(source.through, told(source.rules), source.more) for source in found.sources if source.rules],
        allowed,
        denied,
        because[:RULES_NAMED],
        max(len(because) - RULES_NAMED, 0),
        joined(found.people, PEOPLE_SHOWN) if found.people else "",
        found.state == "superuser" or (not found.state and about.is_empty and is_administrator(rules)),
    )


def csv_row(found: Held, source: Source, rule: Rule | None) -> Sequence[object]:
    """A line of the file: a rule with who has it; None: somebody without rules."""
    fields = (None,) * 5 if rule is None else (rule.effect, rule.operation, rule.resource, rule.pattern, rule.name)
    said = "" if rule is None else _in_words(rule)
    return (found.holder.kind, found.holder.name, found.state, source.through, *fields, said)


def _in_words(rule: Rule) -> str:
    one = told([rule])
    return "; ".join([*(f"not {phrase}" for phrase in one.denied), *one.roles, *one.allowed])
