"""What quotas cost: heartbeats on the short path without limits, with limits, and refused.

`python -m tests.bench.quotas [ROUNDS]`: no sockets and no database, some seconds. Prints the CPU time of an answer, the
best of several rounds, and ratios to that without limits.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping

from kcoord.access.rights import Access
from kcoord.config import Config
from kcoord.http.short_path import ShortPath
from kcoord.process import runtime as runtimes
from kcoord.quotas.budgets import Budget
from kcoord.quotas.limits import Limits
from kcoord.quotas.quotas import Quotas
from tests.support.doors import DATE, OPERATIONS, TOKEN, Door

ANSWERS = 20_000
ROUNDS = 7
ENOUGH = 1e9
CASES: Mapping[str, Mapping[Budget, float]] = {
    "no limits": {},
    "CPU time limited (the default)": {Budget.CPU: 500},
    "heartbeats limited": {Budget.HEARTBEATS: ENOUGH},
    "heartbeats and bytes limited": {Budget.HEARTBEATS: ENOUGH, Budget.BYTES: ENOUGH},
}
BODY = b'{"member_id":"ok","generation_id":1}'
TARGET = b"/v1/groups/g/heartbeat"
HEADERS = [(b"authorization", b"Bearer " + TOKEN.encode()), (b"content-type", b"application/json")]


def measured(answer: Callable[[], object]) -> float:
    """CPU time of a call, in microseconds."""
    began = time.process_time()
    for _ in range(ANSWERS):
        answer()
    return (time.process_time() - began) / ANSWERS * 1e6


async def main(rounds: int) -> None:
    """Take turns, so that other work on the machine hits all cases alike."""
    door = Door(Config({}))
    runtimes.use(door.runtime)
    await door.runtime.get(Access).authenticate(TOKEN)
    path = ShortPath(door.runtime, OPERATIONS)
    quotas = door.runtime.get(Quotas)
    route = path.route(TARGET)
    head = path.head({"headers": HEADERS, "client": ("127.0.0.1", 1)}, len(BODY), keeps_alive=True)
    assert route is not None
    assert head is not None
    defaults = [(b"date", DATE)]

    def answer() -> None:
        assert path.answer(route, head, BODY, defaults) is not None
        door.service.at_once.clear()

    best = dict.fromkeys(CASES, float("inf"))
    for _ in range(rounds):
        for name, limits in CASES.items():
            quotas.use(Limits(limits))
            best[name] = min(best[name], measured(answer))
    plain = best["no limits"]
    for name, us in best.items():
        print(f"{name:32} {us:6.2f} us  {us / plain:5.3f}")
    runtimes.use(None)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
