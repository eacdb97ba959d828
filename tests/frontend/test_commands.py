"""Commands of actions: a shell hands exactly the intended words to the programs, and both programs accept them."""

from __future__ import annotations

import argparse
import json
import subprocess
from typing import Any

import pytest
from django.test import RequestFactory
from pytest_django.fixtures import SettingsWrapper

from frontend.ui import commands
from frontend.ui.commands import Command
from kcoord.client.kgroups.arguments import Arguments, check
from kcoord.client.kgroups.options import declare
from kcoord.resets.strategies import PARAMETER, Reset, Strategy

URL = "https://kcoord.example"
NASTY = 'it\'s; $(touch x) `id` "q" \\ \n*? é –x'
"""What a shell would act upon if it was not quoted."""
SOME: dict[str, Any] = {"offset": 7, "by": -5, "at": 1_700_000_000_000, "duration": "PT1H", "from_group": NASTY}


def words(line: str) -> list[str]:
    """What a POSIX shell makes of a command line."""
    script = f'set -f; KCOORD_TOKEN="a secret"; curl() {{ printf "%s\\0" "$@"; }}; kgroups() {{ curl "$@"; }}; {line}'
    return subprocess.run(["sh", "-c", script], capture_output=True, check=True, text=True).stdout.split("\0")[:-1]


def body(line: str) -> Any:
    sent = words(line)
    return json.loads(sent[sent.index("-d") + 1])


def parsed(line: str) -> Arguments:
    """What kgroups makes of a line. Raises UsageError, SystemExit."""
    parser = argparse.ArgumentParser()
    declare(parser)
    return check(parser.parse_args(words(line)))


def reset(strategy: Strategy, **more: Any) -> Reset:
    name = PARAMETER[strategy]
    given = {} if name is None else {name: {("orders", 0): 1} if name == "csv" else SOME[name]}
    return Reset(strategy, **given, **more)


@pytest.mark.parametrize("strategy", list(Strategy))
def test_a_shell_hands_over_every_strategy_as_it_is_meant(strategy: Strategy) -> None:
    scope = None if strategy is Strategy.FROM_FILE else ((NASTY, None), ("-orders", (0, 2)))
    made = commands.plan(URL, NASTY, reset(strategy, scope=scope), NASTY)
    assert body(made.curl)["strategy"] == strategy.value
    assert body(made.curl)["reason"] == NASTY
    line = parsed(made.kgroups)
    assert line.groups == (NASTY,)
    assert line.reset is not None
    assert (line.reset.strategy, line.reset.reason, line.reset.execute) == (strategy.value, NASTY, False)
    if scope is not None:
        assert body(made.curl)["topics"] == [{"name": NASTY}, {"name": "-orders", "partitions": [0, 2]}]


def test_the_token_comes_from_the_environment() -> None:
    sent = words(commands.end_hold(URL, NASTY).curl)
    assert "Authorization: Bearer a secret" in sent
    assert sent[-1].startswith(f"{URL}/v1/groups/it%27s%3B%20%24%28touch")
    assert "-X" in sent
    assert "DELETE" in sent


@pytest.mark.parametrize(
    "made",
    [
        commands.hold(URL, NASTY, 60_000, NASTY),
        commands.with_plan(URL, NASTY, "5f1d4ef0-6a2b-4c43-9d0a-0c7f6f6c1b52", "apply"),
        commands.with_plan(URL, NASTY, "5f1d4ef0-6a2b-4c43-9d0a-0c7f6f6c1b52", "undo"),
        commands.verify(URL, NASTY),
        commands.delete_group(URL, NASTY),
        commands.delete_offsets(URL, NASTY, [("orders", (0, 1))]),
        commands.create_group(URL, NASTY, [("orders", 0, 5), ("orders", 1, 6)]),
        commands.kick(URL, NASTY, NASTY, NASTY),
        *commands.config(URL, NASTY, {"consumer.assignor": NASTY, "consumer.session.timeout.ms": None}),
        commands.request(URL, "Create the token", "POST", "tokens", {"name": NASTY, "rules": [{"name": NASTY}]}),
        commands.request(URL, "Revoke the token", "DELETE", "tokens/3"),
    ],
    ids=lambda made: made.label,
)
def test_every_command_survives_the_shell(made: Command) -> None:
    sent = words(made.curl)
    assert sent[-1].startswith(f"{URL}/v1/")
    assert "\n" not in sent[-1]
    if "-d" in sent:
        json.loads(sent[sent.index("-d") + 1])
    if made.kgroups:
        assert parsed(made.kgroups).url == URL


def test_what_kgroups_cannot_do_is_said() -> None:
    made = commands.plan(URL, "billing", reset(Strategy.TO_LATEST, clamp=True))
    assert made.kgroups == ""
    assert "no options" in made.note
    assert body(made.curl)["clamp"] is True


def test_a_command_that_no_shell_takes_is_not_offered() -> None:
    scope = (("orders", tuple(range(0, 60_000, 2))),)
    made = commands.plan(URL, "billing", reset(Strategy.TO_LATEST, scope=scope))
    assert (made.curl, made.kgroups) == ("", "")
    assert "whole topics" in made.note


def test_the_address_is_that_of_the_request_unless_one_is_advertised(settings: SettingsWrapper) -> None:
    request = RequestFactory().get("/groups", secure=True, SERVER_NAME="127.0.0.1", SERVER_PORT="8443")
    assert commands.service_url(request) == "https://127.0.0.1:8443"
