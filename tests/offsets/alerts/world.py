"""What tests of alerts write: groups, verdicts on them, and when they were judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from kcoord.access.rights import ALL_ALLOWED, Principal
from kcoord.process.runtime import Runtime
from tests.support.rest_groups import group

RUN = "insert into offsets_verdictrun (name, at) values (%s, %s) on conflict (name) do update set at = excluded.at"
VERDICT = (
    "insert into offsets_groupverdict (group_id, kind, topic, since, number, names)"
    " select id, %s, '', %s, 1, '{}' from groups_group where group_id = %s"
)
LAG = (
    "insert into offsets_grouplag (group_id, at, lag, time_lag_ms, time_lag_at_least_ms, state, generation_id, members)"
    " select id, 0, %s, %s, %s, 'Stable', 1, 1 from groups_group where group_id = %s"
    " on conflict (group_id) do update set lag = excluded.lag, time_lag_ms = excluded.time_lag_ms,"
    " time_lag_at_least_ms = excluded.time_lag_at_least_ms"
)
ADMIN = Principal(1, "ops", ALL_ALLOWED)


def rule(**fields: Any) -> dict[str, Any]:
    """What people give of a rule for all groups that are stuck or 100 records behind."""
    return {
        "name": "billing", "enabled": True, "pattern": "prefix", "group_name": "", "label": "", "verdicts": ["stuck"],
        "min_lag": 100, "min_time_lag_ms": None, "for_ms": 0, "remind_ms": 0, "send_resolved": True,
        "receivers": ["ops"], **fields,
    }  # fmt: skip


@dataclass(frozen=True)
class World:
    """Writes as the checks and the sampler do."""

    runtime: Runtime

    async def group(self, group_id: str) -> None:
        """A group."""
        await self.runtime.get(GroupService).put(group(group_id, GroupState.EMPTY))

    async def verdict(self, group_id: str, kind: str, since: int) -> None:
        """A verdict on a group."""
        await self._do(VERDICT, [kind, since, group_id])

    async def no_verdict(self, group_id: str) -> None:
        """The group is well."""
        await self._do(
            "delete from offsets_groupverdict where group_id = (select id from groups_group where group_id = %s)",
            [group_id],
        )

    async def lag(
        self, group_id: str, lag: int | None, time_lag_ms: int | None = None, at_least_ms: int | None = None
    ) -> None:
        """A group as it was last sampled."""
        await self._do(LAG, [lag, time_lag_ms, at_least_ms, group_id])

    async def judged(self) -> None:
        """All groups are judged now."""
        async with self.runtime.db.connection() as connection:
            now = await self.runtime.db.now_ms(connection)
        for name in ("members", "offsets"):
            await self._do(RUN, [name, now])

    async def _do(self, statement: str, parameters: list[object]) -> None:
        async with self.runtime.db.connection() as connection:
            await connection.execute(statement.encode(), parameters)
