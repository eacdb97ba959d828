"""Two groups with the same history: the commits of one may take the lane, those of the other take the normal way.

The commands of members come from another process half of the time, so that copies are stale when commits arrive.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from groups.core.model.commands import CommitOffsets
from groups.core.model.group import Group
from groups.core.model.types import ClassicGroup
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.commits.service import OffsetService
from tests.offsets.commit_function.test_commit_function_equivalence import random_commit
from tests.support.commands import random_command
from tests.support.commits import OffsetCommit
from tests.support.consumer_commands import random_consumer_command
from tests.support.members import eventually
from tests.support.offsets import reply_to, rows
from tests.support.steady import wait_out_stalls

JOURNAL = """
select at, kind, topic, partition, committed_offset, leader_epoch, metadata, expire_timestamp, member_id,
       generation_id, client_id, principal, transactional_id, plan_id
from offset_commit_log where group_name = %(name)s order by id
"""
VIEW = """
select o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp, o.expire_timestamp,
       o.member_id, o.generation_id
from offsets_committedoffset o join groups_group g on g.id = o.group_id
where g.group_id = %(name)s order by 1, 2
"""
CLASSIC = """
select to_jsonb(m) - 'id' - 'group_id' from groups_member m join groups_group g on g.id = m.group_id
where g.group_id = %(name)s order by m.id
"""
CONSUMER = CLASSIC.replace("groups_member", "groups_consumermember")
GROUP = """
select to_jsonb(g) - 'id' - 'group_id' - 'partition' - 'version_tag' - 'wake_at' - 'version' - 'updated_at'
from groups_group g where g.group_id = %(name)s
"""
EVENTS = "select at, kind, generation_id, member_id, detail from groups_event where group_name = %(name)s order by id"
WAKE_AT = "select wake_at from groups_group where group_id = %(name)s"


@asynccontextmanager
async def with_and_without(
    lane: str, settings: Mapping[str, Any], database: str, clock: VirtualClock, topics: Mapping[str, int]
) -> AsyncIterator[list[Runtime]]:
    """A process with the lane of this setting, one without, and another one; `topics`: their partitions."""
    config = Config({}).override(settings)
    settings_of_each = [config.override({lane: is_on}) for is_on in (True, False, False)]
    found = [wait_out_stalls(Runtime(one, database, clock)) for one in settings_of_each]
    for runtime in found:
        await runtime.start()
        await runtime.notifications.wait_listening()
    for topic, partitions in topics.items():
        await found[2].get(TopicService).create(topic, partitions)
    yield found
    for runtime in found:
        await runtime.stop()


class Ids:
    """Member ids that the two groups draw alike."""

    def __init__(self) -> None:
        self.numbers: dict[str, itertools.count[int]] = {}
        self.group_id = ""

    def fresh(self, prefix: str) -> str:
        """In place of `fresh_member_id`."""
        numbers = self.numbers.setdefault(self.group_id, itertools.count(1))
        return f"{prefix}-{next(numbers)}"


@dataclass
class Twin:
    """One of the two groups. `here`: the process that commits; `other`: another one."""

    group_id: str
    here: Runtime
    other: Runtime
    random: Random
    ids: Ids
    consumer: bool
    seen: list[Any] = field(default_factory=list)

    async def group(self) -> Group | None:
        """As it is stored."""
        return (await self.other.get(GroupService).describe(self.group_id)).group

    async def change(self) -> None:
        """A command of a member, or of somebody who would be one, at any process."""
        self.ids.group_id = self.group_id
        at = self.random.choice((self.here, self.other, self.other))
        group = await self.group()
        if self.consumer:
            command = random_consumer_command(self.random, self.group_id, group)
        else:
            assert group is None or isinstance(group, ClassicGroup)
            command = random_command(self.random, self.group_id, group)
        if isinstance(command, CommitOffsets):
            return  # without offsets it is none
        service = at.get(GroupService)
        await service.execute(command)
        await eventually(lambda: not service.busy, "what it led to is done")

    async def commit(self) -> list[Any]:
        """Some commits at once; their answers."""
        self.ids.group_id = self.group_id
        group = await self.group()
        commits = [self._choose(group) for _ in range(self.random.choice((1, 2, 5)))]
        return list(await asyncio.gather(*(self._answer(commit) for commit in commits)))

    def _choose(self, group: Group | None) -> OffsetCommit:
        """Mostly one of a member at work."""
        commit = random_commit(self.random, self.group_id, group)
        if self.random.random() < 0.3:
            return commit
        member = self.random.choice(list(group.members.values())) if group is not None and group.members else None
        generation = -1
        if member is not None:
            generation = getattr(member, "member_epoch", None) or getattr(group, "generation_id", -1)
        return replace(
            commit,
            retention_time_ms=-1,
            member_id="" if member is None else member.member_id,
            group_instance_id=commit.group_instance_id if self.random.random() < 0.3 else None,
            generation_id=generation,
        )

    async def _answer(self, commit: OffsetCommit) -> Any:
        try:
            reply = await reply_to(self.here.get(OffsetService), commit)
        except ProtocolError as error:
            return error.error
        return reply.error, reply.results, reply.session_deadline, reply.detail.replace(self.group_id, "G")

    async def rows(self) -> dict[str, Sequence[Any]]:
        """Everything that is stored of the group, without what may differ: keys, tags, when to look again."""
        queries = {"journal": JOURNAL, "view": VIEW, "classic": CLASSIC, "consumer": CONSUMER, "group": GROUP}
        found = {kind: await rows(self.other, query, name=self.group_id) for kind, query in queries.items()}
        events = await rows(self.other, EVENTS, name=self.group_id)
        found["events"] = [tuple(str(value).replace(self.group_id, "G") for value in event) for event in events]
        return found

    async def check_wake_up(self) -> None:
        """The row is looked at no later than its first timer fires."""
        due = (await self.other.get(GroupService).describe(self.group_id)).due
        found = await rows(self.other, WAKE_AT, name=self.group_id)
        if due is not None and found:
            assert found[0][0] is not None
            assert found[0][0] <= due


def accepted(answers: Sequence[Any]) -> int:
    """How many commits were accepted as a whole."""
    return sum(isinstance(answer, tuple) and answer[0] is Error.NONE for answer in answers)
