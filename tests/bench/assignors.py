"""Measure the assignors beside kafka-python's: `python -m tests.bench.assignors [--all] [--json FILE]`.

CPU time of this process, the best of a few runs; both are given the same decoded subscriptions, members in arbitrary
order, and the ratio is kafka-python's time to ours. It is not run where it would take too long, with racks, which it
ignores, and under `roundrobin` where subscriptions differ (it ends with a KeyError when it has to pass over a member).
`uniform` is compared with its `sticky`. "checked" is what a leader really does: assign, and check the result.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from groups.core.assignors import BUILT_IN, GroupSpec, MemberSpec
from kcoord.assignors import MemberSubscription, checked_assign, get_assignor

RUNS = 5
AT_LEAST = 0.01
"""Seconds of one run."""
LONG_ENOUGH = 0.4
"""Seconds after which a measurement is not repeated."""

YARDSTICKS: Mapping[str, tuple[type[Any], int]] = {
    "range": (RangePartitionAssignor, 600_000),
    "roundrobin": (RoundRobinPartitionAssignor, 600_000),
    "sticky": (StickyPartitionAssignor, 1_000_000),
    "cooperative-sticky": (CooperativeStickyAssignor, 1_000_000),
}
"""kafka-python's; up to which size it is run: members times topics, for the sticky ones times partitions, too."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A group: `members` of it, `topics` of `partitions` each.

    `subscribe`: "all" to all topics, "half" of the members to half of them, "three" each to three neighbouring topics.
    `state`: "fresh", "stays" (all own what they were assigned), "leaves", "joins" (then a member did). `racks`: three.
    """

    members: int
    topics: int
    partitions: int
    subscribe: str = "all"
    state: str = "fresh"
    racks: bool = False

    def __str__(self) -> str:
        what = f"{self.members:,} x {self.topics:,} topics x {self.partitions:,}"
        rest = [self.subscribe * (self.subscribe != "all"), self.state * (self.state != "fresh"), "racks" * self.racks]
        return ", ".join([what, *filter(None, rest)])

    def counts(self) -> dict[str, int]:
        """Topic -> partitions."""
        return {f"topic-{number:05}": self.partitions for number in range(self.topics)}

    def subscribed(self, number: int) -> list[str]:
        """What member `number` subscribes to."""
        names = list(self.counts())
        if self.subscribe == "half" and number % 2:
            return names[: max(1, self.topics // 2)]
        first = number % max(1, self.topics - 2)
        return names[first : first + 3] if self.subscribe == "three" else names


@dataclass(frozen=True, slots=True)
class Found:
    """One line: milliseconds of CPU; `ratio` kafka-python's to `ours`, None where it was not run."""

    assignor: str
    shape: str
    ours_ms: float
    checked_ms: float | None
    kafka_python_ms: float | None
    ratio: float | None


SMALL = (Shape(3, 1, 10), Shape(50, 1, 200), Shape(50, 10, 20))
MIDDLE = (Shape(500, 1, 2_000), Shape(500, 10, 200), Shape(500, 2_000, 1), Shape(500, 500, 200))
LARGE = (Shape(10_000, 1, 100_000), Shape(10_000, 100, 1_000), Shape(10_000, 500, 200))
MIXED = tuple(
    replace(shape, subscribe=subscribe)
    for subscribe in ("half", "three")
    for shape in (Shape(50, 3, 200), Shape(500, 10, 200), Shape(10_000, 100, 1_000))
)
ON_RACKS = tuple(replace(shape, racks=True) for shape in (MIDDLE[0], MIDDLE[1], *LARGE[:2]))
AGAIN = tuple(
    replace(shape, state=state)
    for shape in (MIDDLE[1], MIDDLE[3], LARGE[0], *MIXED[1:3], *MIXED[4:])
    for state in ("stays", "leaves", "joins")
)


def best(work: Callable[[], object]) -> float:
    """The CPU seconds of the fastest of a few runs, each of which repeats what is short."""
    times = [_cpu(work, 1)]
    number = max(1, int(AT_LEAST / times[0]))
    while len(times) < RUNS and sum(times) * number < LONG_ENOUGH:
        times.append(_cpu(work, number))
    return min(times)


def _cpu(work: Callable[[], object], number: int) -> float:
    gc.collect()
    started = time.process_time()
    for _ in range(number):
        work()
    return (time.process_time() - started) / number


def members_of(shape: Shape) -> list[MemberSubscription]:
    """Their subscriptions, in arbitrary order; strings are not shared, as after decoding."""
    numbers = random.Random(shape.members).sample(range(shape.members), shape.members)
    members = [_member(shape, number) for number in numbers]
    if shape.state == "fresh":
        return members
    held = get_assignor("sticky").assign(shape.counts(), members, racks_of(shape))
    members = [replace(m, owned_partitions=held[m.member_id], generation_id=1) for m in members]
    if shape.state == "leaves":
        return members[1:]
    return [*members, _member(shape, shape.members)] if shape.state == "joins" else members


def _member(shape: Shape, number: int) -> MemberSubscription:
    topics = [str(topic.encode(), "ascii") for topic in shape.subscribed(number)]
    rack = f"rack-{number % 3}" if shape.racks else None
    return MemberSubscription(f"consumer-{number:05}", None, topics, rack_id=rack)


def racks_of(shape: Shape) -> dict[str, list[list[str]]] | None:
    """Two replicas of each partition, on two of three racks."""
    replicas = [[f"rack-{n % 3}", f"rack-{(n + 1) % 3}"] for n in range(shape.partitions)]
    return dict.fromkeys(shape.counts(), replicas) if shape.racks else None


def yardstick(name: str, shape: Shape, members: Sequence[MemberSubscription]) -> float | None:
    """The CPU seconds of kafka-python's assignor, unless it would take too long or cannot do this."""
    assignor, most = YARDSTICKS[name]
    size = shape.members * shape.topics * (shape.partitions if "sticky" in name else 1)
    if shape.subscribe != "all":
        # Its sticky assignors take several times as long then.
        size *= 4
    if size > most or shape.racks or shape.state != "fresh" or (name == "roundrobin" and shape.subscribe != "all"):
        return None
    counts = {topic: set(range(count)) for topic, count in shape.counts().items()}
    cluster = SimpleNamespace(topics=lambda: set(counts), partitions_for_topic=counts.get)
    theirs = [
        SimpleNamespace(
            member_id=member.member_id,
            group_instance_id=None,
            metadata=ConsumerProtocolSubscription(1, list(member.topics), b"", []),
        )
        for member in members
    ]
    return best(lambda: assignor().assign(cluster, theirs))


def client(name: str, shape: Shape) -> Found:
    """A client-side assignor."""
    assignor, counts, racks = get_assignor(name), shape.counts(), racks_of(shape)
    members = members_of(shape)
    ours = best(lambda: assignor.assign(counts, members, racks))
    checked = best(lambda: checked_assign(assignor, counts, members, racks))
    return _found(name, shape, ours, checked, yardstick(name, shape, members))


def server(name: str, shape: Shape) -> Found:
    """An assignor of the coordinator, whose `stays` and so on are of its own targets."""
    counts = shape.counts()
    subscribed = {m.member_id: frozenset(m.topics) for m in members_of(replace(shape, state="fresh"))}
    shared = {topics: topics for topics in subscribed.values()}
    homogeneous = shape.subscribe == "all"

    def group(targets: Mapping[str, Any], member_ids: Sequence[str]) -> GroupSpec:
        specs = {m: MemberSpec(shared[subscribed[m]], targets.get(m, {})) for m in sorted(member_ids)}
        return GroupSpec(specs, homogeneous=homogeneous)

    spec = group({}, list(subscribed))
    if shape.state != "fresh":
        ids = sorted(subscribed)
        before = ids[1:] if shape.state == "joins" else ids
        targets = BUILT_IN[name].assign(group({}, before), counts)
        spec = group(targets, ids[1:] if shape.state == "leaves" else ids)
    ours = best(lambda: BUILT_IN[name].assign(spec, counts))
    alike = "sticky" if name == "uniform" else name
    return _found(f"{name} (server)", shape, ours, None, yardstick(alike, shape, members_of(shape)))


def _found(name: str, shape: Shape, ours: float, checked: float | None, theirs: float | None) -> Found:
    return Found(
        name,
        str(shape),
        ours * 1_000,
        checked * 1_000 if checked is not None else None,
        theirs * 1_000 if theirs is not None else None,
        theirs / ours if theirs is not None else None,
    )


def measure(say: Callable[[Found], None], *, everything: bool) -> list[Found]:
    """Each is reported to `say` when it is known. `everything`: also rebalances, racks, and most topics."""
    logging.disable(logging.WARNING)
    found = []
    common = (*SMALL, *MIDDLE, *LARGE[:2], *MIXED)
    for name in YARDSTICKS:
        again = AGAIN if "sticky" in name else ()
        on_racks = () if name == "roundrobin" else ON_RACKS
        for shape in (*common, *((LARGE[2], *on_racks, *again) if everything else ())):
            found.append(client(name, shape))
            say(found[-1])
    for name in BUILT_IN:
        again = AGAIN if name == "uniform" else ()
        for shape in (*common, *((LARGE[2], *again) if everything else ())):
            found.append(server(name, shape))
            say(found[-1])
    logging.disable(logging.NOTSET)
    return found


def say_line(line: Found) -> None:
    """One line of the table."""
    checked = f"{line.checked_ms:9.2f}" if line.checked_ms is not None else " " * 9
    theirs = f"{line.kafka_python_ms:11.2f} {line.ratio:8.1f} x" if line.kafka_python_ms is not None else ""
    print(f"{line.assignor:19} {line.shape:48} {line.ours_ms:9.2f} {checked} {theirs}".rstrip(), flush=True)


def table(*, everything: bool = False) -> list[Found]:
    """Measure, and print the table."""
    print(
        f"{'assignor':19} {'members x topics x partitions, CPU ms':48} {'ours':>9} {'checked':>9} kafka-python   ratio"
    )
    return measure(say_line, everything=everything)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and write it as JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="also rebalances, racks, and 500 topics for 10,000 members")
    parser.add_argument("--json", type=Path, help="also write the lines to this file")
    options = parser.parse_args(arguments)
    found = table(everything=options.all)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(line) for line in found], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
