"""Who administers: the rights that stand for all others, and what the Django admin takes.

Source: http-api.md 7.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Model
from django.http import HttpRequest

from kcoord.access.people import principal_of
from kcoord.access.read_only import is_read_only
from kcoord.access.rights import Operation, Principal, Resource


def sees_all(principal: Principal) -> bool:
    """Whether a caller may describe every group and every topic."""
    return principal.visible(Resource.GROUP).unlimited and principal.visible(Resource.TOPIC).unlimited


def administers_cluster(principal: Principal) -> bool:
    """Whether a caller administers the cluster and sees all of it: tables and reports that cannot be filtered."""
    return sees_all(principal) and principal.may_cluster(Operation.ADMIN)


class ForAdministrators:
    """Part of a page of the Django admin whose rows may name any group or topic: Django's permissions open none."""

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whether the person administers the cluster and sees all of it."""
        return administers_cluster(principal_of(request.user))

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether the menu has the page."""
        return self.has_view_permission(request)


class ForClusterAdministrators(ForAdministrators):
    """As above, for rows that administrators change, unless the pages are read-only."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the person may change rows."""
        return self.has_view_permission(request) and not is_read_only()

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whether the person may change rows."""
        return self.has_view_permission(request) and not is_read_only()

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whether the person may delete rows."""
        return self.has_view_permission(request) and not is_read_only()


class ForTokenManagers(ForAdministrators):
    """The same for tokens, which are shown to those who may manage them over the API."""

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whether the person may manage tokens."""
        return principal_of(request.user).administers
