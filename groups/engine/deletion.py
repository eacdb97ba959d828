"""DeleteGroups: several groups at once, with a result for each.

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
"""How many groups of one request are deleted concurrently, so that one request does not take the whole pool."""


@dataclass(frozen=True, slots=True)
class DeletedGroup:
    """The result for one group. `error` NONE: it is deleted, with all its offsets."""

    group_id: str
    error: Error
    detail: str = ""


class GroupDeletion:
    """Deletes groups on request, for one process."""

    def __init__(self, runtime: Runtime) -> None:
        self._groups = runtime.get(GroupService)

    async def delete(self, group_ids: Sequence[str], *, principal: str) -> list[DeletedGroup]:
        """Delete each of these groups in a separate transaction; results in the given order.

        Never raises: a failure of one group, even a bug, is its result, and does not hold up the others. If the result
        of a group is COORDINATOR_NOT_AVAILABLE, it is unknown whether the group is deleted. `principal`: who requests
        it.
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
        except Exception:  # the caller must get the results of the other groups
            log.exception("group_deletion_failed", group_id=group_id)
            return DeletedGroup(group_id, Error.UNKNOWN_SERVER_ERROR, Error.UNKNOWN_SERVER_ERROR.value.help)
        return DeletedGroup(group_id, done.error, done.detail)
