"""A batch as the parameters of its statements: a column for each array, in the form in which Postgres reads it.

That form is made here and not by psycopg, which looks at each number of a list: at fifty offsets a commit that would
be most of the time of a commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from groups.store.rows import Int4Array, Int8Array, number_array, text_array
from offsets.core.commit import OVERTAKEN_MS
from offsets.core.types import TopicPartition
from offsets.lane.tickets import Ticket

Parameters = dict[str, Any]


def parameters(tickets: Sequence[Ticket]) -> Parameters:
    """The parameters of `lock_batch` and `write_batch`, but for the time.

    Commits are numbered as in `tickets`; those of one group are in the order in which they are to be written.
    """
    return {**_commits(tickets), **_lines(tickets), "overtaken_ms": OVERTAKEN_MS}


def _commits(tickets: Sequence[Ticket]) -> Parameters:
    extended: set[tuple[int, str]] = set()
    columns: list[tuple[str, ...]] = []
    at = 0
    for ticket in tickets:
        received = None if ticket.receipt is None else ticket.receipt.database_ms
        commit, stored, steady = ticket.commit, ticket.stored, ticket.steady
        assert stored is not None
        assert stored.pk is not None
        assert steady is not None
        key = stored.pk, commit.member_id
        extends = steady.session_ms is not None and key not in extended
        extended.add(key)
        count = len(commit.lines)
        columns.append(
            (
                str(stored.pk),
                str(stored.version),
                str(stored.version_tag),
                str(ticket.coordinator),
                "null" if commit.catalogue is None else str(commit.catalogue),
                quoted(commit.member_id),
                str(commit.generation_id),
                quoted(steady.client_id),
                quoted(commit.principal),
                str(steady.session_ms) if extends else "null",
                "null" if received is None else str(round(received)),
                str(ticket.own_at),
                str(at + 1),
                str(at + count),
            )
        )
        at += count
    literals = [_array(column) for column in zip(*columns, strict=True)]
    return dict(zip(_COMMIT_COLUMNS, literals, strict=True))


_COMMIT_COLUMNS = (
    "group",
    "version",
    "version_tag",
    "coordinator",
    "catalogue",
    "member_id",
    "generation_id",
    "client_id",
    "principal",
    "session_ms",
    "received_at",
    "own_at",
    "first",
    "last",
)


def _lines(tickets: Sequence[Ticket]) -> Parameters:
    topics: dict[str, int] = {}
    metadatas: dict[str, int] = {"": 1}
    topic: list[int] = []
    partitions: list[int] = []
    offsets: list[int] = []
    epochs: list[int] = []
    metadata: list[int] = []
    for ticket in tickets:
        lines = ticket.commit.lines
        for name, count in lines.topics:
            topic += [topics.setdefault(name, len(topics) + 1)] * count
        partitions += lines.partitions
        offsets += lines.offsets
        epochs += lines.leader_epochs
        if lines.metadata is None:
            metadata += [1] * len(lines)
        else:
            metadata += [metadatas.setdefault(text, len(metadatas) + 1) for text in lines.metadata]
    return {
        "topic": Int4Array.of(topic),
        "topics": text_array(topics),
        "partition": Int4Array.of(partitions),
        "committed_offset": Int8Array.of(offsets),
        "leader_epoch": Int4Array.of(epochs),
        "metadata": Int4Array.of(metadata),
        "metadatas": text_array(metadatas),
        "latest": _latest(tickets, len(partitions)),
    }


def fetch_parameters(asked: Sequence[tuple[str, Sequence[TopicPartition]]]) -> Parameters:
    """The parameters of `fetch_batch`: groups, each with the partitions that are asked for."""
    topics: dict[str, int] = {}
    topic = [topics.setdefault(name, len(topics) + 1) for _, partitions in asked for name, _ in partitions]
    last = list(accumulate(len(partitions) for _, partitions in asked))
    return {
        "group_id": text_array(group_id for group_id, _ in asked),
        "first": number_array([1, *(at + 1 for at in last[:-1])]),
        "last": number_array(last),
        "topic": number_array(topic),
        "topics": text_array(topics),
        "partition": number_array(partition for _, partitions in asked for _, partition in partitions),
    }


def _latest(tickets: Sequence[Ticket], count: int) -> str:
    """Whether each line is the last one of the batch about its partition."""
    if len({ticket.commit.group_id for ticket in tickets}) == len(tickets):
        return _array(["t"] * count)
    newest: dict[tuple[str, str, int], int] = {}
    at = 0
    for ticket in tickets:
        lines = ticket.commit.lines
        names = (name for name, number in lines.topics for _ in range(number))
        for name, partition in zip(names, lines.partitions, strict=True):
            newest[ticket.commit.group_id, name, partition] = at
            at += 1
    latest = ["f"] * count
    for at in newest.values():
        latest[at] = "t"
    return _array(latest)


def quoted(text: str) -> str:
    """An element of an array of texts."""
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _array(elements: Iterable[str]) -> str:
    return "{" + ",".join(elements) + "}"
