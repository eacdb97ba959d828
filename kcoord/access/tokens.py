"""API tokens: secrets, their digests, the rules a token carries, and how a token is created.

Reading tokens of incoming requests is up to the data plane (`kcoord.access.rights`).
Source: http-api.md 7.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kcoord.access.audit.recording import Act, record_here
from kcoord.access.rights import digest

if TYPE_CHECKING:
    from kcoord.models import ApiToken

OPERATIONS = ("read", "describe", "alter-offsets", "delete", "kick", "admin")
RESOURCES = ("group", "topic", "transactional-id", "cluster")
SECRET_START = "kc_"  # noqa: S105 - makes a leaked secret easy to search for; it is not one
PREFIX_LENGTH = 8
NAME_MAX = 255


@dataclass(frozen=True, slots=True)
class Rule:
    """An operation on the resources whose name is `name`, or begins with it where `pattern` is `prefix`."""

    operation: str
    resource: str
    pattern: str
    name: str
    effect: str = "allow"


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just created. `secret` exists here and nowhere else."""

    name: str
    prefix: str
    secret: str


ALL_RULES = tuple(Rule(operation, resource, "prefix", "") for operation in OPERATIONS for resource in RESOURCES)
"""Everything: each operation on every group, topic and transactional id, and on the cluster."""


def generate_secret() -> str:
    """A new secret with 256 random bits."""
    return SECRET_START + secrets.token_urlsafe(32)


def prefix(secret: str) -> str:
    """The first characters of a secret, to tell tokens apart in lists; they reveal nothing about the rest."""
    return secret[:PREFIX_LENGTH]


def parse_rule(text: str) -> Rule:
    """Parse a rule written `operation:resource:name`; a `*` at the end of the name makes it a prefix.

    `deny:` in front makes it one that denies. Examples: `read:group:billing`, `describe:topic:orders-*`,
    `admin:group:*`, `deny:delete:group:billing-*`. Raises ValueError naming the fault.
    """
    effect = "deny" if text.startswith("deny:") else "allow"
    parts = text.removeprefix("deny:").split(":", 2)
    if len(parts) != 3:
        raise ValueError(f"{text!r}: expected operation:resource:name, e.g. read:group:billing-*")
    operation, resource, name = parts
    if operation not in OPERATIONS:
        raise ValueError(f"{text!r}: the operation must be one of {', '.join(OPERATIONS)}")
    if resource not in RESOURCES:
        raise ValueError(f"{text!r}: the resource must be one of {', '.join(RESOURCES)}")
    pattern = "prefix" if name.endswith("*") else "literal"
    name = name.removesuffix("*")
    if not name and pattern == "literal":
        raise ValueError(f"{text!r}: the name is missing; * means all")
    if len(name) > NAME_MAX:
        raise ValueError(f"{text!r}: a name has at most {NAME_MAX} characters")
    return Rule(operation, resource, pattern, name, effect)


def check_rule(rule: Rule) -> Rule:
    """The rule. Raises ValueError naming the field at fault."""
    if rule.operation not in OPERATIONS:
        raise ValueError(f"operation: {rule.operation!r} is not one of {', '.join(OPERATIONS)}")
    if rule.resource not in RESOURCES:
        raise ValueError(f"resource: {rule.resource!r} is not one of {', '.join(RESOURCES)}")
    if not rule.name and rule.pattern == "literal":
        raise ValueError("name: it is missing; use the pattern prefix with an empty name for all names")
    if len(rule.name) > NAME_MAX or "\0" in rule.name:
        raise ValueError(f"name: at most {NAME_MAX} characters, without NUL")
    return rule


MOST_OVERLAP_MS = 30 * 86_400_000
"""The longest time for which the secret before a rotation stays valid."""


def rotate_token(token_id: int, overlap_ms: int = 0) -> NewToken | None:
    """Give a token a new secret; the present one stays valid for `overlap_ms`, an older one no longer.

    Rules, name and expiry stay. None if there is no such token. Servers notice within `token.cache.ms`.
    """
    from django.db import connection, transaction

    from kcoord.database.sql import queries
    from kcoord.models import ApiToken

    secret = generate_secret()
    with transaction.atomic():
        token = ApiToken.objects.select_for_update().filter(pk=token_id).first()
        if token is None:
            return None
        with connection.cursor() as cursor:
            cursor.execute(queries("kcoord").read_clock, {"override": None})
            (now_ms,) = cursor.fetchone()
        token.previous_digest = token.digest if overlap_ms else None
        token.previous_until = now_ms + overlap_ms if overlap_ms else None
        token.digest = digest(secret)
        was = {"prefix": token.prefix}
        token.prefix = prefix(secret)
        token.save(update_fields=["digest", "prefix", "previous_digest", "previous_until"])
        after = {"prefix": token.prefix, "previous_until": token.previous_until}
        record_here(Act("token.rotate", "token", token.name, was, after))
    return NewToken(token.name, prefix(secret), secret)


def delete_token(token_id: int) -> bool:
    """Delete a token with its rules; False if there is none. Servers refuse it within `token.cache.ms`."""
    from django.db import transaction

    from kcoord.models import ApiToken

    with transaction.atomic():
        token = ApiToken.objects.select_for_update(of=("self",)).filter(pk=token_id).first()
        if token is None:
            return False
        was = described(token)
        token.delete()
        record_here(Act("token.delete", "token", token.name, before=was))
    return True


def described(token: ApiToken) -> dict[str, object]:
    """A token with its rules, as the audit shows it."""
    rules = sorted(str(rule) for rule in token.rules.all())
    owner = token.owner.get_username() if token.owner is not None else None
    return {"id": token.pk, "prefix": token.prefix, "expires_at": token.expires_at, "owner": owner, "rules": rules}


def create_token(name: str, rules: Iterable[Rule], expires_at_ms: int | None = None) -> NewToken:
    """Store a new token and return its secret, which cannot be read again.

    `expires_at_ms` is in milliseconds since the epoch on the database's clock; None: it never expires.
    Raises ValueError for an empty name, a name that another token already has, a rule that cannot be stored, and
    a token without rules.
    """
    from django.db import connection, transaction

    from kcoord.database.sql import queries
    from kcoord.models import AccessRule, ApiToken

    wanted = tuple(check_rule(rule) for rule in dict.fromkeys(rules))
    if not name.strip():
        raise ValueError("a token needs a name")
    if not any(rule.effect == "allow" for rule in wanted):
        raise ValueError(f"token {name!r}: a token that no rule allows anything may do nothing; add one")
    secret = generate_secret()
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(queries("kcoord").read_clock, {"override": None})
            (now_ms,) = cursor.fetchone()
        token, created = ApiToken.objects.get_or_create(
            name=name,
            defaults={
                "digest": digest(secret),
                "prefix": prefix(secret),
                "created_at": now_ms,
                "expires_at": expires_at_ms,
            },
        )
        if not created:
            raise ValueError(f"a token named {name!r} already exists; choose another name or delete it first")
        AccessRule.objects.bulk_create(
            AccessRule(
                token=token,
                effect=rule.effect,
                operation=rule.operation,
                resource=rule.resource,
                pattern=rule.pattern,
                name=rule.name,
            )
            for rule in wanted
        )
        record_here(Act("token.create", "token", name, after=described(token)))
    return NewToken(name, prefix(secret), secret)
