"""Generated parts are what `python -m tests.docs` would write, and show what they claim to show."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from groups.core.model.types import TRANSITIONS, GroupState
from tests.docs import diagrams, differences, index, permissions, settings
from tests.docs.citations import citing_files
from tests.docs.pages import PAGES, ROOT, RULES, page

GENERATED = (diagrams, index, differences, permissions, settings)


@pytest.mark.parametrize("generated", GENERATED, ids=lambda module: module.PATH.name)
def test_generated_parts_are_current(generated: ModuleType) -> None:
    assert generated.PATH.read_text(encoding="utf-8") == generated.render(), "stale: run python -m tests.docs"


def test_the_transition_table_of_the_core_is_that_of_the_specification() -> None:
    text = PAGES["classic"].read_text(encoding="utf-8")
    section = text[text.index("## 1. States and transitions") : text.index("## 2. JoinGroup")]
    rows = re.findall(r"^\| (\w+) \| (\w+) \|", section, re.MULTILINE)
    written = {(before, after) for before, after in rows if before not in ("from", "any")}
    if ("any", "Dead") in rows:
        written |= {(state.value, "Dead") for state in GroupState}
    assert written == {(before.value, after.value) for before, afters in TRANSITIONS.items() for after in afters}


def test_every_section_of_the_specification_is_in_the_index() -> None:
    text = index.PATH.read_text(encoding="utf-8")
    for name in RULES:
        for section in page(name).sections.values():
            assert f"| [{section.number}]({name}.md#{section.anchor})" in text


def test_a_range_names_what_lies_between_its_ends() -> None:
    found = index.cited_by()
    module = PAGES["classic"].parents[2] / "groups" / "core" / "consumer" / "__init__.py"
    assert "consumer.md 1 to 8" in module.read_text(encoding="utf-8")
    assert all(module in found["consumer", str(number)] for number in range(1, 9))
    assert module not in found.get(("consumer", "9"), [])


def test_no_mark_of_the_code_is_lost() -> None:
    listed = differences.PATH.read_text(encoding="utf-8").partition(differences.BEGIN)[2].count("\n- [")
    marks = [path.read_text(encoding="utf-8").count("Differs from Kafka") for path in citing_files() if is_code(path)]
    assert listed == sum(marks) > 40


def is_code(path: Path) -> bool:
    return not path.is_relative_to(ROOT / "tests")
