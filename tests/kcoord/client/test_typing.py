"""What type checkers say of programs that use the client: settings have names and types, records have values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ROOT

PROGRAM = """
from collections.abc import Sequence

from kcoord.client import AsyncConsumer, AsyncShareConsumer, Consumer, Item, Record, ShareConsumer


class Letters:
    def fetch(self, topic: str, partition: int, offset: int, max_records: int) -> Sequence[Record[str]]:
        return [Record(topic, partition, offset, value="a")]

    def beginning_offset(self, topic: str, partition: int) -> int:
        return 0

    def end_offset(self, topic: str, partition: int) -> int:
        return 1


class AsyncLetters:
    async def fetch(self, topic: str, partition: int, offset: int, max_records: int) -> Sequence[Record[str]]:
        return [Record(topic, partition, offset, value="a")]

    async def beginning_offset(self, topic: str, partition: int) -> int:
        return 0

    async def end_offset(self, topic: str, partition: int) -> int:
        return 1


Consumer("t", group_id="g", session_timeout_ms=6_000, source=Letters())
Consumer("t", group_id="g", sesion_timeout_ms=6_000)  # error
AsyncConsumer("t", group_id="g", sesion_timeout_ms=6_000, source=Letters())  # error
Consumer("t", group_id="g", session_timeout_ms="6000")  # error
Consumer("t", group_id="g", auto_offset_reset="smallest")  # error
Consumer("t")  # error
Consumer("t", group_id="g", source=object())  # error
Consumer("t", group_id="g", source=AsyncLetters())  # error

consumer = Consumer("t", group_id="g", source=Letters())
for record in consumer:
    upper: str = record.value.upper()
    number: int = record.value  # error
for records in consumer.poll(100).values():
    wrong: list[Record[int]] = records  # error

worker = ShareConsumer("t", group_id="g", source=Letters(), acknowledgement_mode="explicit", concurrency=2)
for item in worker:
    upper = item.value.upper()
    number = item.value  # error
    worker.acknowledge(item, "release", delay=1.5, error=OSError())
    worker.acknowledge(item, "retry")  # error
ShareConsumer("t", group_id="g", acknowledgement_mode="auto")  # error
ShareConsumer("t", group_id="g", auto_offset_reset="latest")  # error
nothing: Item[None] = next(ShareConsumer("t", group_id="g"))


def handle(item: Item[int]) -> None: ...


worker.run(handle)  # error


async def work(item: Item[str]) -> None: ...


async def share() -> None:
    await AsyncShareConsumer("t", group_id="g", source=AsyncLetters()).run(work)


async def read() -> None:
    async for record in AsyncConsumer("t", group_id="g", source=AsyncLetters()):
        upper: str = record.value.upper()
        number: int = record.value  # error


unknown = Consumer("t", group_id="g")
anything: int = next(unknown).value
"""


@pytest.mark.whole("mypy reads httpx and the client: half a minute without its cache")
def test_wrong_programs_are_found(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    options = ["--config-file=", "--strict", "--follow-imports=silent", f"--cache-dir={tmp_path / 'cache'}"]
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(program)], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    found = {int(line.split(":")[1]) for line in ended.stdout.splitlines() if ": error:" in line}
    expected = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# error")}
    assert found == expected, ended.stdout + ended.stderr
