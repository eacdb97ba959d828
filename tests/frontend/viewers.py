"""Viewers of pages, and the rights of accounts that sign in."""

from __future__ import annotations

from typing import Any

from frontend.ui.viewer import Viewer
from kcoord.access.rights import ALL_ALLOWED, Holder, Principal, Resource, Rules
from kcoord.access.tokens import parse_rule
from kcoord.database.paging import EVERYTHING

ALL = Viewer(Principal(0, "mara", ALL_ALLOWED, Holder.USER), EVERYTHING, EVERYTHING)
"""Somebody who sees and may do everything."""
LOOK = ("describe:group:*", "describe:topic:*", "describe:cluster:*")
"""To see everything."""


def viewer(*written: str) -> Viewer:
    """A viewer with these rules, as `parse_rule` reads them."""
    rules = Rules(
        (rule.operation, rule.resource, rule.pattern, rule.name, rule.effect) for rule in map(parse_rule, written)
    )
    principal = Principal(0, "mara", rules, Holder.USER)
    return Viewer(principal, principal.visible(Resource.GROUP), principal.visible(Resource.TOPIC))


def allow(user: Any, *written: str) -> None:
    """Give an account rules, as `parse_rule` reads them."""
    from kcoord.models import AccessRule

    AccessRule.objects.bulk_create(
        AccessRule(
            user=user,
            operation=rule.operation,
            resource=rule.resource,
            pattern=rule.pattern,
            name=rule.name,
            effect=rule.effect,
        )
        for rule in map(parse_rule, written)
    )
