"""What a request pays for authorization: CPU time of one check of rules, beside a yardstick of the same run.

`python -m tests.bench.access` takes a few seconds and starts nothing. The yardstick is a small part of what every
request does anyway: the body of a heartbeat is read from JSON.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from kcoord.access.rights import Operation, Principal, Rule, Rules

ROUNDS, CALLS = 7, 20_000
MANY = 10_000
BODY = b'{"member_id": "billing-3f0e6a52-6f3b-4c8e-9a53-0d9c1f4b7a11", "generation_id": 5}'
Call = Callable[[], object]
HERS: Rule = ("read", "group", "prefix", "billing-")


def nanoseconds(call: Call) -> float:
    """CPU time of a call, the least of several rounds, without that of the loop."""
    return _least(call) - _least(lambda: None)


def _least(call: Call) -> float:
    found = []
    for _ in range(ROUNDS):
        began = time.process_time_ns()
        for _ in range(CALLS):
            call()
        found.append((time.process_time_ns() - began) / CALLS)
    return min(found)


def cases() -> dict[str, tuple[list[Rule], str]]:
    """Rules and the group that is asked for."""
    half = MANY // 2
    many: list[Rule] = [("read", "group", "literal", f"group-{number}") for number in range(half)]
    many += [("read", "group", "prefix", f"prefix-{number:05}-") for number in range(MANY - half)]
    return {
        "1 rule": ([HERS], "billing-1"),
        "1 rule and 1 that denies": ([HERS, ("read", "group", "literal", "billing-9", "deny")], "billing-1"),
        f"{MANY:,} rules, by a name": (many, "group-7"),
        f"{MANY:,} rules, by the last prefix": (many, f"prefix-{MANY - half - 1:05}-1"),
    }


def main() -> None:
    """Print a line for each case."""
    decoder = msgspec.json.Decoder()
    yardstick = nanoseconds(lambda: decoder.decode(BODY))
    print(f"{'the body of a heartbeat':36} {yardstick:9.0f} ns  1.00")
    for name, (rules, group) in cases().items():
        caller = Principal(1, "bench", Rules(rules))
        assert caller.may_group(Operation.READ, group)

        def check(caller: Principal = caller, group: str = group) -> None:
            caller.require_group(Operation.READ, group)

        took = nanoseconds(check)
        print(f"{name:36} {took:9.0f} ns  {took / yardstick:.2f}")


if __name__ == "__main__":
    main()
