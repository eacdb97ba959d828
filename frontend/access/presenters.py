"""Who may what, as the page and its file show it. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frontend.access.reads import Held, Source, Wanted
from frontend.access.words import EVERYTHING, Told, effective, is_administrator, may, may_not, told, written
from frontend.wording import joined
from kcoord.access.tokens import Rule

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
