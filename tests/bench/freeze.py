"""Freeze a server again and again in the midst of a write, and see how long it holds a group and what it writes later.

Run it with `python -m tests.bench.freeze [FREEZES]`: half of them with Postgres over a Unix socket, half over TCP.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import httpx

from tests.support.database import ephemeral_database
from tests.support.freezing import POINTS, Site, seen, site, tcp_postgres
from tests.support.http_members import Answer, HttpMember

FREEZES = 60
AT_ONCE = 3
SHORTEST_FREEZE, LONGEST_FREEZE = 0.5, 9.0
"""Seconds. Short freezes end within the bounds, long ones after them."""
MAX_AGE_SECONDS = 6.0
"""`request.max.age.ms`: how long clients are told to wait."""
IMPATIENT_SECONDS = 2.0
"""Some clients give up earlier, while the server is still frozen."""


@dataclass
class Findings:
    """What was seen. `held` and `served` in seconds from the freeze: until Postgres took the locks of the frozen server
    away, and until another server had answered a heartbeat of the same group with success."""

    held: list[float] = field(default_factory=list)
    served: list[float] = field(default_factory=list)
    late: int = 0
    removed: int = 0
    answers: Counter[str] = field(default_factory=Counter)

    def say(self, where: str) -> None:
        """One line each."""
        print(f"{where}: {len(self.served)} freezes, {len(self.held)} of them with the lock of a group")
        print(f"  longest time that the frozen server held the group: {max(self.held, default=0.0):.2f} s")
        print(f"  longest time until another server answered: {max(self.served, default=0.0):.2f} s")
        print(f"  commits that landed late: {self.late}; members removed: {self.removed}")
        print(f"  answers after the thaw: {', '.join(f'{n} x {what}' for what, n in sorted(self.answers.items()))}")


async def freezes(place: Site, count: int, prefix: str, findings: Findings) -> None:
    """`count` freezes of one site, at a random point each."""
    for number in range(count):
        point = random.choice(POINTS)
        member = await place.member(f"{prefix}-{number}")
        await freeze(place, point, member, findings)


async def freeze(place: Site, point: str, member: HttpMember, findings: Findings) -> None:
    """One freeze: the client gives up and commits 6100 at the healthy server; 5101 must not land after it.

    It gives up when it was told to, or earlier, but not while a thawed server may still be at work on what it sent.
    """

    async def commit(client: httpx.AsyncClient) -> Answer:
        return await place.at(place.victim, member, client).commit(0, 5101)

    healthy = place.at(place.healthy, member)

    async def committed() -> bool:
        return (await healthy.commit(0, 6100))[0] == 200

    async def alive() -> bool:
        return (await healthy.heartbeat())[0] == 200

    frozen, backend = await place.freeze(point, member.group_id, commit)
    began = time.monotonic()
    frozen_seconds = random.uniform(SHORTEST_FREEZE, LONGEST_FREEZE)
    until, give_up = began + frozen_seconds, began + MAX_AGE_SECONDS
    if frozen_seconds > IMPATIENT_SECONDS + 1:
        give_up = began + random.uniform(IMPATIENT_SECONDS, min(frozen_seconds, MAX_AGE_SECONDS))
    freed = asyncio.create_task(gone(place, backend, began, findings))
    thaw = asyncio.get_running_loop().call_at(until, place.thaw)
    await seen(alive, "the healthy server serves the group")
    findings.served.append(time.monotonic() - began)
    await asyncio.sleep(max(give_up - time.monotonic(), 0))
    await seen(committed, "the healthy server commits")
    await asyncio.sleep(max(until - time.monotonic(), 0))
    thaw.cancel()
    place.thaw()
    status, answer = await frozen
    await freed
    findings.answers[f"{status} {answer.get('error') or ''}".strip()] += 1
    findings.late += await place.committed(member.group_id) != 6100
    findings.removed += (await healthy.heartbeat())[1].get("error") == "UNKNOWN_MEMBER_ID"


async def gone(place: Site, backend: int | None, began: float, findings: Findings) -> None:
    """Note when a backend has lost its locks."""
    if backend is None:
        return

    async def lost() -> bool:
        return not await place.holds(backend)

    await seen(lost, "the frozen server loses its locks")
    findings.held.append(time.monotonic() - began)


async def measure(database: str, where: str, count: int) -> Findings:
    """Several sites on one database, each with servers of its own."""
    findings = Findings()

    async def one(number: int) -> None:
        async with site(database, {"KCOORD_REQUEST_MAX_AGE_MS": round(MAX_AGE_SECONDS * 1000)}) as place:
            await freezes(place, count // AT_ONCE, f"{where}-{number}", findings)

    await asyncio.gather(*(one(number) for number in range(AT_ONCE)))
    findings.say(where)
    return findings


def main() -> int:
    """Freeze; the status is 1 when something landed late or a member was removed."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else FREEZES
    with ephemeral_database() as database:
        found = [asyncio.run(measure(database, "unix", count // 2))]
    with tcp_postgres() as database:
        found.append(asyncio.run(measure(database, "tcp", count // 2)))
    return int(any(each.late or each.removed for each in found))


if __name__ == "__main__":
    sys.exit(main())
