"""From the claims of the provider to an account with its groups, in one transaction.

An account is found by issuer and `sub`, which the provider never gives to another person; a user name it may. A new
person gets a new account, or one of that name that was created without a password and has not been taken. The
provider is the authority for whether the account is staff or a superuser, and, if a map is set, for its groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from frontend.identity.refusals import Reason, SignInRefused
from frontend.models import ProviderIdentity
from kcoord import identity_settings as names
from kcoord.config import Config

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Person:
    """What the provider says of somebody. `roles`: names of groups here; None: they are not the provider's to give."""

    issuer: str
    subject: str
    username: str
    email: str
    is_staff: bool
    is_superuser: bool
    roles: frozenset[str] | None


def person(config: Config, claims: Mapping[str, Any]) -> Person:
    """The person of some verified claims. Raises SignInRefused NOT_ALLOWED without an allowed group."""
    name = claims.get(config.str("oidc.username.claim"))
    username = name.strip() if isinstance(name, str) else ""
    theirs = _groups(claims.get(config.str("oidc.groups.claim")))
    allowed = names.semicolons(config.str(names.ALLOWED_GROUPS))
    if names.EVERYBODY not in allowed and theirs.isdisjoint(allowed):
        raise SignInRefused(Reason.NOT_ALLOWED, f"no allowed group in the claim; {len(theirs)} others", username)
    pairs = names.group_pairs(config.str(names.GROUP_MAP))
    is_superuser = config.str("oidc.superuser.group") in theirs
    email = claims.get("email")
    return Person(
        issuer=config.str(names.ISSUER),
        subject=claims["sub"],
        username=username,
        email=email if isinstance(email, str) and len(email) <= 254 and claims.get("email_verified") is True else "",
        is_staff=is_superuser or config.str("oidc.staff.group") in theirs,
        is_superuser=is_superuser,
        roles=frozenset(ours for group, ours in pairs if group in theirs) if pairs else None,
    )


def account(config: Config, someone: Person) -> Any:
    """The account of a person, with exactly the rights that the provider gives. Raises SignInRefused."""
    try:
        with transaction.atomic():
            user = _known(someone) or _prepared(someone) or _new(config, someone)
            if not user.is_active:
                raise SignInRefused(Reason.INACTIVE, "the account is deactivated", user.get_username())
            _grant(user, someone)
            return user
    except IntegrityError as error:
        raise SignInRefused(Reason.NAME_TAKEN, f"taken at the same moment: {error}", someone.username) from error


def _groups(claim: object) -> frozenset[str]:
    """The names in a claim. Empty ones are ignored: they would match a setting that is not set."""
    entries = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
    return frozenset(entry for entry in entries if isinstance(entry, str) and entry)


def _known(someone: Person) -> Any:
    found = ProviderIdentity.objects.filter(issuer=someone.issuer, subject=someone.subject).first()
    return None if found is None else get_user_model()._default_manager.select_for_update().get(pk=found.user_id)


def _prepared(someone: Person) -> Any:
    """The account that an administrator created for this name, from now on linked to this person."""
    _check_name(someone)
    users: Any = get_user_model()._default_manager
    user = users.select_for_update().filter(username=someone.username).first()
    if user is None:
        return None
    if user.has_usable_password() or user.is_superuser or ProviderIdentity.objects.filter(user=user).exists():
        raise SignInRefused(Reason.NAME_TAKEN, "the account has a password, or belongs to somebody", someone.username)
    ProviderIdentity.objects.create(user=user, issuer=someone.issuer, subject=someone.subject)
    return user


def _new(config: Config, someone: Person) -> Any:
    if not config.bool("oidc.create.accounts"):
        raise SignInRefused(Reason.NO_ACCOUNT, "no account, and none is created", someone.username)
    users: Any = get_user_model()._default_manager
    user = users.create_user(someone.username, email=someone.email)
    ProviderIdentity.objects.create(user=user, issuer=someone.issuer, subject=someone.subject)
    return user


def _check_name(someone: Person) -> None:
    """The name as Django would store it: a spelling that it normalizes could be that of another account."""
    model: Any = get_user_model()
    field = model._meta.get_field("username")
    try:
        field.clean(someone.username, None)
    except ValidationError as error:
        raise SignInRefused(Reason.NO_NAME, f"user name: {' '.join(error.messages)}") from error
    if model.normalize_username(someone.username) != someone.username:
        raise SignInRefused(Reason.NO_NAME, "user name: not in normal form (NFKC)", someone.username)


def _grant(user: Any, someone: Person) -> None:
    if (user.is_staff, user.is_superuser) != (someone.is_staff, someone.is_superuser):
        user.is_staff, user.is_superuser = someone.is_staff, someone.is_superuser
        user.save(update_fields=["is_staff", "is_superuser"])
    if someone.roles is None:
        return
    groups = []
    for name in sorted(someone.roles):
        group, created = Group.objects.get_or_create(name=name)
        groups.append(group)
        if created:
            log.warning("identity_group_created", group=name, detail="named by oidc.group.map; it has no rights yet")
    user.groups.set(groups)
