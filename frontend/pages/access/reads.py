"""Who has which rules: people, then groups of people, then tokens, each kind by name. On Django's connection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet

from kcoord.access import store
from kcoord.access.store import KINDS, HolderName, RuleFilter
from kcoord.access.tokens import Rule
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
