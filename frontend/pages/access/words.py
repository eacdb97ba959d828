"""Who has which rules, and what they allow in words. Rules are read on Django's connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet

from frontend.ui.wording import joined
from kcoord.access import store
from kcoord.access.rights import CLUSTER_NAME, Operation, Resource, Rules
from kcoord.access.roles import ADMINISTRATOR, Role, roles_of
from kcoord.access.store import KINDS, HolderName, RuleFilter
from kcoord.access.tokens import OPERATIONS, RESOURCES, Rule
from kcoord.models import AccessRule, ApiToken

PAGE_SIZE = 50
RULES_SHOWN = 40
"""Rules of one holder on a page. With the name of a resource all are read that are about it, which cannot be many."""
GROUPS_SHOWN = 20
"""Groups of one person on a page, and people of one group."""
ORDER = ("-effect", "resource", "operation", "name", "pattern")
"""Denials first: they win."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a page asks for. `rules`: about which resource; `kind`: one of KINDS, or ""; `q`: part of a name.

    `own`: the id of the only account that may be shown; None for those who may see everybody. `after`: kind and name.
    """

    rules: RuleFilter = field(default_factory=RuleFilter)
    kind: str = ""
    q: str = ""
    own: int | None = None
    after: tuple[str, str] | None = None

    @property
    def about_one(self) -> bool:
        """It is about one resource, so that all rules are read that say something of it."""
        return self.rules.name is not None


@dataclass(frozen=True, slots=True)
class Source:
    """Rules, denials first, and whose they are: the holder's own (`through` ""), or those of a group it is in.

    `more`: there are others, which were not read.
    """

    through: str
    rules: Sequence[Rule]
    more: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """Who has rules. `state`: `superuser`, `inactive`, `expired`, or "" where the rules say it all.

    `people`: some of those in a group; `more_groups`: there are groups of this person that were not read.
    """

    holder: HolderName
    pk: int
    state: str
    sources: Sequence[Source]
    people: Sequence[str] = field(default=())
    more_groups: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What the page after this one continues from."""
        return self.holder.kind, self.holder.name


def held(wanted: Wanted, now: int, limit: int = PAGE_SIZE) -> tuple[list[Held], bool]:
    """A page of holders, and whether there are more. `now`: milliseconds, for tokens that have expired."""
    found: list[Held] = []
    for kind in KINDS[KINDS.index(wanted.after[0]) if wanted.after else 0 :]:
        if len(found) > limit or (wanted.kind and kind != wanted.kind) or (wanted.own and kind != "User"):
            continue
        found += [_held(kind, row, now, wanted) for row in rows(kind, wanted)[: limit + 1 - len(found)]]
    return found[:limit], len(found) > limit


def every(wanted: Wanted, now: int) -> Iterator[Held]:
    """All of them, read a page at a time."""
    more = True
    while more:
        found, more = held(wanted, now)
        yield from found
        wanted = replace(wanted, after=found[-1].key) if found else wanted


def all_rules(source: Source, holder: HolderName, wanted: RuleFilter) -> Iterator[Rule]:
    """The rules of a source, also those that the page leaves out."""
    if not source.more:
        yield from source.rules
        return
    whose = HolderName("Group", source.through) if source.through else holder
    found = store.listed(replace(wanted, holders=[whose])).order_by(*ORDER)
    yield from (store.rule_of(row) for row in found.iterator(chunk_size=2_000))


def rows(kind: str, wanted: Wanted) -> QuerySet[Any]:
    """The holders of a kind with some of their rules, by name."""
    found: QuerySet[Any]
    if kind == "User":
        found, name = get_user_model()._default_manager.all(), "username"
        if wanted.own is not None:
            found = found.filter(pk=wanted.own)
        found = found.prefetch_related(_rules("access_rules", wanted), _groups(wanted))
    elif kind == "Group":
        found, name = Group.objects.all(), "name"
        people = get_user_model()._default_manager.order_by("username").only("username")
        found = found.prefetch_related(
            _rules("access_rules", wanted), Prefetch("user_set", people[: GROUPS_SHOWN + 1], to_attr="shown_people")
        )
    else:
        found, name = ApiToken.objects.select_related("owner"), "name"
        found = found.prefetch_related(_rules("rules", wanted))
    if wanted.q:
        found = found.filter(**{f"{name}__icontains": wanted.q})
    if wanted.after and wanted.after[0] == kind:
        found = found.filter(**{f"{name}__gt": wanted.after[1]})
    if not wanted.rules.is_empty:
        found = found.filter(_has_some(kind, store.listed(wanted.rules).order_by()))
    return found.order_by(name)


def _has_some(kind: str, matching: QuerySet[AccessRule]) -> Q:
    own = Q(Exists(matching.filter(**{HolderName(kind, "").field: OuterRef("pk")})))
    if kind != "User":
        return own
    return own | Q(is_superuser=True) | Q(Exists(matching.filter(group__user=OuterRef("pk"))))


def _rules(name: str, wanted: Wanted) -> Prefetch[Any]:
    found = store.listed(wanted.rules).select_related(None).order_by(*ORDER)
    return Prefetch(name, found if wanted.about_one else found[: RULES_SHOWN + 1], to_attr="shown_rules")


def _groups(wanted: Wanted) -> Prefetch[Any]:
    found = Group.objects.order_by("name").prefetch_related(_rules("access_rules", wanted))
    if not wanted.rules.is_empty:
        found = found.filter(_has_some("Group", store.listed(wanted.rules).order_by()))
    return Prefetch("groups", found if wanted.about_one else found[: GROUPS_SHOWN + 1], to_attr="shown_groups")


def _held(kind: str, row: Any, now: int, wanted: Wanted) -> Held:
    name = row.get_username() if kind == "User" else row.name
    most = None if wanted.about_one else GROUPS_SHOWN
    groups = getattr(row, "shown_groups", [])
    sources = [_source("", row, wanted), *(_source(group.name, group, wanted) for group in groups[:most])]
    return Held(
        HolderName(kind, name),
        row.pk,
        _state(kind, row, now),
        sources,
        [person.get_username() for person in getattr(row, "shown_people", ())],
        most is not None and len(groups) > most,
    )


def _source(through: str, row: Any, wanted: Wanted) -> Source:
    most = None if wanted.about_one else RULES_SHOWN
    rules = [store.rule_of(rule) for rule in row.shown_rules]
    return Source(through, rules[:most], most is not None and len(rules) > most)


def _state(kind: str, row: Any, now: int) -> str:
    if kind == "User":
        return "inactive" if not row.is_active else "superuser" if row.is_superuser else ""
    if kind == "Group":
        return ""
    if row.expires_at is not None and row.expires_at <= now:
        return "expired"
    return "inactive" if row.owner is not None and not row.owner.is_active else ""


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


KIND_WORDS = {"User": "person", "Group": "group of people", "Token": "token"}
STATES = {
    "superuser": EVERYTHING,
    "inactive": "nothing: the account is not active",
    "expired": "nothing: it has expired",
}
PEOPLE_SHOWN = 6
RULES_NAMED = 8


@dataclass(frozen=True, slots=True)
class AccessLine:
    """A holder as the page shows it. `whole`: what it may, whatever its rules say; `parts`: what they say.

    Of each part the group of people whose rules they are, "" for one's own, and whether there are more.
    `may`, `denied`, `because`: of a page about one resource: what it may do with that, what is denied, and the rules
    that say so, with the group of people whose they are.
    """

    held: Held
    kind: str
    whole: str
    parts: Sequence[tuple[str, Told, bool]]
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
        KIND_WORDS[found.holder.kind],
        STATES.get(found.state, ""),
        [(source.through, told(source.rules), source.more) for source in found.sources if source.rules],
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
