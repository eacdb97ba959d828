"""What accounts may do: the Django permissions that actions of pages take, and what an account lacks, in words.

A page shows an action that the account may not perform disabled, with the permission that is missing: people then know
what to ask for. The view of each action checks the same permission.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

HOLD, KICK = "groups.change_group", "groups.delete_member"
CREATE_GROUP, DELETE_GROUP = "groups.add_group", "groups.delete_group"
DELETE_OFFSETS = "offsets.delete_committedoffset"
CHANGE_CONFIG = "groups.change_groupconfigoverride"
PIN = "offsets.change_retentionpin"
PLAN, APPLY, SEE_PLANS = "offsets.add_offsetplan", "offsets.change_offsetplan", "offsets.view_offsetplan"
SEE_TOKENS, CREATE_TOKEN = "kcoord.view_apitoken", "kcoord.add_apitoken"
CHANGE_TOKEN, DELETE_TOKEN = "kcoord.change_apitoken", "kcoord.delete_apitoken"

MEANINGS = {
    HOLD: "hold a group",
    KICK: "remove a member",
    CREATE_GROUP: "create a group",
    DELETE_GROUP: "delete a group",
    DELETE_OFFSETS: "delete committed offsets",
    CHANGE_CONFIG: "change the settings of a group",
    PIN: "pin offsets",
    PLAN: "plan a reset",
    APPLY: "apply or undo a plan",
    SEE_PLANS: "see plans",
    SEE_TOKENS: "see tokens",
    CREATE_TOKEN: "create a token",
    CHANGE_TOKEN: "rotate a token",
    DELETE_TOKEN: "revoke a token",
}
"""Permission -> what it takes to have it for."""


class Forbidden(Exception):
    """The account lacks a permission; the message says which is needed."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action that a page offers. `missing`: why the account may not perform it, "" if it may; `bad`: destructive."""

    label: str
    url: str
    missing: str = ""
    bad: bool = False


def missing(user: Any, permission: str) -> str:
    """Why an account may not do something, as a sentence; "" if it may. `permission` "": everybody may."""
    if not permission or user.has_perm(permission):
        return ""
    to = MEANINGS.get(permission)
    return f"{f'To {to}, your' if to else 'Your'} account needs the permission {permission}."


def action(user: Any, label: str, url: str, permission: str = "", *, bad: bool = False) -> Action:
    """An action as an account sees it."""
    return Action(label, url, missing(user, permission), bad)


def require(request: HttpRequest, permission: str) -> None:
    """Raise Forbidden unless the account has a Django permission."""
    lacking = missing(request.user, permission)
    if lacking:
        raise Forbidden(lacking)
