"""Never two owners of one partition of a group at one time.

A member owns a partition from the call of `on_partitions_assigned` until `on_partitions_revoked` has returned,
`on_partitions_lost` was called, its consumer was closed or its process was killed.

What the client guarantees is less in one case: a member that the service removed, because it heard nothing from it for
a session, does not know that before its next answer (it may be frozen, or cut off), and reads on. Its ownership
therefore ends at the latest when its session may have ended: the last renewal that it was told of, by the moment it was
sent, plus the session; or, where that is later, when it sent the last request that was accepted (`sessions`). Commits
of such a member are refused, which `commits` checks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tests.chaos.checks.report import Report
from tests.chaos.checks.sessions import Stays
from tests.chaos.history import Line

PROMISE = "one owner at a time"
Partition = tuple[str, str, int]
"""Group, topic, number."""


@dataclass(frozen=True)
class Tenure:
    """A member owned a partition from `since` until `until`; `ended`: what ended it."""

    member: str
    since: float
    until: float
    ended: str


def check_ownership(lines: list[Line], report: Report) -> None:
    """Adds what it found to the report."""
    for partition, tenures in tenures_of(lines).items():
        tenures.sort(key=lambda tenure: tenure.since)
        latest: Tenure | None = None
        for tenure in tenures:
            if latest is not None:
                text = (
                    f"{partition}: {tenure.member} was assigned it {latest.until - tenure.since:.3f} s before "
                    f"{latest.member} had given it up ({latest.ended})"
                )
                alone = tenure.since >= latest.until or tenure.until <= tenure.since
                report.check(PROMISE, alone or tenure.member == latest.member, tenure.since, text)
            if latest is None or tenure.until > latest.until:
                latest = tenure


def tenures_of(lines: list[Line]) -> dict[Partition, list[Tenure]]:
    """Who owned each partition when."""
    return _Tenures(lines).all()


class _Tenures:
    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines
        self._stays = Stays(lines)
        self._group: dict[str, str] = {}
        self._session: dict[str, float] = {}
        self._held: dict[str, dict[tuple[str, int], float]] = defaultdict(dict)
        self._found: dict[Partition, list[Tenure]] = defaultdict(list)

    def all(self) -> dict[Partition, list[Tenure]]:
        for line in self._lines:
            kind = line["k"]
            if kind == "begin":
                self._group[line["m"]] = line["g"]
                self._session[line["m"]] = line["session_s"]
            elif kind == "assigned":
                for topic, number in line["ps"]:
                    self._held[line["m"]].setdefault((topic, number), line["t"])
            elif kind in ("revoked", "lost"):
                self._end(line["m"], [(topic, number) for topic, number in line["ps"]], line["t"], kind)
            elif kind == "end":
                self._end(line["m"], list(self._held[line["m"]]), line["t"], kind)
            elif kind == "killed":
                for member in [m for m in self._held if m.startswith(line["crew"] + "/")]:
                    self._end(member, list(self._held[member]), line["t"], kind)
        last = self._lines[-1]["t"] if self._lines else 0.0
        for member, held in list(self._held.items()):
            self._end(member, list(held), last, "the history")
        return self._found

    def _end(self, member: str, partitions: Iterable[tuple[str, int]], at: float, why: str) -> None:
        for topic, number in partitions:
            since = self._held[member].pop((topic, number), None)
            if since is None:
                continue
            until, ended = at, why
            surely = self._stays.surely_until(member, at, self._session[member])
            if surely < until:
                until, ended = surely, f"{why}, but its session may have been over before"
            self._found[self._group[member], topic, number].append(Tenure(member, since, until, ended))
