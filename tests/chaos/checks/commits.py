"""No acknowledged commit is lost, none is overtaken by one that came before it or from a member that was fenced.

Members read on from what is committed, so that in each partition of a group the journal in Postgres must only go up: in
its offsets, in its generations (or epochs), and in the order in which commits were acknowledged.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

from tests.chaos.checks.ownership import Partition
from tests.chaos.checks.report import Report
from tests.chaos.history import Line, of_kind

KEPT = "acknowledged commits are kept"
FENCED = "no commit of a fenced member lands"
ORDERED = "commits land in their order"
LATEST = "what a member was told last is committed, or something later"
READ = "a member that takes over a partition finds what was committed"


class Acknowledged(NamedTuple):
    """A commit of one partition that a member was told is done."""

    offset: int
    sent: float
    told: float
    gen: int
    member_id: str


def check_commits(lines: list[Line], report: Report) -> None:
    """Adds what it found to the report."""
    journals: dict[Partition, list[Line]] = defaultdict(list)
    for line in sorted(of_kind(lines, "journal"), key=lambda line: int(line["id"])):
        journals[line["g"], line["topic"], line["p"]].append(line)
    acknowledged = _acknowledged(lines)
    view = {(line["g"], line["topic"], line["p"]): line["offset"] for line in of_kind(lines, "committed")}
    for partition in sorted({*journals, *acknowledged, *view}):
        _check_journal(partition, journals[partition], report)
        _check_view(partition, journals[partition], view.get(partition), report)
        _check_kept(partition, journals[partition], acknowledged[partition], report)
    _check_reads(lines, acknowledged, report)


def check_latest(lines: list[Line], report: Report) -> None:
    """As `check_commits` for a fail-over that loses the end of the log: the journal may lack commits that were
    acknowledged, what is committed may not be behind them.
    """
    view = {(line["g"], line["topic"], line["p"]): line["offset"] for line in of_kind(lines, "committed")}
    for partition, told in sorted(_acknowledged(lines).items()):
        last = max(told, key=lambda commit: commit.told)
        shown = view.get(partition, -1)
        report.check(LATEST, shown >= last.offset, last.told, f"{partition}: {last}, but {shown} is committed")


def _acknowledged(lines: list[Line]) -> dict[Partition, list[Acknowledged]]:
    found: dict[Partition, list[Acknowledged]] = defaultdict(list)
    for line in of_kind(lines, "answer"):
        if line["api"] == "offsets/commit" and line["error"] == "NONE":
            for topic, number, offset in line["offsets"]:
                commit = Acknowledged(offset, line["sent"], line["t"], line["gen"], line["member_id"])
                found[line["g"], topic, number].append(commit)
    return found


def _check_journal(partition: Partition, journal: list[Line], report: Report) -> None:
    for earlier, later in pairwise(journal):
        went = f"{partition}: after {_said(earlier)} came {_said(later)}"
        report.check(ORDERED, later["offset"] >= earlier["offset"], later["t"], went)
        report.check(FENCED, later["gen"] >= earlier["gen"], later["t"], went)


def _said(line: Line) -> str:
    return f"offset {line['offset']} of {line['member_id']} in {line['gen']}"


def _check_view(partition: Partition, journal: list[Line], shown: int | None, report: Report) -> None:
    last = journal[-1]["offset"] if journal else None
    report.check(
        KEPT, last == shown, journal[-1]["t"] if journal else 0.0, f"{partition}: journal {last}, view {shown}"
    )


def _check_kept(partition: Partition, journal: list[Line], told: list[Acknowledged], report: Report) -> None:
    """Each is in the journal, and the one that was acknowledged before another was sent stands before it."""
    places: dict[tuple[int, int, str], list[int]] = defaultdict(list)
    for place, line in enumerate(journal):
        places[line["offset"], line["gen"], line["member_id"]].append(place)
    reached: list[tuple[float, int]] = []
    for commit in sorted(told, key=lambda commit: commit.told):
        found = places.get((commit.offset, commit.gen, commit.member_id))
        report.check(KEPT, found is not None, commit.told, f"{partition}: {commit} is not in the journal")
        if found is not None:
            before = max((place for told_at, place in reached if told_at < commit.sent), default=-1)
            text = f"{partition}: {commit} is overtaken by place {before} of the journal"
            report.check(ORDERED, found[-1] >= before, commit.told, text)
            reached.append((commit.told, found[0]))


def _check_reads(lines: list[Line], told: dict[Partition, list[Acknowledged]], report: Report) -> None:
    for line in of_kind(lines, "answer"):
        if line["api"] != "offsets/fetch" or line["error"] != "NONE":
            continue
        for topic, number, offset in line["offsets"]:
            earlier = [commit.offset for commit in told[line["g"], topic, number] if commit.told < line["sent"]]
            least = max(earlier, default=-1)
            text = f"{line['g']} {topic}-{number}: {line['m']} read {offset}, but {least} had been acknowledged"
            report.check(READ, offset >= least, line["t"], text)
