"""What Postgres has: whether groups are at rest, and in the end what they, the journal and the events say."""

from __future__ import annotations

import time

from tests.chaos.history import Writer
from tests.chaos.workload import Workload
from tests.chaos.world import World

GROUPS = """
select g.group_id, g.state,
       (select count(*) from groups_member m where m.group_id = g.id)
       + (select count(*) from groups_consumermember m where m.group_id = g.id)
from groups_group g where g.group_id like 'chaos-%%' order by g.group_id
"""

JOURNAL = """
select id, group_name, topic, partition, committed_offset, generation_id, member_id
from offset_commit_log where group_name like 'chaos-%%' and kind = 'commit' order by id
"""

COMMITTED = """
select g.group_id, o.topic, o.partition, o.committed_offset
from offsets_committedoffset o join groups_group g on g.id = o.group_id
where g.group_id like 'chaos-%%' order by 1, 2, 3
"""

EVENTS = """
select id, group_name, at, kind, generation_id, member_id, detail ->> 'cause'
from groups_event where group_name like 'chaos-%%' order by id
"""

HAS_CHANGES = "select to_regclass('groups_partitionchange') is not null"

CHANGES = "select id, partition, epoch, gap, reason from groups_partitionchange order by id"


def at_rest(world: World, work: Workload) -> bool:
    """Every group is Stable with exactly its members."""
    size = {group.name: 0 for group in work.groups}
    for specs in work.crews.values():
        for spec in specs:
            size[spec.group.name] += 1
    return {(name, state, count) for name, state, count in world.sql(GROUPS)} == {
        (name, "Stable", count) for name, count in size.items()
    }


def wait_at_rest(world: World, work: Workload, seconds: float) -> float | None:
    """How long it took until all groups were at rest, twice in a row; None: not within `seconds`."""
    began, seen = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        seen = seen + 1 if at_rest(world, work) else 0
        if seen == 2:
            return time.monotonic() - began
        time.sleep(0.5)
    return None


def write_groups(world: World, history: Writer) -> None:
    """The groups as they are."""
    for name, state, count in world.sql(GROUPS):
        history.write("left", g=name, state=state, members=count)


def write_rest(world: World, history: Writer) -> None:
    """What was committed and what happened."""
    for record, group, topic, partition, offset, gen, member_id in world.sql(JOURNAL):
        fields = {"g": group, "topic": topic, "p": partition, "offset": offset, "gen": gen, "member_id": member_id}
        history.write("journal", id=record, **fields)
    for group, topic, partition, offset in world.sql(COMMITTED):
        history.write("committed", g=group, topic=topic, p=partition, offset=offset)
    for record, group, at, what, gen, member_id, cause in world.sql(EVENTS):
        fields = {"g": group, "at": at, "what": what, "gen": gen, "member_id": member_id, "cause": cause}
        history.write("event", id=record, **fields)
    if world.sql(HAS_CHANGES)[0][0]:
        for record, partition, epoch, gap, reason in world.sql(CHANGES):
            history.write("change", id=record, partition=partition, epoch=epoch, gap=gap, reason=reason)
