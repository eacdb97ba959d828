"""The sequence of the demo: work, kill half-way, replace, finish, compare."""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kcoord.client import Consumer, TopicPartition
from kcoord.tools.demo.archived import archive_and_reconcile
from kcoord.tools.demo.corpus import Corpus, plain_count
from kcoord.tools.demo.crew import Crew, Member, Report
from kcoord.tools.demo.service import DemoProblem, Service, new_group
from kcoord.tools.demo.sink import Sink, Total
from kcoord.tools.demo.worker import WorkerSettings

SESSION_TIMEOUT_MS = 6_000
HEARTBEAT_INTERVAL_MS = 1_000
API_TIMEOUT_MS = 10_000
PROGRESS_SECONDS = 1.0
WATERMARK_SECONDS = 5.0
SESSION_SETTING = "consumer.session.timeout.ms"
INTERVAL_SETTING = "consumer.heartbeat.interval.ms"


@dataclass(frozen=True, slots=True)
class Options:
    """The size of the demo. `pace` is lines per second and worker, `seconds` the maximum duration; `group_protocol`
    "classic" or "consumer"; `spark`: archive and reconcile at the end.
    """

    topic: str
    partitions: int
    max_lines: int
    workers: int
    pace: int
    commit_seconds: float
    seconds: float
    group_protocol: str = "classic"
    spark: bool = False

    @property
    def is_consumer_group(self) -> bool:
        """The service assigns (KIP-848)."""
        return self.group_protocol == "consumer"


@dataclass(slots=True)
class Narrator:
    """Reports progress as it happens."""

    started: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """One line, with the time since the start."""
        sys.stdout.write(f"[{time.monotonic() - self.started:5.1f} s] {text}\n")
        sys.stdout.flush()


class Demo:
    """One run. `directory` is a scratch directory that outlives the workers."""

    def __init__(self, service: Service, options: Options, corpus: Corpus, directory: Path, narrator: Narrator) -> None:
        self._service = service
        self._options = options
        self._corpus = corpus
        self._directory = directory
        self._say = narrator.say
        self._group = new_group()
        self._ends = corpus.ends()
        self._lines = sum(self._ends)
        self._crew = Crew()
        self._victim: Member | None = None
        self._killed_at = 0.0
        self._orphans: set[int] = set()
        self._deadline = time.monotonic() + options.seconds
        self._watermarks_at = 0.0
        self._generation = 0
        self._session_ms = SESSION_TIMEOUT_MS

    def run(self) -> bool:
        """True if the counts are equal, and reconcile finds nothing if it is asked. Raises DemoProblem."""
        self._announce()
        self._corpus.write(self._manifest)
        if self._options.is_consumer_group:
            self._session_ms = shorten_sessions(self._service, self._group, SESSION_TIMEOUT_MS)
        with self._crew, self._observer() as observer:
            for number in range(1, self._options.workers + 1):
                self._crew.start(f"worker-{number}", self._settings())
            self._say(f"{self._options.workers} workers started in group {self._group}")
            self._until_done(observer)
            self._crew.stop()
        is_right = self._compare()
        if self._options.spark:
            is_right = archive_and_reconcile(self._service, self._group, self._say) and is_right
        return is_right

    @property
    def _manifest(self) -> Path:
        return self._directory / "manifest.json"

    @property
    def _sink(self) -> Path:
        return self._directory / "counts.sqlite"

    def _announce(self) -> None:
        self._say(
            f"topic {self._options.topic}: {sum(map(len, self._corpus.partitions))} modules of the standard library, "
            f"{self._lines} lines in {len(self._ends)} partitions"
        )
        self._say(f"dashboard: {self._service.url}/groups/{self._group} ({self._service.hint})")

    def _settings(self) -> WorkerSettings:
        consumer: dict[str, Any] = {
            "group_id": self._group,
            "group_protocol": self._options.group_protocol,
            "url": self._service.url,
            "token": self._service.token,
            "client_id": "wordcount",
            "auto_offset_reset": "earliest",
            "default_api_timeout_ms": API_TIMEOUT_MS,
        }
        if not self._options.is_consumer_group:
            consumer |= {
                "session_timeout_ms": SESSION_TIMEOUT_MS,
                "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
                "partition_assignment_strategy": ["cooperative-sticky"],
            }
        return WorkerSettings(
            self._options.topic,
            str(self._manifest),
            str(self._sink),
            self._options.pace,
            self._options.commit_seconds,
            consumer,
        )

    def _observer(self) -> Consumer[Any]:
        """Reads committed offsets; it never joins the group."""
        return Consumer(group_id=self._group, url=self._service.url, token=self._service.token)

    def _until_done(self, observer: Consumer[Any]) -> None:
        next_progress = time.monotonic()
        while True:
            for report in self._crew.reports(0.1):
                self._take(report)
            now = time.monotonic()
            if now > self._deadline:
                raise DemoProblem(f"not finished within {self._options.seconds:g} s")
            if now < next_progress:
                continue
            next_progress = now + PROGRESS_SECONDS
            committed = self._committed(observer)
            for report in self._crew.reports(0):  # what was delivered before it was committed
                self._take(report)
            self._progress(sum(committed.values()))
            if self._victim is None and sum(committed.values()) >= self._lines / 2:
                self._kill(committed)
            if committed == dict(enumerate(self._ends)) and not self._orphans:
                return

    def _committed(self, observer: Consumer[Any]) -> dict[int, int]:
        if time.monotonic() >= self._watermarks_at:
            self._watermarks_at = time.monotonic() + WATERMARK_SECONDS
            self._push_watermarks()
        partitions = [TopicPartition(self._options.topic, p) for p in range(len(self._ends))]
        found = observer.committed(partitions)
        return {tp.partition: committed.offset if committed else 0 for tp, committed in found.items()}

    def _push_watermarks(self) -> None:
        """The length of the partitions: with this the service knows how far the group is behind."""
        marks = [{"partition": p, "log_start_offset": 0, "log_end_offset": end} for p, end in enumerate(self._ends)]
        self._service.expect("POST", f"topics/{self._options.topic}/watermarks", {"partitions": marks})

    def _progress(self, committed: int) -> None:
        shares = ", ".join(f"{m.name} {len(m.owned)}" for m in self._crew.members.values() if not m.killed)
        percent = 100 * committed // max(1, self._lines)
        delivered = sum(member.delivered for member in self._crew.members.values())
        self._say(
            f"{committed} of {self._lines} lines committed ({percent} %), {delivered} delivered; partitions: {shares}"
        )

    def _take(self, report: Report) -> None:
        member = self._crew.members[report.worker]
        if report.event == "says":
            self._say(f"{member.name}: {report.fields['text']}")
        elif report.event == "progress":
            member.delivered = report.fields["lines"]
        elif report.event == "assigned":
            self._assigned(member, report.fields)
        elif report.event in ("revoked", "lost"):
            member.owned -= set(report.fields["partitions"])
            verb = "gives up" if report.event == "revoked" else "lost"
            self._say(f"{member.name} {verb} {_listed(report.fields['partitions'])}")
        elif report.event == "uncommitted":
            self._say(f"{member.name}: commit refused, its lines will be delivered again: {report.fields['why']}")

    def _assigned(self, member: Member, fields: dict[str, Any]) -> None:
        """A worker finished a rebalance: print which, what is new and what it owns."""
        generation = fields["generation"]
        if generation > self._generation:
            self._generation = generation
            self._say(f"rebalance: {'epoch' if self._options.is_consumer_group else 'generation'} {generation}")
        member.owned = set(fields["owned"])
        new = set(fields["partitions"])
        if new == member.owned:
            self._say(f"{member.name} gets {_listed(new)}")
        else:
            added = f", new {_listed(new)}" if new else ""
            self._say(f"{member.name} keeps {_listed(member.owned - new)}{added}")
        self._check_orphans()

    def _kill(self, committed: dict[int, int]) -> None:
        """SIGKILL the worker with the most work left, and start another."""
        unfinished = {p for p, offset in committed.items() if offset < self._ends[p]}
        victim = max(self._crew.members.values(), key=lambda member: len(member.owned & unfinished))
        self._crew.kill(victim)
        self._victim = victim
        self._killed_at = time.monotonic()
        self._orphans = set(victim.owned)
        self._say(f"SIGKILL to {victim.name} (pid {victim.process.pid}), which owned {_listed(self._orphans)}")
        name = f"worker-{self._options.workers + 1}"
        self._crew.start(name, self._settings())
        self._say(f"{name} started in its place; the session timeout is {self._session_ms / 1000:g} s")

    def _check_orphans(self) -> None:
        """Report when all partitions of the killed worker have new owners."""
        if not self._orphans:
            return
        alive = [member for member in self._crew.members.values() if not member.killed]
        if self._orphans <= set().union(*(member.owned for member in alive)):
            took = time.monotonic() - self._killed_at
            self._say(f"every partition of the killed worker is owned again {took:.1f} s after the SIGKILL")
            self._orphans = set()

    def _compare(self) -> bool:
        with Sink(self._sink) as sink:
            total = sink.total()
        expected = plain_count(self._corpus)
        self._say(
            f"the group counted {total.words.total()} words in {total.lines} lines; {total.repeated} lines were "
            "delivered twice and counted once"
        )
        self._say(f"one plain process counts {expected.total()} words")
        common = ", ".join(f"{word} {count}" for word, count in expected.most_common(5))
        if is_equal(total, expected, self._lines):
            self._say(f"equal, all {len(expected)} different words: {common}, …")
            return True
        wrong = {word: (total.words[word], expected[word]) for word in total.words.keys() | expected.keys()}
        listed = [f"{word} {got} instead of {right}" for word, (got, right) in sorted(wrong.items()) if got != right]
        self._say(f"NOT EQUAL: {total.lines} of {self._lines} lines; {len(listed)} words differ: {listed[:10]}")
        return False


def is_equal(total: Total, expected: Counter[str], lines: int) -> bool:
    """Every line was counted, and every word as often as by the plain process."""
    return total.lines == lines and total.words == expected


def shorten_sessions(service: Service, group: str, wanted_ms: int) -> int:
    """Make the sessions of a consumer group as short as `wanted_ms`, if the service allows it; returns their length.
    Raises DemoProblem.
    """
    path = f"groups/{group}/config"
    settings = {setting["name"]: setting for setting in service.expect("GET", path)["settings"]}
    session = settings[SESSION_SETTING]
    current_ms, interval_ms = int(session["value"]), int(settings[INTERVAL_SETTING]["value"])
    shortest_ms = max(wanted_ms, session["minimum"] or 0, interval_ms + 1)
    if shortest_ms >= current_ms:
        return current_ms
    service.expect("PATCH", path, {SESSION_SETTING: shortest_ms})
    return shortest_ms


def prepare_topic(service: Service, topic: str, partitions: int) -> int:
    """Create the topic, or use the existing one; returns how many partitions it has."""
    answer = service.request("GET", f"topics/{topic}")
    if answer.status_code == 404:
        body: dict[str, Any] = {"name": topic, "partitions": partitions, "labels": {"demo": "wordcount"}}
        service.expect("POST", "topics", body)
        return partitions
    if not answer.is_success:
        raise DemoProblem(f"topic {topic} cannot be read: {answer.status_code}: {answer.text[:500]}")
    found: int = answer.json()["partitions"]
    if found < partitions:
        service.expect("PATCH", f"topics/{topic}", {"partitions": partitions})
        return partitions
    return found


def _listed(partitions: set[int] | list[int]) -> str:
    return f"{len(partitions)} partitions ({' '.join(map(str, sorted(partitions)))})" if partitions else "no partition"
