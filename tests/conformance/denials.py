"""`Deny`: our rules only allow, so a denial is a token with rules for everything else.

Resources that a case never names do not matter to it: where something is denied, the rules list the other names of
the case one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kcoord.access.rights import Operation, Resource, Rules
from kcoord.access.tokens import Rule
from tests.conformance.cases import Case
from tests.conformance.driver import NoDriver
from tests.conformance.http_transactions import transactional_ids

Denial = tuple[Operation, Resource, str]


def denial(args: Mapping[str, Any]) -> Denial:
    """The denial of a `Deny`. Raises NoDriver for an operation or resource that our rules do not have."""
    operation, resource = (args[name].lower().replace("_", "-") for name in ("operation", "resource_type"))
    if (operation, resource) == ("write", Resource.TRANSACTIONAL_ID.value):
        operation = Operation.READ.value  # what members need on everything
    try:
        return Operation(operation), Resource(resource), args["resource_name"]
    except ValueError as error:
        raise NoDriver(f"no driver for call Deny {args['operation']} {args['resource_type']}: {error}") from error


def rules_without(denials: list[Denial], case: Case) -> list[Rule]:
    """Rules that allow everything the case names but what is denied, or what would imply it."""
    sent = transactional_ids(case).values()
    names = sorted({*_names(case.raw), *(name for _, _, name in denials), *(derived for derived, _ in sent)})
    rules = []
    for operation in Operation:
        for resource in Resource:
            denied = {name for refused, kind, name in denials if kind is resource and _implies(operation, refused)}
            if denied:
                if resource is Resource.TRANSACTIONAL_ID:
                    denied |= {derived for derived, named in sent if named in denied}
                rules += [Rule(operation, resource, "literal", name) for name in names if name not in denied]
            else:
                rules.append(Rule(operation, resource, "prefix", ""))
    return rules


def _implies(operation: Operation, refused: Operation) -> bool:
    """Whoever may do the one may do the other."""
    return Rules([(operation, Resource.GROUP, "literal", "any")]).allows(refused, Resource.GROUP, "any")


def _names(value: Any) -> Iterator[str]:
    """Every text in a case that could be the name of a group or topic."""
    if isinstance(value, str):
        if value:
            yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _names(key)
            yield from _names(item)
    elif isinstance(value, list):
        for item in value:
            yield from _names(item)
