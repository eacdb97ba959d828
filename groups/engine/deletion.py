"""DeleteGroups: many groups at once, a result for each.

Source: offsets.md 2.1 and 6.2; http-api.md 4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from groups.engine.service import GroupService
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

log = structlog.get_logger(__name__)

GROUPS_AT_ONCE = 4
"""How many groups of one request are deleted at the same time: one request does not take the whole pool."""


@dataclass(frozen=True, slots=True)
class DeletedGroup:
    """What became of one group. `error` NONE: it is gone, with all its offsets."""

    group_id: str
    error: Error
    detail: str = ""


class GroupDeletion:
    """Deletes groups on request, for one process."""

    def __init__(self, runtime: Runtime) -> None:
        self._groups = runtime.get(GroupService)

    async def delete(self, group_ids: Sequence[str], *, principal: str) -> list[DeletedGroup]:
        """Delete each of these groups in a transaction of its own; results in the order given.

        Never raises: what fails for one group, even a bug, is its result, and the others are not held up. Of a group
        whose result is COORDINATOR_NOT_AVAILABLE it is not known whether it is gone. `principal`: who wants it.
        """
        slots = asyncio.Semaphore(GROUPS_AT_ONCE)

        async def one(group_id: str) -> DeletedGroup:
            async with slots:
                return await self._delete(group_id, principal)

        return list(await asyncio.gather(*(one(group_id) for group_id in group_ids)))

    async def _delete(self, group_id: str, principal: str) -> DeletedGroup:
        try:
            done = await self._groups.delete(group_id, principal=principal)
        except ProtocolError as error:
            return DeletedGroup(group_id, error.error, error.detail)
        except Exception:  # whoever asked must be told what became of the other groups
            log.exception("group_deletion_failed", group_id=group_id)
            return DeletedGroup(group_id, Error.UNKNOWN_SERVER_ERROR, Error.UNKNOWN_SERVER_ERROR.value.help)
        return DeletedGroup(group_id, done.error, done.detail)
