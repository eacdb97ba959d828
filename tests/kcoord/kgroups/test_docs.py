"""docs/kgroups.md: what it tells people to type is what the tool takes, and no option is left out."""

from __future__ import annotations

import argparse
import re
import shlex

import pytest

from kcoord.client.kgroups import options
from kcoord.client.kgroups.arguments import check
from tests.support.processes import ROOT

PAGE = (ROOT / "docs" / "kgroups.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^ *(?:\$|\.venv/bin/python) manage\.py kgroups (.*?)(?: {2,}#.*)?$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_are_taken(command: str) -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    options.declare(parser)
    check(parser.parse_args(shlex.split(command)))


def test_every_option_is_explained() -> None:
    assert len(COMMANDS) > 15
    for option in (*options.TAKEN_BY, *(action.value for action in options.Action), "url", "token-file", "timeout"):
        assert f"--{option}" in PAGE, option
