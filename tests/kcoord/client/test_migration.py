"""docs/client-migration.md: what it calls the same is the same, and its program runs after the change that it shows."""

from __future__ import annotations

import difflib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import kafka
import pytest

from kcoord.client import AsyncConsumer, Consumer, TopicPartition
from tests.kcoord.client.live import Service, running_service
from tests.support.database import cloned_database
from tests.support.processes import ROOT, environment

PAGE = (ROOT / "docs" / "client-migration.md").read_text()
EXAMPLES = ROOT / "docs" / "examples" / "migration"
SECTION = PAGE.partition("## KafkaConsumer, method by method")[2].partition("\n### ")[0]
ROWS = re.findall(r"^\| `(\w+)\((.*?)\)` \| (same|differs|not there) \| (.*?) ?\|$", SECTION, re.MULTILINE)

INTERNAL = ("update_offsets",)
"""Parameters of kafka-python that are not for users."""


def parameters(function: object) -> list[tuple[str, object, object]]:
    """Name, kind and default of each parameter."""
    found = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return [(p.name, p.kind, p.default) for p in found if p.name not in ("self", *INTERNAL)]


def methods(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}


def test_every_method_is_in_the_table() -> None:
    assert {name for name, *_ in ROWS} == methods(kafka.KafkaConsumer) | {"KafkaConsumer"}
    page = PAGE.partition("## From confluent-kafka")[2]
    missing = {name for name in methods(confluent_kafka.Consumer) if f"`{name}" not in page}
    assert missing == set()
    assert "| `for record in consumer` | same |" in SECTION
    assert hasattr(Consumer, "__next__")


@pytest.mark.parametrize(("name", "signature", "verdict", "notes"), ROWS, ids=[row[0] for row in ROWS])
def test_row_of_the_table(name: str, signature: str, verdict: str, notes: str) -> None:
    if name == "KafkaConsumer":
        return
    told = parameters(eval(f"lambda {signature}: 0"))
    assert told == parameters(getattr(kafka.KafkaConsumer, name))
    for consumer in (Consumer, AsyncConsumer):
        assert hasattr(consumer, name) is (verdict != "not there")
        if verdict == "same":
            ours = parameters(getattr(consumer, name))
            assert ours[: len(told)] == told
            more = [parameter for parameter, *_ in ours[len(told) :]]
            assert [parameter for parameter in more if f"also takes `{parameter}`" not in notes] == []
    if verdict != "same":
        assert notes, "what is different, or what to do instead"


def test_both_consumers_have_the_same_methods() -> None:
    def public(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert public(Consumer) == public(AsyncConsumer)
    for name in public(Consumer):
        if callable(getattr(Consumer, name)):
            assert parameters(getattr(Consumer, name)) == parameters(getattr(AsyncConsumer, name)), name


def test_change_has_the_size_that_the_page_says() -> None:
    before, after = ((EXAMPLES / f"totals_{name}.py").read_text().splitlines() for name in ("kafka_python", "kcoord"))
    steps = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    gone = sum(step[2] - step[1] for step in steps if step[0] != "equal")
    new = sum(step[4] - step[3] for step in steps if step[0] != "equal")
    told = re.search(r"Of its (\d+) lines, (\d+) are\s+changed; (\d+) are added", PAGE)
    assert told is not None
    assert [int(number) for number in told.groups()] == [len(before), gone, new - gone]
    shown = PAGE.partition("```diff\n")[2].partition("```")[0].splitlines()
    for sign, lines in (("-", before), ("+", after)):
        chosen = [line[1:] for line in shown if line.startswith(sign)]
        assert chosen
        assert set(chosen) <= set(lines)


@pytest.fixture(scope="module")
def service(postgres: str) -> Iterator[Service]:
    with cloned_database(postgres) as conninfo, running_service(conninfo) as running:
        yield running


@pytest.mark.processes
@pytest.mark.whole("a program of the docs; the default has the Python client's own tests")
def test_program_after_the_change_runs(service: Service, tmp_path: Path) -> None:
    service.topic(2, "orders")
    for partition in (0, 1):
        orders = [{"customer": "ab"[i % 2], "amount": i + partition} for i in range(150)]
        (tmp_path / f"orders-{partition}.jsonl").write_text("".join(json.dumps(order) + "\n" for order in orders))
    done = subprocess.run(
        [sys.executable, EXAMPLES / "totals_kcoord.py", service.url],
        cwd=tmp_path,
        env=environment(None, tmp_path, {"KCOORD_TOKEN": service.token}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *progress, totals = done.stdout.splitlines()
    assert progress == ["orders-0: 150 of 150", "orders-1: 150 of 150"]
    expected = {c: sum(i + p for p in (0, 1) for i in range(150) if i % 2 == n) for n, c in enumerate("ab")}
    assert json.loads(totals) == expected
    assert "assigned: [0, 1]" in done.stderr
    with Consumer(**service.settings("totals")) as consumer:
        assert consumer.committed(TopicPartition("orders", 1)) == 150
