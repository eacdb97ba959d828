"""The workers in docs/examples, in their languages, against a real server: alone, together, and with the Python client.

A thread appends lines to the files while members come and go. Nothing is lost or doubled: each line is printed once.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kcoord.client import Consumer
from tests.kcoord.client.live import Service, owned, poll_until, running_service
from tests.support.database import cloned_database
from tests.support.processes import ROOT, environment

pytestmark = [
    pytest.mark.processes,
    pytest.mark.xdist_group("examples"),  # one server for all
    pytest.mark.whole("other toolchains: a shell, Node and Go"),
]

EXAMPLES = ROOT / "docs" / "examples"
TOPIC, PARTITIONS = "lines", 4
SECONDS = 120.0
AT_ONCE_S = 3.0
"""From SIGTERM to the end of the process: a batch and, in the shell, a heartbeat that is held. A session takes 6 s."""


@dataclass(frozen=True)
class Language:
    """An example. `version` is the command that prints the version of its tool, `least` the oldest that will do."""

    file: str
    version: str
    least: tuple[int, int]
    protocol: str

    @property
    def group(self) -> str:
        """The group id that it uses by default."""
        found = re.search(r"KCOORD_GROUP\W+(lines-\w+)", (EXAMPLES / self.file).read_text())
        assert found is not None
        return found[1]

    def missing(self) -> str | None:
        """Why the example cannot run here."""
        tool, *arguments = self.version.split()
        if shutil.which(tool) is None:
            return f"no {tool} on the path"
        said = subprocess.run([tool, *arguments], capture_output=True, text=True, check=True, timeout=60).stdout
        found = re.search(r"(\d+)\.(\d+)", said)
        assert found is not None, said
        if (int(found[1]), int(found[2])) < self.least:
            return f"{self.file} needs {tool} {self.least[0]}.{self.least[1]}; this is {found[0]}"
        return None


SHELL = Language("worker.sh", "curl --version", (7, 84), "consumer")
NODE = Language("worker.mjs", "node --version", (20, 3), "consumer")
GO = Language("worker.go", "go version", (1, 21), "classic")
NODE_QUEUE = Language("queue.mjs", "node --version", (20, 3), "share")
GO_QUEUE = Language("queue.go", "go version", (1, 21), "share")
QUEUES = pytest.mark.parametrize("language", [NODE_QUEUE, GO_QUEUE], ids=lambda language: language.file)
LANGUAGES = pytest.mark.parametrize("language", [SHELL, NODE, GO], ids=lambda language: language.file)


class Files:
    """The partitions: files to which lines are appended."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.lengths = [0] * PARTITIONS
        for partition in range(PARTITIONS):
            (directory / f"{partition}.txt").touch()

    def append(self) -> None:
        """One line to each file."""
        for partition, number in enumerate(self.lengths):
            with (self.directory / f"{partition}.txt").open("a") as file:
                file.write(f"line {number} of {partition}\n")
            self.lengths[partition] += 1

    @contextmanager
    def growing(self) -> Iterator[None]:
        """Lines are appended meanwhile."""
        stopped = threading.Event()

        def feed() -> None:
            while not stopped.wait(0.01):
                self.append()

        thread = threading.Thread(target=feed)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()

    def expected(self) -> list[str]:
        """What the workers print of them, sorted."""
        lines = [f"{p} {n} line {n} of {p}" for p, length in enumerate(self.lengths) for n in range(length)]
        return sorted(lines)


class Worker:
    """A process of an example."""

    in_order: tuple[int, ...] = (0,)
    """With which status it ends after SIGTERM."""

    def __init__(self, command: list[str], env: Mapping[str, str], directory: Path) -> None:
        self._directory = Path(tempfile.mkdtemp(dir=directory))
        with (self._directory / "out").open("wb") as out, (self._directory / "err").open("wb") as err:
            self.popen = subprocess.Popen(command, env=env, stdout=out, stderr=err, stdin=subprocess.DEVNULL)

    @property
    def lines(self) -> list[str]:
        """What it processed: lines that are complete."""
        return (self._directory / "out").read_text().split("\n")[:-1]

    @property
    def messages(self) -> str:
        return (self._directory / "err").read_text()

    def stop(self) -> float:
        """SIGTERM; returns how many seconds it took. Raises AssertionError where it does not end in order."""
        began = time.monotonic()
        self.popen.send_signal(signal.SIGTERM)
        try:
            status = self.popen.wait(SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"did not end; it said:\n{self.messages}") from None
        assert status in self.in_order, self.messages
        return time.monotonic() - began

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.popen.kill()
        self.popen.wait()


@dataclass(frozen=True)
class Place:
    """Where workers of one language run: with their files, in a group."""

    service: Service
    language: Language
    command: list[str]
    files: Files
    directory: Path
    group: str

    def start(self) -> Worker:
        extra = {"KCOORD_URL": self.service.url, "KCOORD_TOKEN": self.service.token}
        if self.group != self.language.group:
            extra["KCOORD_GROUP"] = self.group
        env = environment(None, self.directory, extra)
        return Worker([*self.command, str(self.files.directory)], env, self.directory)

    def shares(self) -> dict[str, set[int]]:
        """The partitions of each member, as operators see them."""
        response = self.service.request("GET", f"groups/{self.group}")
        if response.status_code == 404:
            return {}
        return {member["member_id"]: partitions_of(member) for member in response.json()["members"]}

    def committed(self) -> dict[int, int]:
        """The committed offset of each partition."""
        response = self.service.request("GET", f"groups/{self.group}/offsets")
        if response.status_code == 404:
            return {}
        return {entry["partition"]: entry["committed_offset"] for entry in response.json()["offsets"]}


def partitions_of(member: dict[str, Any]) -> set[int]:
    if "assignment" in member and isinstance(member["assignment"], list):
        return {partition for entry in member["assignment"] for partition in entry["partitions"]}
    return set((member["partitions"] or {}).get(TOPIC, ()))


def shared_by(place: Place, members: int) -> bool:
    """Whether this number of members share all partitions evenly, each with one owner."""
    shares = list(place.shares().values())
    even = all(len(share) == PARTITIONS // members for share in shares)
    return len(shares) == members and even and set().union(*shares) == set(range(PARTITIONS))


def until(condition: Callable[[], bool], *workers: Worker, what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        said = "\n---\n".join(worker.messages for worker in workers)
        for worker in workers:
            assert worker.popen.poll() is None, f"{what}: a worker ended; they said:\n{said}"
        assert time.monotonic() < deadline, f"{what}: not within {SECONDS:g} s; they said:\n{said}"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def service(postgres: str) -> Iterator[Service]:
    with cloned_database(postgres) as conninfo, running_service(conninfo) as running:
        running.topic(PARTITIONS, TOPIC)
        yield running


@pytest.fixture(scope="module")
def go_workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with programs of the names of their files."""
    built = tmp_path_factory.mktemp("go")
    env = environment(None, built, {"GOTOOLCHAIN": "local", "GOFLAGS": "", "CGO_ENABLED": 0})
    for file in (GO.file, GO_QUEUE.file):
        subprocess.run(["go", "vet", file], cwd=EXAMPLES, env=env, check=True, timeout=300)
        subprocess.run(["go", "build", "-o", built / file, file], cwd=EXAMPLES, env=env, check=True, timeout=300)
    return built


@pytest.fixture
def place(service: Service, language: Language, tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    missing = language.missing()
    if missing is not None:
        pytest.skip(missing)
    if language in (GO, GO_QUEUE):
        command = [str(request.getfixturevalue("go_workers") / language.file)]
    else:
        command = ["sh" if language is SHELL else "node", str(EXAMPLES / language.file)]
    files = tmp_path / "files"
    files.mkdir()
    return Place(service, language, command, Files(files), tmp_path, language.group)


@LANGUAGES
def test_two_workers_share_a_group_and_one_leaves(place: Place) -> None:
    with ExitStack() as stack:
        with place.files.growing():
            first = stack.enter_context(place.start())
            until(lambda: shared_by(place, 1) and len(first.lines) > 20, first, what="the first has everything")
            second = stack.enter_context(place.start())
            until(lambda: shared_by(place, 2), first, second, what="each has half")
            there = len(first.lines), len(second.lines)
            until(lambda: len(first.lines) > there[0] + 20 and len(second.lines) > 20, first, second, what="both work")

            assert first.stop() < AT_ONCE_S
            members = place.shares()
            assert len(members) == 1, "it left when it ended, not when its session does"
            for partition, offset in ends(first).items():
                assert place.committed()[partition] >= offset, "what it processed is committed"
            until(lambda: shared_by(place, 1), second, what="the second has everything")
        until(lambda: len(first.lines + second.lines) >= sum(place.files.lengths), second, what="all lines are done")
        assert sorted(first.lines + second.lines) == place.files.expected()


def ends(worker: Worker) -> dict[int, int]:
    """The offset after the last line of each partition that a worker printed."""
    found: dict[int, int] = {}
    for line in worker.lines:
        partition, offset, _ = line.split(" ", 2)
        found[int(partition)] = max(found.get(int(partition), 0), int(offset) + 1)
    return found


@LANGUAGES
def test_a_worker_that_was_removed_or_held_comes_back(place: Place) -> None:
    place = replace(place, group=f"{place.group}-removed")
    place.files.append()
    with place.start() as worker:
        until(lambda: sum(place.committed().values()) == PARTITIONS, worker, what="the first lines are committed")
        (member,) = place.shares()
        removed = place.service.request("POST", f"groups/{place.group}/members/{member}/kick", json={})
        assert removed.status_code == 204, removed.text
        until(lambda: "UNKNOWN_MEMBER_ID" in worker.messages, worker, what="it is told")
        until(lambda: shared_by(place, 1), worker, what="it has everything again")
        held = place.service.request("POST", f"groups/{place.group}/hold", json={"duration_ms": 300_000})
        assert held.status_code == 200, held.text
        until(lambda: "COORDINATOR_LOAD_IN_PROGRESS" in worker.messages, worker, what="it is told to wait")
        assert place.service.request("DELETE", f"groups/{place.group}/hold").status_code == 204
        until(lambda: shared_by(place, 1), worker, what="it has everything after the hold")
        place.files.append()
        until(lambda: len(worker.lines) == 2 * PARTITIONS, worker, what="the next lines are done")
        assert worker.stop() < AT_ONCE_S
        assert sorted(worker.lines) == place.files.expected()
        assert place.shares() == {}


@pytest.mark.parametrize("language", [NODE, GO], ids=lambda language: language.file)
def test_a_worker_shares_a_group_with_the_python_client(place: Place) -> None:
    place = replace(place, group=f"{place.group}-mixed")
    service = place.service
    if place.language.protocol == "consumer":
        settings = service.consumer_settings(place.group)
    else:
        settings = service.settings(place.group, partition_assignment_strategy=["range"])
    place.files.append()
    with Consumer(TOPIC, **settings) as consumer, place.start() as worker:
        poll_until(lambda: len(owned(consumer)) == 2 and shared_by(place, 2), consumer)
        theirs = set(range(PARTITIONS)) - owned(consumer)
        until(lambda: set(ends(worker)) >= theirs, worker, what="it works")
        assert worker.stop() < AT_ONCE_S
        assert len(place.shares()) == 1
        assert {partition: place.committed()[partition] for partition in theirs} == dict.fromkeys(theirs, 1)
        poll_until(lambda: owned(consumer) == set(range(PARTITIONS)), consumer)


@QUEUES
def test_workers_of_a_queue_share_the_lines_and_one_leaves(place: Place) -> None:
    """The lines are all done, each once, and nothing is left locked."""
    with ExitStack() as stack:
        with place.files.growing():
            first, second = (stack.enter_context(place.start()) for _ in range(2))
            until(lambda: min(len(first.lines), len(second.lines)) > 20, first, second, what="both work")
        assert first.stop() < AT_ONCE_S
        assert len(place.shares()) == 1, "it left when it ended, not when its session does"
        until(lambda: len(first.lines + second.lines) >= sum(place.files.lengths), second, what="all lines are done")
        assert second.stop() < AT_ONCE_S
        assert sorted(first.lines + second.lines) == place.files.expected()
        assert place.shares() == {}


@QUEUES
def test_lines_of_a_killed_worker_are_done_by_another(place: Place) -> None:
    place = replace(place, group=f"{place.group}-killed")
    place.service.configure(place.group, share_record_lock_duration_ms=1_000)
    with ExitStack() as stack:
        with place.files.growing():
            first, second = (stack.enter_context(place.start()) for _ in range(2))
            until(lambda: min(len(first.lines), len(second.lines)) > 20, first, second, what="both work")
            first.popen.kill()
            first.popen.wait()
        expected = set(place.files.expected())
        until(lambda: {*first.lines, *second.lines} == expected, second, what="all lines are done")


def test_every_example_has_a_group_of_its_own() -> None:
    """What one commits, another would take for its own work."""
    text = "".join(path.read_text() for path in sorted(EXAMPLES.rglob("*")) if path.is_file() and path.suffix != ".pyc")
    groups = [language.group for language in (SHELL, NODE, GO, NODE_QUEUE, GO_QUEUE)]
    groups += re.findall(r'^GROUP, TOPIC = "(\w+)"', text, re.MULTILINE)
    assert len(groups) == 6
    assert len(set(groups)) == 6
