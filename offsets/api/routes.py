"""All operations of this package."""

from __future__ import annotations

from offsets.api import handlers

OPERATIONS = (handlers.commit, handlers.fetch, handlers.many_fetch)
