"""Which limit a principal has: the quota that names it most closely, else the setting. Pure.

A token comes before the user who owns it, a user before the Django groups that the user is in, these before the default
quota, and that before the setting. Of several groups the highest limit counts.

Source: Kafka's design, "Client quotas": the most specific quota wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kcoord.quotas.budgets import Budget


class Kind(str, Enum):
    """What a quota names."""

    TOKEN = "token"  # noqa: S105 - no secret
    USER = "user"
    GROUP = "group"
    DEFAULT = "default"


class Limit(NamedTuple):
    """A limit in the unit of its budget, None: no limit; and the quota that it comes from, None: the setting.

    `holder`: who has the bucket. The tokens of a user share what a quota gives to the user; what a group or the default
    gives, each token has for itself.
    """

    value: float | None
    kind: Kind | None
    holder: tuple[Kind, str]


@dataclass(frozen=True, slots=True)
class Owner:
    """The user who owns a token, and the Django groups of the user."""

    user: str
    groups: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """All quotas. `settings`: 0 for no limit. `owners`: by id, of tokens whose owner matters to a quota."""

    settings: Mapping[Budget, float]
    quotas: Mapping[tuple[Kind, str, Budget], float | None] = field(default_factory=dict)
    owners: Mapping[int, Owner] = field(default_factory=dict)

    def of(self, token_id: int, name: str, budget: Budget) -> Limit:
        """The limit of a token."""
        token = (Kind.TOKEN, name)
        if (*token, budget) in self.quotas:
            return Limit(self.quotas[*token, budget], Kind.TOKEN, token)
        owner = self.owners.get(token_id)
        if owner is not None:
            user = (Kind.USER, owner.user)
            if (*user, budget) in self.quotas:
                return Limit(self.quotas[*user, budget], Kind.USER, user)
            found = [
                self.quotas[Kind.GROUP, group, budget]
                for group in owner.groups
                if (Kind.GROUP, group, budget) in self.quotas
            ]
            if found:
                known = [limit for limit in found if limit is not None]
                return Limit(max(known) if len(known) == len(found) else None, Kind.GROUP, token)
        if (Kind.DEFAULT, "", budget) in self.quotas:
            return Limit(self.quotas[Kind.DEFAULT, "", budget], Kind.DEFAULT, token)
        return Limit(self.settings.get(budget) or None, None, token)

    def any_of(self, budgets: Sequence[Budget]) -> bool:
        """Whether anybody has a limit of one of the budgets."""
        return any(self.settings.get(budget) for budget in budgets) or any(
            limit is not None for (_, _, budget), limit in self.quotas.items() if budget in budgets
        )
