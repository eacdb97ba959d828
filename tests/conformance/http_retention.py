"""Retention behind the HTTP application: the pass of a case, and the checks that Celery beat would make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from offsets.commits.retention.sweep import RetentionService
from tests.conformance.driver import Response
from tests.conformance.http_terms import Args, Exchange, HttpAnswer, HttpRequest

GROUPS = "select group_id from groups_group"
LAST_LINE = "select coalesce(max(id), 0) from offset_commit_log"
TOMBSTONES = """
select group_name, topic, partition from offset_commit_log where id > %(after)s and committed_offset is null
"""


class RetentionChecks:
    """The service's own run, called when the convention says. The first check comes one interval after the start."""

    def __init__(self, runtime: Runtime, clock: VirtualClock) -> None:
        self._runtime = runtime
        self._clock = clock
        self._interval_ms = runtime.config.int("offsets.retention.check.interval.ms")
        self.next_at = clock.now_ms() + self._interval_ms

    async def run(self) -> Response:
        """`RunExpiration`: what went, by the rows of groups and the lines of the journal."""
        db = self._runtime.db
        async with db.connection() as connection:
            before = {group_id for (group_id,) in await db.rows(connection, GROUPS)}
            after = await db.value(connection, LAST_LINE)
        await self._runtime.get(RetentionService).run()
        async with db.connection() as connection:
            left = {group_id for (group_id,) in await db.rows(connection, GROUPS)}
            tombstones = await db.rows(connection, TOMBSTONES, {"after": after})
        return {"tombstones": [list(row) for row in tombstones], "deleted_groups": sorted(before - left)}

    async def look(self) -> None:
        """Make the check if its time has come. One that is late is made once."""
        if self._clock.now_ms() >= self.next_at:
            self.next_at = self._clock.now_ms() + self._interval_ms
            await self._runtime.get(RetentionService).run()


def _delete_topics(args: Args) -> Sequence[HttpRequest]:
    return [HttpRequest("DELETE", f"/v1/topics/{quote(name, safe='')}") for name in args["names"]]


def _read_deletes(answers: Sequence[HttpAnswer], args: Args) -> Response:
    """The first error, for the convention has one for all names."""
    return {"error": next((answer.error for answer in answers if answer.error != "NONE"), "NONE")}


EXCHANGES: Mapping[str, Exchange] = {"DeleteTopics": Exchange(_delete_topics, _read_deletes)}
