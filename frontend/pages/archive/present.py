"""Findings and results of runs as text. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from frontend.ui.rows import Millis, Names
from frontend.ui.service import KINDS, found_state, run_state
from frontend.ui.states import State
from frontend.ui.wording import duration, member_name, plural
from frontend.ui.zones import instant
from offsets.runs.findings import Finding
from offsets.runs.service import SparkRun

FINDINGS: Mapping[str, tuple[str, str, str]] = {
    "missing_in_view": ("Missing offset", "bad", "An offset is in the journal but not committed."),
    "missing_in_journal": ("Missing in journal", "bad", "An offset is committed but not in the journal."),
    "surplus_in_view": ("Surplus offset", "bad", "An offset is committed but removed according to the journal."),
    "other_offset": ("Other offset", "bad", "The committed offset differs from the journal."),
    "other_metadata": ("Other metadata", "warn", "The offset is right, but its metadata differs."),
    "rewind": ("Rewind", "warn", "A commit is lower than the previous one, without a reset."),
    "beyond_log_end": ("Beyond log end", "bad", "A commit is past the end of the log."),
    "below_log_start": ("Below log start", "warn", "A commit is before the first record in the log."),
    "topic_gone": ("Topic gone", "warn", "An offset is committed on a topic that does not exist."),
    "partition_gone": ("Partition gone", "warn", "An offset is committed on a partition that the topic does not have."),
    "two_members": ("Two members", "bad", "Two members of one generation committed on the partition."),
    "fenced_generation": ("Fenced generation", "bad", "A commit from an ended generation was accepted."),
    "time_backwards": ("Time backwards", "warn", "A later line of the journal has an earlier time."),
    "item_lost": ("Item lost", "bad", "Items of a share group are neither finished nor given up, nor to be delivered."),
    "item_twice": ("Item twice", "bad", "Items of a share group were finished twice, or are still to be delivered."),
}
"""What each kind of finding is called, its tone, and what it means."""


LONGEST_METADATA = 40
"""Characters of a commit's metadata in the evidence of a finding; its commits have all of it."""
_MEMBERS = ("members", "member_ids")
_FIRST = ("journal_ids",)
"""Evidence that any finding may have, listed before the rest."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run as text. `percent`: progress of the stage, None if unknown. `found`: a warning about what it found."""

    run: SparkRun
    kind: str
    state: State
    url: str
    duration: str
    percent: int | None
    found: State | None = None

    @property
    def began(self) -> Millis:
        """When the run began or, if it has not begun, when it was requested."""
        return self.run.started_at or self.run.requested_at


@dataclass(frozen=True, slots=True)
class FindingLine:
    """A finding as text."""

    finding: Finding
    label: str
    tone: str
    meaning: str
    group_url: str
    commits_url: str
    evidence: str


def run_line(run: SparkRun, now: Millis, url: str) -> RunLine:
    """A run as lists and its own page show it."""
    state = run_state(run)
    length = ""
    if run.started_at is not None:
        length = duration(max(0, (now if run.is_open else run.ended_at or run.started_at) - run.started_at))
    percent = 100 * run.slices_done // run.slices_total if run.is_open and run.slices_total else None
    return RunLine(run, KINDS.get(run.kind, (run.kind, ""))[0], state, url, length, percent, found_state(run))


def finding_line(finding: Finding, group_url: str, names: Names) -> FindingLine:
    """A finding as the list shows it. `names`: those of members of its group that are known."""
    label, tone, meaning = FINDINGS.get(finding.kind, (finding.kind, "idle", ""))
    key = urlencode({"topic": finding.topic, "partition": finding.partition})
    return FindingLine(finding, label, tone, meaning, group_url, f"{group_url}/commits?{key}", evidence(finding, names))


def members_of(finding: Finding) -> list[str]:
    """The ids of the members that the evidence names."""
    return [str(one) for name in _MEMBERS for one in _listed(finding.evidence.get(name))]


def evidence(finding: Finding, names: Names) -> str:
    """The evidence for a finding: `journal 4, 5 · members a, b · at 2026-01-31 …`. Empty parts are omitted."""
    keys = sorted(finding.evidence, key=lambda key: (key not in _FIRST, key))
    said = [_said(key, finding.evidence[key], names) for key in keys if finding.evidence[key] not in (None, [], "", {})]
    return " · ".join(said)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _said(name: str, value: Any, names: Names) -> str:
    values = _listed(value)
    if name == "journal_ids":
        return f"journal {', '.join(map(str, values))}"
    if name in _MEMBERS:
        known = ", ".join(member_name(str(one), names) for one in values)
        return f"{'member' if len(values) == 1 else 'members'} {known}"
    if name in ("instants", "at"):
        return f"at {', '.join(instant(one) for one in values if isinstance(one, int))}"
    if name == "metadata" and len(values) == 2:
        return f"metadata {_quoted(values[0])} in the journal, {_quoted(values[1])} committed"
    if name == "line" and isinstance(value, dict):
        return _line(value)
    return f"{name.replace('_', ' ')} {', '.join(map(_plain, values))}"


def _line(line: Mapping[str, Any]) -> str:
    """What the last line of the journal says, which a repair would write."""
    offset, at, metadata = (line.get(name) for name in ("committed_offset", "at", "metadata"))
    said = "no offset" if offset is None else f"offset {offset:,}"
    written = f" of {instant(at)}" if isinstance(at, int) else ""
    return f"last line{written}: {said}" + (f", metadata {_quoted(metadata)}" if metadata else "")


def _quoted(text: Any) -> str:
    shown = "" if text is None else str(text)
    return f"“{shown if len(shown) <= LONGEST_METADATA else shown[:LONGEST_METADATA] + '…'}”"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def result_facts(run: SparkRun) -> list[tuple[str, str]]:
    """The scalar values of a run's result, as text; lists are counted."""
    found = []
    for name, value in (run.result or {}).items():
        if isinstance(value, bool):
            found.append((_label(name), "yes" if value else "no"))
        elif isinstance(value, int) and name.endswith(("_at", "_since")):
            found.append((_label(name), instant(value)))
        elif isinstance(value, int):
            found.append((_label(name), f"{value:,}"))
        elif isinstance(value, str | float):
            found.append((_label(name), str(value)))
        elif isinstance(value, list) and value:
            found.append((_label(name), plural(len(value), "entry", "entries")))
    return found


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()
