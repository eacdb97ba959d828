"""The rules that tokens, accounts and groups of people have: the only place that writes and lists them.

A holder is written as Kafka writes a principal: `User:mara`, `Group:billing-team` (a Django group), `Token:ops`. For
synchronous code, on Django's connection; a caller that adds several things at once opens the transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import F, Model, Q, QuerySet, TextField, Value
from django.db.models.functions import StrIndex

from kcoord.access.audit.recording import Act, record_here
from kcoord.access.tokens import Rule, check_rule
from kcoord.models import AccessRule, ApiToken

KINDS = ("User", "Group", "Token")
_NAME = {"User": "username", "Group": "name", "Token": "name"}


class UnknownHolder(ValueError):
    """There is no account, group or token of this name."""


@dataclass(frozen=True, slots=True)
class HolderName:
    """Who has a rule: `kind` is one of KINDS."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @property
    def field(self) -> str:
        """The foreign key of a rule that refers to it."""
        return self.kind.lower()

    def model(self) -> type[Model]:
        """The model of the holder."""
        models: dict[str, type[Model]] = {"User": get_user_model(), "Group": Group, "Token": ApiToken}
        return models[self.kind]

    def find(self) -> Model:
        """The holder. Raises UnknownHolder."""
        found = self.model()._default_manager.filter(**{_NAME[self.kind]: self.name}).first()
        if found is None:
            raise UnknownHolder(f"there is no {NOUNS[self.kind]} {self.name!r}")
        return found


NOUNS = {"User": "account", "Group": "group of people", "Token": "token"}


def parse_holder(text: str) -> HolderName:
    """Parse `User:name`, `Group:name` or `Token:name`. Raises ValueError naming the fault."""
    kind, colon, name = text.partition(":")
    if kind not in KINDS or not colon:
        raise ValueError(f"{text!r}: expected User:NAME, Group:NAME (a group of people) or Token:NAME")
    if not name or name == "*":
        raise ValueError(f"{text!r}: name one {NOUNS[kind]}; rules for everybody are given to a group")
    if "\0" in name:
        raise ValueError(f"{text!r}: a name has no NUL")
    return HolderName(kind, name)


def rule_of(row: AccessRule) -> Rule:
    """A stored rule as a value."""
    return Rule(row.operation, row.resource, row.pattern, row.name, row.effect)


def holder_of(row: AccessRule) -> HolderName:
    """Who has a stored rule; its holder was read along with it (`listed`)."""
    if row.user is not None:
        return HolderName("User", row.user.get_username())
    if row.group is not None:
        return HolderName("Group", row.group.name)
    assert row.token is not None
    return HolderName("Token", row.token.name)


@dataclass(frozen=True, slots=True)
class RuleFilter:
    """Which rules: None is no condition. `pattern`: `literal` or `prefix`, which with `name` must match exactly;
    `any`: of either pattern with exactly this name; `match`: those that are about the resource called `name`.
    """

    holders: Sequence[HolderName] | None = None
    effect: str | None = None
    operations: Sequence[str] | None = None
    resource: str | None = None
    name: str | None = None
    pattern: str = "any"

    @property
    def is_empty(self) -> bool:
        """It has no condition, so that it finds every rule."""
        return self == RuleFilter(pattern=self.pattern) and self.pattern in ("any", "match")


def listed(wanted: RuleFilter = RuleFilter()) -> QuerySet[AccessRule]:  # noqa: B008 - immutable
    """The rules that match, oldest first, with their holders."""
    found = AccessRule.objects.select_related("user", "group", "token").order_by("id")
    if wanted.holders is not None:
        of_any = Q(pk__in=[])
        for holder in wanted.holders:
            of_any |= Q(**{f"{holder.field}__{_NAME[holder.kind]}": holder.name})
        found = found.filter(of_any)
    if wanted.effect is not None:
        found = found.filter(effect=wanted.effect)
    if wanted.operations is not None:
        found = found.filter(operation__in=wanted.operations)
    if wanted.resource is not None:
        found = found.filter(resource=wanted.resource)
    if wanted.pattern in ("literal", "prefix"):
        found = found.filter(pattern=wanted.pattern)
    if wanted.name is None:
        return found
    if wanted.pattern != "match":
        return found.filter(name=wanted.name)
    begins = found.annotate(begins=StrIndex(Value(wanted.name, TextField()), F("name")))
    return begins.filter(
        Q(pattern="literal", name=wanted.name) | Q(pattern="prefix", begins=1) | Q(pattern="prefix", name="")
    )


def add_rules(holder: HolderName, rules: Iterable[Rule]) -> list[AccessRule]:
    """Give a holder rules; those it has already stay as they are. Returns the new ones.

    Raises UnknownHolder, and ValueError naming the field of a rule at fault.
    """
    wanted = [check_rule(rule) for rule in dict.fromkeys(rules)]
    with transaction.atomic():
        found = holder.find()
        # Others that add rules to this holder wait: both would find theirs missing.
        type(found)._default_manager.select_for_update(of=("self",), no_key=True).get(pk=found.pk)
        has = {rule_of(row) for row in AccessRule.objects.filter(**{holder.field: found})}
        new = [
            AccessRule(
                **{holder.field: found},
                effect=rule.effect,
                operation=rule.operation,
                resource=rule.resource,
                pattern=rule.pattern,
                name=rule.name,
            )
            for rule in wanted
            if rule not in has
        ]
        added = AccessRule.objects.bulk_create(new)
        if added:
            record_here(Act("rule.add", "rule", str(holder), after={"rules": sorted(map(str, added))}))
        return added


def remove_rules(found: Iterable[AccessRule]) -> list[AccessRule]:
    """Remove these rules; returns those that were still there."""
    with transaction.atomic():
        ids = [row.pk for row in found]
        rows = list(
            AccessRule.objects.select_for_update(of=("self",))
            .select_related("user", "group", "token")
            .filter(pk__in=ids)
            .order_by("id")
        )
        AccessRule.objects.filter(pk__in=[row.pk for row in rows]).delete()
        by_holder: dict[str, list[str]] = {}
        for row in rows:
            by_holder.setdefault(str(holder_of(row)), []).append(str(row))
        for holder, removed in by_holder.items():
            record_here(Act("rule.remove", "rule", holder, before={"rules": sorted(removed)}))
        return rows


def create_group(name: str) -> HolderName:
    """A group of people of this name, which may exist already."""
    Group.objects.get_or_create(name=name)
    return HolderName("Group", name)


def rules_of(found: Any) -> list[Rule]:
    """The rules of an account, a group or a token, without those of groups that it is in."""
    related = found.rules if isinstance(found, ApiToken) else found.access_rules
    return [rule_of(row) for row in related.all()]
