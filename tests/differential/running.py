"""Plays sequences on both sides, and looks for the fewest steps that differ."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.differential.playing import Place, Player
from tests.differential.rules import canonical, compared
from tests.differential.sequences import Step, sequence

NO_ANSWER = "no answer"
"""To the last step that is played: what follows would wait for it, too."""

Differ = Callable[[Sequence[Step]], Awaitable[list[str]]]


@dataclass
class Found:
    """What differed in one sequence: its seed, the shrunk steps and their differences."""

    seed: int
    steps: Sequence[Step]
    differences: list[str]

    def __str__(self) -> str:
        steps = "\n".join(f"  {number}. {step}" for number, step in enumerate(self.steps, 1))
        return f"seed {self.seed}:\n{steps}\n" + "\n".join(f"  differs: {line}" for line in self.differences)


@dataclass
class Report:
    """What was played."""

    sequences: int = 0
    steps: int = 0
    found: list[Found] = field(default_factory=list)


class Both:
    """A gateway and a broker."""

    def __init__(self, ours: Place, theirs: Place, name: str) -> None:
        self._ours, self._theirs = ours, theirs
        self._groups = (f"{name}-{number}" for number in count())

    async def differ(self, steps: Sequence[Step]) -> list[str]:
        """The differences of a sequence, each time in a new group."""
        group = next(self._groups)
        ours, theirs = await asyncio.gather(_played(self._ours, group, steps), _played(self._theirs, group, steps))
        return compared(steps, ours, theirs)


async def _played(place: Place, group: str, steps: Sequence[Step]) -> list[Any]:
    """The canonical answers. Member ids are known when all is played."""
    async with Player(place, group) as player:
        heard = []
        for step in steps:
            try:
                (answer,) = await player.play([step])
            except TimeoutError:
                answer = NO_ANSWER
            heard.append((answer, {slot.member_id: f"m{at}" for at, slot in enumerate(player.slots) if slot.member_id}))
            if answer == NO_ANSWER:
                break
    topics = {topic_id: name for name, topic_id in place.topics.items()} | {group: "g"}
    ids: dict[Any, str] = {}
    for _, names in heard:
        ids |= names
    return [canonical(answer, {**ids, **topics}) for answer, _ in heard]


async def shrunk(steps: Sequence[Step], differ: Differ, tries: int = 60) -> tuple[Sequence[Step], list[str]]:
    """Fewer steps that still differ, by leaving out ever smaller parts, and their differences."""
    best, size = list(steps), len(steps) // 2
    found = await differ(best)
    while size and tries:
        at = 0
        while at < len(best) and tries:
            fewer = best[:at] + best[at + size :]
            tries -= 1
            again = await differ(fewer) if fewer else []
            if again:
                best, found = fewer, again
            else:
                at += size
        size //= 2
    return best, found


async def run(both: Both, seeds: Sequence[int], length: int, say: Callable[[str], None]) -> Report:
    """Play a sequence of each seed. A difference is looked for again before it counts, and shrunk."""
    report = Report()
    for seed in seeds:
        steps = sequence(seed, length)
        report.sequences += 1
        report.steps += len(steps)
        if await both.differ(steps):
            fewest, differences = await shrunk(steps, both.differ)
            if differences:
                report.found.append(Found(seed, fewest, differences))
                say(str(report.found[-1]))
    return report
