"""Forged histories: two members of one classic group, in which everything goes well, as lines to be spoiled."""

from __future__ import annotations

from typing import Any

from tests.chaos.history import Line

WALL = 1_000_000.0
SESSION_S = 10.0
GROUP, TOPIC = "g", "orders"
QUIET, FINISH = 60.0, 80.0


def line(kind: str, t: float, **fields: Any) -> Line:
    """One line."""
    return {"k": kind, "t": t, **fields}


def answer(t: float, member: str, api: str, **more: Any) -> Line:
    """What a request of a member was told, sent 0.1 s before unless `sent` says otherwise."""
    told = {"sent": t - 0.1, "error": "NONE", "member_id": f"id-{member}", "gen": None, "offsets": []}
    return line("answer", t, m=member, g=GROUP, api=api, **{**told, **more})


def joined(t: float, member: str, gen: int) -> list[Line]:
    """A member joins, syncs and is stable."""
    return [
        line("state", t - 0.2, m=member, s="rebalancing"),
        answer(t - 0.1, member, "join", gen=gen),
        answer(t, member, "sync", gen=gen),
        line("state", t, m=member, s="stable"),
    ]


def beats(member: str, gen: int, since: int, until: int) -> list[Line]:
    """Heartbeats that succeed, one each three seconds."""
    return [answer(float(t), member, "heartbeat", gen=gen) for t in range(since, until, 3)]


def commit(t: float, member: str, gen: int, partition: int, offset: int, record: int) -> list[Line]:
    """A commit that was acknowledged, and its line in the journal."""
    return [
        answer(t, member, "offsets/commit", gen=gen, offsets=[[TOPIC, partition, offset]]),
        journal(record, gen, member, partition, offset),
    ]


def journal(record: int, gen: int, member: str, partition: int, offset: int) -> Line:
    """A line of the journal."""
    fields = {"g": GROUP, "topic": TOPIC, "p": partition, "offset": offset, "gen": gen, "member_id": f"id-{member}"}
    return line("journal", FINISH + 1, id=record, **fields)


def event(record: int, t: float, what: str, gen: int, member: str = "", cause: str | None = None) -> Line:
    """An event of the group, as Postgres has it: `t` in its own milliseconds."""
    at = round((t + WALL) * 1000)
    member_id = f"id-{member}" if member else None
    return line("event", FINISH + 1, id=record, g=GROUP, at=at, what=what, gen=gen, member_id=member_id, cause=cause)


def change(record: int, epoch: int, gap: int) -> Line:
    """Another owner of coordinator partition 7."""
    return line("change", FINISH + 1, id=record, partition=7, epoch=epoch, gap=gap, reason="taken")


def good() -> list[Line]:
    """Member a has both partitions, then gives one to b; commits go on; a server is killed; all is well at the end."""
    return [
        line("start", 0.0, wall=WALL, lease_s=3.0),
        line("group", 0.0, g=GROUP, topic=TOPIC, partitions=2, protocol="classic"),
        line("begin", 1.0, m="c0/a", g=GROUP, session_s=SESSION_S),
        line("begin", 1.0, m="c1/b", g=GROUP, session_s=SESSION_S),
        *joined(2.0, "c0/a", 1),
        line("assigned", 2.1, m="c0/a", ps=[[TOPIC, 0], [TOPIC, 1]]),
        *commit(5.0, "c0/a", 1, 1, 10, 1),
        *beats("c0/a", 1, 3, 19),
        line("revoked", 20.0, m="c0/a", ps=[[TOPIC, 0], [TOPIC, 1]]),
        *joined(21.0, "c0/a", 2),
        *joined(21.0, "c1/b", 2),
        line("assigned", 21.1, m="c0/a", ps=[[TOPIC, 0]]),
        line("assigned", 21.1, m="c1/b", ps=[[TOPIC, 1]]),
        answer(21.5, "c1/b", "offsets/fetch", offsets=[[TOPIC, 1, 10]]),
        *commit(25.0, "c1/b", 2, 1, 12, 2),
        line("fault", 30.0, name="kill", target="server-1", s=0.0),
        *beats("c0/a", 2, 22, 81),
        *beats("c1/b", 2, 22, 81),
        line("quiet", QUIET),
        line("left", FINISH - 1, g=GROUP, state="Stable", members=2),
        line("finish", FINISH),
        line("committed", FINISH + 1, g=GROUP, topic=TOPIC, p=1, offset=12),
        event(1, 2.0, "group_created", 0),
        event(2, 2.0, "rebalance_completed", 1),
        event(3, 21.0, "rebalance_completed", 2),
        change(1, 1, 0),
        change(2, 2, 1),
    ]
