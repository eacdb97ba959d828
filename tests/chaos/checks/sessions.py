"""How long a session lasted at least, from what a member was told.

A renewal is an answer after which the service promised a whole session. The service handled it at some moment between
`sent` and `t`, so the session cannot have been over before `sent` + session. A clock that jumps ahead ends it earlier
by as much; an outage re-arms it, which makes it longer: neither makes the bound wrong.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable

from tests.chaos.history import Line, of_kind

RENEWING = {
    "heartbeat": {"NONE", "REBALANCE_IN_PROGRESS"},
    "consumer-heartbeat": {"NONE"},
}
"""Request -> the answers to it that renew the session in any case. Joins and syncs that are repeated do not: they are
told what was decided already (classic.md 4, Stable)."""

OF_MEMBERS = ("join", "sync", "offsets/commit")
"""Other requests that are refused to those who are no members. Fetches are not: the classic protocol does not ask."""


def is_renewal(line: Line) -> bool:
    """This answer promised a session. That of a leave does not."""
    return line["error"] in RENEWING.get(line["api"], ()) and (line["gen"] is None or line["gen"] >= 0)


class Clock:
    """How far the clock of the service ran ahead of ours."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._jumps = of_kind(lines, "jump")

    def ahead_s(self, since: float, until: float) -> float:
        """By how much it jumped between two moments."""
        return sum(float(jump["s"]) for jump in self._jumps if since <= jump["t"] <= until)

    def earliest_end(self, sent: float, session_s: float) -> float:
        """When a session that began at `sent` may be over at the earliest."""
        end = sent + session_s
        for jump in self._jumps:
            if sent <= jump["t"] < end:
                end = max(jump["t"], end - float(jump["s"]))
        return end


class Stays:
    """How long each member object surely belonged to its group."""

    def __init__(self, lines: Iterable[Line]) -> None:
        lines = list(lines)
        self._clock = Clock(lines)
        self._renewed: dict[str, list[float]] = defaultdict(list)
        self._known: dict[str, list[float]] = defaultdict(list)
        for line in of_kind(lines, "answer"):
            if is_renewal(line):
                self._renewed[line["m"]].append(line["sent"])
            if is_renewal(line) or (line["error"] == "NONE" and line["api"] in OF_MEMBERS):
                self._known[line["m"]].append(line["sent"])
        for sent in (*self._renewed.values(), *self._known.values()):
            sent.sort()

    def surely_until(self, member: str, before: float, session_s: float) -> float:
        """The session of its last renewal, or, if that is later, the last request that the group accepted from it.

        Only what was sent before this moment counts, which is returned if there was nothing.
        """
        renewed, known = _last(self._renewed[member], before), _last(self._known[member], before)
        if known is None:
            return before
        return known if renewed is None else max(known, self._clock.earliest_end(renewed, session_s))


def _last(sent: list[float], before: float) -> float | None:
    found = bisect_right(sent, before)
    return sent[found - 1] if found else None
