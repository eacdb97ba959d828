"""docs/client.md says what is so: its assignments are computed, its programs compile, its settings are the settings."""

from __future__ import annotations

import doctest
import re
from dataclasses import MISSING, fields

import pytest

import kcoord.client
from kcoord.client import (
    AsyncShareConsumer,
    Consumer,
    ConsumerConfig,
    InvalidConfigurationError,
    ShareConsumer,
    ShareConsumerConfig,
    ShareConsumerSettings,
)
from kcoord.client.share_config import NOT_OF_SHARE_GROUPS
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
    assert len(programs) == 5
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


def test_settings_and_methods_of_share_consumers_are_what_they_have() -> None:
    section = PAGE.read_text().partition("## Workers of a queue")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", section.partition("| share setting |")[2], re.MULTILINE))
    defaults = {f.name: str(f.default) for f in fields(ShareConsumerConfig)}
    assert {name: default.strip("`") for name, default in rows.items()} == {name: defaults[name] for name in rows}
    own = {f.name for f in fields(ShareConsumerConfig)} - {f.name for f in fields(ConsumerConfig)}
    assert own <= rows.keys()
    methods = section.partition("| share consumer |")[2].partition("| share setting |")[0]
    for row in re.findall(r"^\| (`\w+\(.*?`) \|", methods, re.MULTILINE):
        for name in re.findall(r"`(\w+)", row):
            assert hasattr(ShareConsumer, name), name
            assert hasattr(AsyncShareConsumer, name), name


def test_settings_are_those_that_type_checkers_know() -> None:
    refused = NOT_OF_SHARE_GROUPS.keys()
    known = {f.name for f in fields(ShareConsumerConfig)} - refused
    assert set(ShareConsumerSettings.__annotations__) == known
    for name in refused:
        with pytest.raises(InvalidConfigurationError, match=name):
            ShareConsumerConfig.of({"group_id": "g", name: None})


def test_methods_and_errors_of_the_page_exist() -> None:
    page = PAGE.read_text()
    methods = page.partition("| method |")[2].partition("\n## ")[0]
    for row in re.findall(r"^\| (`.*?`) \|", methods, re.MULTILINE):
        for name in re.findall(r"`(\w+)", row):
            assert hasattr(Consumer, name), name
    errors = page.partition("| raised |")[2].partition("\n## ")[0]
    for name in re.findall(r"`(\w+Error)`", errors):
        assert name in kcoord.client.__all__
