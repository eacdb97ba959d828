"""docs/client.md says what is so: its assignments are computed, its programs compile, its settings are the settings."""

from __future__ import annotations

import doctest
import re
from dataclasses import MISSING, fields

import kcoord.client
from kcoord.client import Consumer, ConsumerConfig
from tests.support.database import ROOT

PAGE = ROOT / "docs" / "client.md"


def test_assignments_of_the_page_are_computed() -> None:
    text = "\n".join(re.findall(r"```pycon\n(.*?)```", PAGE.read_text(), re.DOTALL))
    test = doctest.DocTestParser().get_doctest(text, {}, "docs/client.md", str(PAGE), 0)
    results = doctest.DocTestRunner().run(test)
    assert results.failed == 0
    assert results.attempted >= 10


def test_programs_of_the_page_compile() -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(programs) == 4
    for program in programs:
        compile(program, str(PAGE), "exec")
        for name in re.findall(r"from kcoord\.client import (.*)", program)[0].split(", "):
            assert name in kcoord.client.__all__


def test_settings_of_the_page_are_the_settings() -> None:
    section = PAGE.read_text().partition("## Settings")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", section, re.MULTILINE))
    assert list(rows) == [f.name for f in fields(ConsumerConfig)]
    for f in fields(ConsumerConfig):
        if f.name not in ("group_id", "url", "token"):
            assert f.default is not MISSING
            assert rows[f.name].strip("`") == str(f.default)


def test_methods_and_errors_of_the_page_exist() -> None:
    page = PAGE.read_text()
    methods = page.partition("| method |")[2].partition("\n## ")[0]
    for row in re.findall(r"^\| (`.*?`) \|", methods, re.MULTILINE):
        for name in re.findall(r"`(\w+)", row):
            assert hasattr(Consumer, name), name
    errors = page.partition("| raised |")[2].partition("\n## ")[0]
    for name in re.findall(r"`(\w+Error)`", errors):
        assert name in kcoord.client.__all__
