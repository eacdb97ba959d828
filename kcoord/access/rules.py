"""Rules: operations on resources that are allowed or denied, and what several of them amount to.

The model is that of Kafka's ACLs: what no rule allows is refused, and a rule that denies wins over all that allow. A
caller that may read, alter, delete or kick may also describe, unless describe is denied. A rule that denies denies its
operation alone, except that of `admin`, which, like Kafka's `All`, denies every operation.

Differs from Kafka: six operations take the place of Kafka's, and no rule is about a host or about every principal.

Source: http-api.md 7; Kafka, `StandardAuthorizerData` (allow and deny, implied operations).
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Iterable
from enum import Enum

from kcoord.rest.paging import Visible


class Operation(str, Enum):
    """What a rule is about: something done with a resource."""

    READ = "read"
    DESCRIBE = "describe"
    ALTER_OFFSETS = "alter-offsets"
    DELETE = "delete"
    KICK = "kick"
    ADMIN = "admin"

    __hash__ = str.__hash__  # that of Enum is written in Python, and every request looks up its rules


class Resource(str, Enum):
    """The kind of thing that a rule is about."""

    GROUP = "group"
    TOPIC = "topic"
    TRANSACTIONAL_ID = "transactional-id"
    CLUSTER = "cluster"

    __hash__ = str.__hash__


class Effect(str, Enum):
    """What a rule does with the operation."""

    ALLOW = "allow"
    DENY = "deny"


CLUSTER_NAME = "kafka-cluster"
"""The name of the only cluster resource, as in Kafka."""

Rule = tuple[str, str, str, str] | tuple[str, str, str, str, str]
"""Operation, resource, pattern (`literal` or `prefix`), name, and the effect: `allow` if it is left out."""

Kind = tuple[Operation, Resource]
Named = tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]
"""Names, prefixes of names if they are few, and prefixes if they are many; sorted, none begins with another."""

IMPLIED: dict[Operation, tuple[Operation, ...]] = {
    Operation.ADMIN: tuple(Operation),
    **{
        operation: (operation, Operation.DESCRIBE)
        for operation in (Operation.READ, Operation.ALTER_OFFSETS, Operation.DELETE, Operation.KICK)
    },
    Operation.DESCRIBE: (Operation.DESCRIBE,),
}
"""What a rule that allows an operation allows."""

_NONE: Named = (frozenset(), (), ())
FEW = 16
"""Up to that many prefixes are compared one after the other."""


class Rules:
    """The rules of one caller, indexed for the check that every request makes."""

    __slots__ = ("_allowed", "_denied", "_keys", "_visible")

    def __init__(self, rules: Iterable[Rule]) -> None:
        allowed: dict[Kind, tuple[set[str], set[str]]] = {}
        denied: dict[Kind, tuple[set[str], set[str]]] = {}
        for operation, resource, pattern, name, *effect in rules:
            operations: tuple[Operation, ...] = IMPLIED[Operation(operation)]
            into = allowed
            if effect and Effect(effect[0]) is Effect.DENY:
                into = denied
                operations = operations if operation == Operation.ADMIN.value else (Operation(operation),)
            for one in operations:
                into.setdefault((one, Resource(resource)), (set(), set()))[pattern != "literal"].add(name)
        self._allowed = _indexed(allowed)
        self._denied = _indexed(denied)
        self._visible: dict[Kind, Visible] = {}
        self._keys: dict[Kind, str] = {}

    def allows(self, operation: Operation, resource: Resource, name: str) -> bool:
        """Whether some rule allows `operation` on the resource called `name`, and none denies it."""
        names, prefixes, many = self._allowed.get((operation, resource), _NONE)
        if not (name.startswith(prefixes) or name in names or (many and _begins(name, many))):
            return False
        if not self._denied:
            return True
        names, prefixes, many = self._denied.get((operation, resource), _NONE)
        return not (name.startswith(prefixes) or name in names or (many and _begins(name, many)))

    def visible(self, operation: Operation, resource: Resource) -> Visible:
        """The names on which `operation` is allowed, in the shortest form; lists are filtered by it."""
        found = self._visible.get((operation, resource))
        if found is None:
            kind = operation, resource
            found = _shortest(self._allowed.get(kind, _NONE), self._denied.get(kind, _NONE))
            self._visible[kind] = found
        return found

    def not_denied(self, operation: Operation, resource: Resource) -> Visible:
        """All names but those on which a rule denies `operation`."""
        return _shortest((frozenset(), ("",), ()), self._denied.get((operation, resource), _NONE))

    def key(self, operation: Operation, resource: Resource) -> str:
        """A digest, equal for rules that allow `operation` on the same names, however written; "": on all names.

        Rules that deny may be written in ways that have the same effect and another digest.
        """
        found = self._keys.get((operation, resource))
        if found is None:
            found = self._keys[operation, resource] = _key(self.visible(operation, resource))
        return found

    @property
    def not_administered(self) -> Resource | None:
        """A kind of resource of which `admin` is not allowed on all; None: their holder may do everything.

        There is one cluster, so that a rule with its name is as good as one with the empty prefix.
        """
        for resource in (Resource.GROUP, Resource.TOPIC, Resource.TRANSACTIONAL_ID):
            if not self.visible(Operation.ADMIN, resource).unlimited:
                return resource
        return None if self.allows(Operation.ADMIN, Resource.CLUSTER, CLUSTER_NAME) else Resource.CLUSTER

    @property
    def unlimited(self) -> bool:
        """Everything is allowed: to their holder, no rule can give more."""
        return all(self.visible(operation, resource).unlimited for operation in Operation for resource in Resource)


def _begins(name: str, prefixes: tuple[str, ...]) -> bool:
    """Whether the name begins with one of the prefixes, which are sorted and of which none begins with another.

    What lies between a prefix and a name that begins with it begins with it as well, so only the last prefix before
    the name can be one of it.
    """
    at = bisect_right(prefixes, name)
    return at > 0 and name.startswith(prefixes[at - 1])


def _indexed(rules: dict[Kind, tuple[set[str], set[str]]]) -> dict[Kind, Named]:
    found: dict[Kind, Named] = {}
    for kind, (names, given) in rules.items():
        prefixes = _minimal(given)
        found[kind] = (frozenset(names), *((prefixes, ()) if len(prefixes) <= FEW else ((), prefixes)))
    return found


def _minimal(prefixes: Iterable[str]) -> tuple[str, ...]:
    """The prefixes that begin with no other of them, sorted."""
    found: list[str] = []
    for prefix in sorted(prefixes):  # a prefix comes before what it is a prefix of, and nothing else between them
        if not (found and prefix.startswith(found[-1])):
            found.append(prefix)
    return tuple(found)


def _shortest(allowed: Named, denied: Named) -> Visible:
    """What is allowed and not denied, without what makes no difference."""
    names, prefixes = allowed[0], allowed[1] + allowed[2]
    not_names, not_prefixes = denied[0], denied[1] + denied[2]
    prefixes = tuple(prefix for prefix in prefixes if not prefix.startswith(not_prefixes))
    return Visible(
        tuple(
            sorted(
                name
                for name in names
                if not (name.startswith(prefixes) or name in not_names or name.startswith(not_prefixes))
            )
        ),
        prefixes,
        tuple(sorted(name for name in not_names if name.startswith(prefixes) and not name.startswith(not_prefixes))),
        tuple(prefix for prefix in not_prefixes if prefix.startswith(prefixes)),
    )


def _key(visible: Visible) -> str:
    if visible.unlimited:
        return ""
    parts = [visible.names, visible.prefixes]
    if visible.denied_names or visible.denied_prefixes:
        parts += [visible.denied_names, visible.denied_prefixes]
    said = json.dumps(parts, separators=(",", ":"))
    return hashlib.blake2b(said.encode("ascii"), digest_size=16).hexdigest()


ALL_ALLOWED = Rules((Operation.ADMIN.value, resource.value, "prefix", "") for resource in Resource)
"""Everything: the rules of a command on this machine, and of a superuser."""
