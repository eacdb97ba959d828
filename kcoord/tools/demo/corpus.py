"""The input: text files included in every Python installation, as the partitions of a topic."""

from __future__ import annotations

import json
import re
import sysconfig
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kcoord.client import OffsetOutOfRangeError, Record

_WORD = re.compile(r"[A-Za-z]+")


def words(text: str) -> list[str]:
    """The words of a text: runs of letters, in lower case. No word spans lines."""
    return _WORD.findall(text.lower())


@dataclass(frozen=True, slots=True)
class Corpus:
    """Files by partition. All processes of a demo read the same one from its manifest."""

    partitions: Sequence[Sequence[Path]]

    def lines(self, partition: int) -> list[str]:
        """The lines of a partition, file after file; the index is the offset."""
        return [line for path in self.partitions[partition] for line in read(path).split("\n")]

    def ends(self) -> list[int]:
        """For each partition the offset after its last line."""
        return [len(self.lines(partition)) for partition in range(len(self.partitions))]

    def write(self, manifest: Path) -> None:
        """Store it for the workers."""
        manifest.write_text(json.dumps([[str(path) for path in paths] for paths in self.partitions]))

    @classmethod
    def load(cls, manifest: Path) -> Corpus:
        """What `write` stored."""
        return cls([[Path(path) for path in paths] for paths in json.loads(manifest.read_text())])


def read(path: Path) -> str:
    """A source file as text. Some are not UTF-8: invalid bytes are replaced, identically in every process."""
    return path.read_text(encoding="utf-8", errors="replace")


def standard_library(partitions: int, max_lines: int) -> Corpus:
    """The modules of the standard library, up to about `max_lines`, dealt out evenly.

    The largest file goes to the emptiest partition, and so on. Raises ValueError if there are fewer files than
    partitions.
    """
    sizes: list[tuple[int, Path]] = []
    total = 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        if total >= max_lines and len(sizes) >= partitions:
            break
        sizes.append((read(path).count("\n") + 1, path))
        total += sizes[-1][0]
    if len(sizes) < partitions:
        raise ValueError(f"the standard library has {len(sizes)} modules, fewer than {partitions} partitions")
    dealt: list[list[Path]] = [[] for _ in range(partitions)]
    filled = [0] * partitions
    for size, path in sorted(sizes, key=lambda item: (-item[0], item[1])):
        emptiest = filled.index(min(filled))
        dealt[emptiest].append(path)
        filled[emptiest] += size
    return Corpus(dealt)


def plain_count(corpus: Corpus) -> Counter[str]:
    """The words of all files, counted by one process without groups, offsets or lines."""
    counted: Counter[str] = Counter()
    for paths in corpus.partitions:
        for path in paths:
            counted.update(words(read(path)))
    return counted


class CorpusSource:
    """The record source of the workers: one record per line. A partition is read when it is first requested."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._lines: dict[int, list[str]] = {}

    def fetch(self, topic: str, partition: int, offset: int, max_records: int) -> Sequence[Record[str]]:
        """See `RecordSource.fetch`."""
        lines = self._of(partition)
        if not 0 <= offset <= len(lines):
            raise OffsetOutOfRangeError(f"{topic}-{partition} has the offsets 0 to {len(lines)}, not {offset}")
        chosen = enumerate(lines[offset : offset + max_records], offset)
        return [Record(topic, partition, number, value=line) for number, line in chosen]

    def beginning_offset(self, topic: str, partition: int) -> int:
        """See `RecordSource.beginning_offset`."""
        return 0

    def end_offset(self, topic: str, partition: int) -> int:
        """See `RecordSource.end_offset`."""
        return len(self._of(partition))

    def _of(self, partition: int) -> list[str]:
        if partition not in self._lines:
            self._lines[partition] = self._corpus.lines(partition)
        return self._lines[partition]
