"""The parts of the demo: input, sink, comparison, finding a service."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from kcoord.client import OffsetOutOfRangeError, Record
from kcoord.tools.demo.__main__ import main, parse
from kcoord.tools.demo.corpus import Corpus, CorpusSource, plain_count, standard_library, words
from kcoord.tools.demo.run import Demo, Narrator, is_equal
from kcoord.tools.demo.service import DemoProblem, Service, reach
from kcoord.tools.demo.sink import LinesMissing, Sink
from tests.support.processes import ROOT, free_port


def lines(partition: int, first: int, *texts: str) -> list[Record]:
    return [Record("t", partition, first + i, value=text) for i, text in enumerate(texts)]


def test_corpus_deals_every_file_to_one_partition_evenly() -> None:
    corpus = standard_library(partitions=8, max_lines=20_000)
    files = [path for paths in corpus.partitions for path in paths]
    assert len(files) == len(set(files)) >= 8
    ends = corpus.ends()
    assert 20_000 <= sum(ends) <= 30_000
    assert all(corpus.partitions)
    assert corpus == standard_library(partitions=8, max_lines=20_000)


def test_corpus_needs_a_file_for_each_partition() -> None:
    with pytest.raises(ValueError, match="fewer than 100000 partitions"):
        standard_library(partitions=100_000, max_lines=1)


def test_counting_lines_is_counting_files(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"One two\r\ntwo_three \xff\x0c3\n\nthree")
    (tmp_path / "b.py").write_bytes(b"")
    corpus = Corpus([[tmp_path / "a.py", tmp_path / "b.py"]])
    source = CorpusSource(corpus)
    records = source.fetch("t", 0, 0, 100)
    assert [r.offset for r in records] == list(range(source.end_offset("t", 0))) == list(range(5))
    counted = Counter(word for record in records for word in words(record.value))
    assert counted == plain_count(corpus) == {"one": 1, "two": 2, "three": 2}


def test_source_reads_from_an_offset_and_knows_its_bounds(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a\nb\nc")
    manifest = tmp_path / "manifest"
    Corpus([[tmp_path / "a.py"]]).write(manifest)
    source = CorpusSource(Corpus.load(manifest))
    assert [(r.offset, r.value) for r in source.fetch("t", 0, 1, 1)] == [(1, "b")]
    assert source.fetch("t", 0, 3, 10) == []
    with pytest.raises(OffsetOutOfRangeError):
        source.fetch("t", 0, 4, 1)


def test_sink_counts_lines_that_come_twice_once(tmp_path: Path) -> None:
    with Sink(tmp_path / "s") as sink:
        assert sink.add(0, lines(0, 0, "a b", "b")) == 0
        # Delivered again in another cut, together with a new line.
        assert sink.add(0, lines(0, 1, "b", "c")) == 1
        assert sink.add(0, lines(0, 0, "a b")) == 1
        assert sink.add(1, lines(1, 0, "a")) == 0
        total = sink.total()
    assert total.words == {"a": 2, "b": 2, "c": 1}
    assert (total.lines, total.repeated) == (4, 2)


def test_sink_refuses_a_gap_and_keeps_what_it_had(tmp_path: Path) -> None:
    with Sink(tmp_path / "s") as sink:
        sink.add(0, lines(0, 0, "a"))
        with pytest.raises(LinesMissing, match="expected line 1, got 2"):
            sink.add(0, lines(0, 2, "c"))
        assert sink.total().words == {"a": 1}


def test_sink_of_a_process_that_is_killed_holds_whole_batches(tmp_path: Path) -> None:
    """SIGKILL between the statements of a transaction: neither counts nor progress of the batch are there."""
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from kcoord.client import Record; from kcoord.tools.demo import sink as module\n"
        "sink = module.Sink(Path(sys.argv[1])); sink.add(0, [Record('t', 0, 0, value='a')])\n"
        "def kill(statement):\n"
        "    if statement.startswith('insert into progress'): os.kill(os.getpid(), signal.SIGKILL)\n"
        "sink._database.set_trace_callback(kill)\n"
        "sink.add(0, [Record('t', 0, 1, value='b')])\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, tmp_path / "s"], cwd=ROOT, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    with Sink(tmp_path / "s") as sink:
        assert (sink.total().words, sink.total().lines) == ({"a": 1}, 1)
        sink.add(0, lines(0, 1, "b"))
        assert sink.total().words == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    ("add", "equal"),
    [
        (lambda sink: sink.add(0, lines(0, 0, "a b", "b")), True),
        (lambda sink: sink.add(0, lines(0, 0, "a b")), False),
        (lambda sink: sink.add(0, lines(0, 0, "a b", "c")), False),
        (lambda sink: sink.add(0, lines(0, 0, "a b", "b b")), False),
    ],
    ids=["all", "a line missing", "another word", "a word twice"],
)
def test_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str], add: object, equal: bool) -> None:
    (tmp_path / "a.py").write_text("a b\nb")
    corpus = Corpus([[tmp_path / "a.py"]])
    with Sink(tmp_path / "counts.sqlite") as sink:
        add(sink)  # type: ignore[operator]
        assert is_equal(sink.total(), plain_count(corpus), 2) is equal
    demo = Demo(Service("http://x", "", ""), parse([]), corpus, tmp_path, Narrator())
    assert demo._compare() is equal
    assert ("NOT EQUAL" in capsys.readouterr().out) is not equal


def test_sink_that_another_writer_holds_waits(tmp_path: Path) -> None:
    with Sink(tmp_path / "s") as first, Sink(tmp_path / "s") as second:
        first.add(0, lines(0, 0, "a"))
        second.add(1, lines(1, 0, "a"))
        assert first.total().words == {"a": 2}
    with sqlite3.connect(tmp_path / "s") as database:
        assert database.execute("pragma journal_mode").fetchone() == ("wal",)


def test_service_that_does_not_answer_is_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(DemoProblem, match="does not answer"), reach({"KCOORD_URL": url}, print):
        pass


def test_exit_status_of_a_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("KCOORD_URL", f"http://127.0.0.1:{free_port()}")
    assert main([]) == 1
    assert "kcoord demo: http://127.0.0.1" in capsys.readouterr().err
